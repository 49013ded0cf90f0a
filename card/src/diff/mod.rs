//! Difference between two versions of a card, and the importance of each change.
//!
//! The comparison uses the two documents as received, not the models read from them: clients read the bytes, and a
//! member that the model ignores may be the one that a client follows. Every change is [`ChangeClass::High`], or
//! [`ChangeClass::Critical`] if it decides whom a caller talks to, unless a rule that checks the received values
//! themselves lowers it. Therefore a person reviews every change that no rule foresees.

mod capabilities;
mod card_addresses;
mod change;
mod change_collector;
mod diff_level;
mod display;
mod interfaces;
mod json_equality;
mod list_matching;
mod lists_and_texts;
mod oauth_flows;
mod object_members;
mod requirements;
mod schemes;
mod security;
mod signatures;
mod skills;
mod unknown_members;
mod url_origin;

pub use change::{
    CardChange, CardDiff, ChangeClass, MAX_CHANGES, SignatureStateChange, UnknownChangeClass,
};

use serde_json::Value;

use crate::json_document::{self, JsonDocument};
use crate::json_pointer::JsonPointer;
use crate::{CardFamily, ParseError, content_digest, parse_card};

use change_collector::ChangeCollector;
use diff_level::CardLevelComparer;

/// Compares two versions of a card as received.
///
/// `owner_extension` is the URI of the extension by which an owner proves that a card is theirs; a well-formed entry
/// of it may be added, changed and removed without a review.
///
/// Cards of equal [`crate::content_digest`] differ at most in their signatures, and cards with different content have
/// at least one change. The work is linear in the size of both cards.
///
/// ```
/// use a2a_card::{ChangeClass, diff_cards};
///
/// let before = br#"{"name": "Desk", "version": "1.0", "url": "https://desk.example/a2a"}"#;
/// let after = br#"{"name": "Desk", "version": "1.1", "url": "https://desk.example.evil/a2a"}"#;
/// let diff = diff_cards(before, after, None)?;
/// assert_eq!(diff.class, ChangeClass::Critical);
/// assert_eq!(diff.changes[0].pointer, "/url");
/// assert_eq!(diff.changes[1].class, ChangeClass::Low);
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn diff_cards(
    before: &[u8],
    after: &[u8],
    owner_extension: Option<&str>,
) -> Result<CardDiff, ParseError> {
    diff_card_bytes(before, after, owner_extension, None)
}

/// Compares two versions of a card whose signatures have been verified. A signature that verified before but no longer
/// does, or is invalid, is [`ChangeClass::Critical`], even if the member is unchanged; a first signature is
/// [`ChangeClass::Low`] if it is [`crate::SignatureState::Valid`].
pub fn diff_verified_cards(
    before: &[u8],
    after: &[u8],
    owner_extension: Option<&str>,
    signature_states: SignatureStateChange,
) -> Result<CardDiff, ParseError> {
    diff_card_bytes(before, after, owner_extension, Some(signature_states))
}

fn diff_card_bytes(
    before: &[u8],
    after: &[u8],
    owner_extension: Option<&str>,
    signature_states: Option<SignatureStateChange>,
) -> Result<CardDiff, ParseError> {
    let families = (parse_card(before)?.family, parse_card(after)?.family);
    let documents = (
        json_document::parse_json_with_duplicates(before)?,
        json_document::parse_json_with_duplicates(after)?,
    );
    let mut out = ChangeCollector::default();
    if before != after {
        compare_card_documents(
            &documents.0,
            &documents.1,
            families,
            owner_extension,
            signature_states,
            &mut out,
        );
    }
    if let Some(states) = signature_states {
        let same_content = before == after || content_digest(before) == content_digest(after);
        signatures::compare_signature_states(states, same_content, &mut out);
    }
    Ok(out.into_diff())
}

fn compare_card_documents(
    before: &JsonDocument,
    after: &JsonDocument,
    families: (CardFamily, CardFamily),
    owner_extension: Option<&str>,
    signature_states: Option<SignatureStateChange>,
    out: &mut ChangeCollector,
) {
    let root = JsonPointer::Root;
    if !(before.exact && after.exact) {
        out.add(
            ChangeClass::High,
            &root,
            (None, None),
            "JSON parsers read one of the two cards differently",
        );
    }
    let (Value::Object(old), Value::Object(new)) = (&before.value, &after.value) else {
        return;
    };
    let nesting_members = (
        diff_level::nesting_member(old, families.0),
        diff_level::nesting_member(new, families.1),
    );
    let level = CardLevelComparer {
        families,
        owner_extension,
        signature_states,
        is_nested: nesting_members != (None, None),
    };
    match nesting_members {
        (Some(old_nest), Some(to)) if old_nest == to => {
            level.compare_members(old, new, Some(to), &root, out);
            if let (Some(Value::Object(old)), Some(Value::Object(new))) =
                (old.get(old_nest), new.get(to))
            {
                level.compare_members(old, new, None, &root.member(to), out);
            }
        }
        (None, None) => level.compare_members(old, new, None, &root, out),
        _ => {
            out.add(
                ChangeClass::Critical,
                &root,
                (None, None),
                "the card moved to a different place in the document",
            );
            level.compare_members(old, new, None, &root, out);
        }
    }
}
