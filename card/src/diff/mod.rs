//! The difference of two versions of a card, and the importance of each change.
//!
//! The comparison uses the two documents as received, not the models read from them: clients read the bytes, and a
//! member that the model ignores may be the one that a client follows. Every change is [`ChangeClass::High`], and
//! [`ChangeClass::Critical`] where it decides whom a caller talks to, unless a rule that checks the received values
//! themselves lowers it. So a change that nobody foresaw is reviewed by a person.

mod address;
mod capabilities;
mod card_addresses;
mod change;
mod changes;
mod fields;
mod flows;
mod interfaces;
mod leftovers;
mod lists;
mod matching;
mod members;
mod requirements;
mod schemes;
mod security;
mod shown;
mod signatures;
mod skills;
mod tree;

pub use change::{
    CardChange, CardDiff, ChangeClass, MAX_CHANGES, SignatureStates, UnknownChangeClass,
};

use serde_json::Value;

use crate::document::{self, Document};
use crate::pointer::Pointer;
use crate::{Family, ParseError, content_digest, parse};

use changes::Changes;
use members::Layer;

/// Compares two versions of a card, as they were received.
///
/// `owner_extension` is the URI of the extension by which an owner proves that a card is theirs; a well-formed entry
/// of it may be added, changed and removed without a review.
///
/// Cards of equal [`crate::content_digest`] differ at most in their signatures, and for cards whose
/// content differs there is always at least one change. The work is linear in the size of both.
///
/// ```
/// use a2a_card::{ChangeClass, diff};
///
/// let before = br#"{"name": "Desk", "version": "1.0", "url": "https://desk.example/a2a"}"#;
/// let after = br#"{"name": "Desk", "version": "1.1", "url": "https://desk.example.evil/a2a"}"#;
/// let diff = diff(before, after, None)?;
/// assert_eq!(diff.class, ChangeClass::Critical);
/// assert_eq!(diff.changes[0].pointer, "/url");
/// assert_eq!(diff.changes[1].class, ChangeClass::Low);
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn diff(
    before: &[u8],
    after: &[u8],
    owner_extension: Option<&str>,
) -> Result<CardDiff, ParseError> {
    compared(before, after, owner_extension, None)
}

/// Compares two versions of a card whose signatures have been verified. A signature that verified before and now does
/// not, or is invalid, is [`ChangeClass::Critical`], though the member may be unchanged; a first signature is
/// [`ChangeClass::Low`] if it is [`crate::SignatureState::Valid`].
pub fn diff_verified(
    before: &[u8],
    after: &[u8],
    owner_extension: Option<&str>,
    states: SignatureStates,
) -> Result<CardDiff, ParseError> {
    compared(before, after, owner_extension, Some(states))
}

fn compared(
    before: &[u8],
    after: &[u8],
    owner_extension: Option<&str>,
    states: Option<SignatureStates>,
) -> Result<CardDiff, ParseError> {
    let families = (parse(before)?.family, parse(after)?.family);
    let documents = (document::read_all(before)?, document::read_all(after)?);
    let mut out = Changes::default();
    if before != after {
        compare(
            &documents.0,
            &documents.1,
            families,
            owner_extension,
            states,
            &mut out,
        );
    }
    if let Some(states) = states {
        let same_content = before == after || content_digest(before) == content_digest(after);
        signatures::compare_states(states, same_content, &mut out);
    }
    Ok(out.into_diff())
}

fn compare(
    before: &Document,
    after: &Document,
    families: (Family, Family),
    owner_extension: Option<&str>,
    states: Option<SignatureStates>,
    out: &mut Changes,
) {
    let root = Pointer::Root;
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
    let nests = (
        members::nest(old, families.0),
        members::nest(new, families.1),
    );
    let layer = Layer {
        families,
        owner_extension,
        states,
        nested: nests != (None, None),
    };
    match nests {
        (Some(from), Some(to)) if from == to => {
            layer.compare(old, new, Some(to), &root, out);
            if let (Some(Value::Object(old)), Some(Value::Object(new))) =
                (old.get(from), new.get(to))
            {
                layer.compare(old, new, None, &root.name(to), out);
            }
        }
        (None, None) => layer.compare(old, new, None, &root, out),
        _ => {
            out.add(
                ChangeClass::Critical,
                &root,
                (None, None),
                "the card is in another place of the document",
            );
            layer.compare(old, new, None, &root, out);
        }
    }
}
