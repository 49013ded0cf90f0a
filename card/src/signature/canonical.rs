//! The canonical forms: the bytes of a card that a signature may cover.

use std::fmt;

use serde_json::Value;

use super::project::Projection;
use super::python;
use super::schema::{CARD_0_3, CARD_1_0};
use super::uncovered_list::UncoveredList;
use crate::document::{self, Nul};
use crate::finding::Findings;
use crate::pointer::Pointer;

/// A canonical form of a card. All of them leave out the top-level `signatures`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CanonicalForm {
    /// `sdk`: the members of 1.0 in RFC 8785, without defaults that the protocol does not distinguish from absence,
    /// and without empty texts, lists and objects at any depth. The SDKs for 1.0 sign this form.
    Sdk,
    /// `strict`: the members of 1.0 in RFC 8785, by the rules of presence in 1.0 §8.4.1: REQUIRED members and
    /// `optional` ones that are set are kept even if they are empty.
    Strict,
    /// `plain`: every member as received, in RFC 8785.
    Plain,
    /// `0.3`: the members of 0.3 as the Python SDK 0.3 writes them. Only for cards without `supportedInterfaces`.
    V0_3,
}

impl CanonicalForm {
    /// Every form, in the order in which they are tried.
    pub const ALL: [CanonicalForm; 4] = [
        CanonicalForm::Sdk,
        CanonicalForm::Strict,
        CanonicalForm::Plain,
        CanonicalForm::V0_3,
    ];

    /// The stable name, as each variant's description gives it.
    pub fn as_str(self) -> &'static str {
        match self {
            CanonicalForm::Sdk => "sdk",
            CanonicalForm::Strict => "strict",
            CanonicalForm::Plain => "plain",
            CanonicalForm::V0_3 => "0.3",
        }
    }
}

impl fmt::Display for CanonicalForm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

pub(super) fn has_interfaces(document: &Value) -> bool {
    ["supportedInterfaces", "supported_interfaces"]
        .into_iter()
        .any(|name| document.get(name).is_some_and(|value| !value.is_null()))
}

/// The part of a document that the form covers; the rest is added to `left`. `None` if the document cannot have been
/// signed in that form, or nothing of it is covered.
pub(super) fn covered(
    document: &Value,
    form: CanonicalForm,
    left: &mut UncoveredList,
) -> Option<Value> {
    let Value::Object(members) = document else {
        return None;
    };
    let mut members = members.clone();
    // The order of members does not count here, so the cheaper removal serves.
    members.swap_remove("signatures");
    let (schema, cleaned) = match form {
        CanonicalForm::Plain => return Some(Value::Object(members)),
        CanonicalForm::V0_3 if has_interfaces(document) => return None,
        CanonicalForm::V0_3 => (CARD_0_3, true),
        CanonicalForm::Sdk => (CARD_1_0, true),
        CanonicalForm::Strict => (CARD_1_0, false),
    };
    let mut projection = Projection { cleaned, left };
    projection
        .message(&members, schema, &Pointer::Root)
        .ok()?
        .filter(|value| value.as_object().is_some_and(|map| !map.is_empty()))
}

pub(super) fn written(covered: &Value, form: CanonicalForm) -> Option<Vec<u8>> {
    match form {
        CanonicalForm::V0_3 => Some(python::dumps(covered).into_bytes()),
        _ => serde_json_canonicalizer::to_vec(covered).ok(),
    }
}

/// The payload of a signature in that form, from a document that is I-JSON.
pub(super) fn payload(document: &Value, form: CanonicalForm) -> Option<Vec<u8>> {
    written(&covered(document, form, &mut UncoveredList::none())?, form)
}

/// The bytes that a signature in that form covers, before base64url. `None` if the card cannot have been signed in that
/// form: it is not I-JSON, has members of wrong types, or nothing that the form covers.
pub fn canonical_payload(bytes: &[u8], form: CanonicalForm) -> Option<Vec<u8>> {
    let document = document::read(bytes, Nul::Keep, &mut Findings::default()).ok()?;
    payload(&document.value, form).filter(|_| document.exact)
}

/// The SDK form without `securitySchemes`, if there are any: the JavaScript SDK 1.3.0 signs this, because it reads
/// its own form of them as if it were JSON and loses them.
pub(super) fn without_schemes(mut covered: Value) -> Option<Value> {
    covered.as_object_mut()?.swap_remove("securitySchemes")?;
    Some(covered)
}
