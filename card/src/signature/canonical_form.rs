//! Canonical forms: the bytes of a card that a signature may cover.

use serde_json::Value;

use super::projection::PayloadProjector;
use super::python_json;
use super::schema::{CARD_FIELDS_0_3, CARD_FIELDS_1_0};
use super::uncovered_collector::UncoveredMemberCollector;
use crate::finding::FindingCollector;
use crate::json_document::{self, NulHandling};
use crate::json_pointer::JsonPointer;
use crate::named_enum;

named_enum! {
    /// Canonical form of a card. Every form omits the top-level `signatures`.
    pub enum CanonicalForm {
        /// `sdk`: the members of 1.0 in RFC 8785, without defaults that the protocol does not distinguish from absence,
        /// and without empty texts, lists and objects at any depth. The SDKs for 1.0 sign this form.
        Sdk = "sdk",
        /// `strict`: the members of 1.0 in RFC 8785, by the rules of presence in 1.0 §8.4.1: REQUIRED members and
        /// `optional` ones that are set are kept even if they are empty.
        Strict = "strict",
        /// `plain`: every member as received, in RFC 8785.
        Plain = "plain",
        /// `0.3`: the members of 0.3 as the Python SDK 0.3 writes them. Only for cards without `supportedInterfaces`.
        V0_3 = "0.3",
    }
}

pub(super) fn has_supported_interfaces(document: &Value) -> bool {
    ["supportedInterfaces", "supported_interfaces"]
        .into_iter()
        .any(|name| document.get(name).is_some_and(|value| !value.is_null()))
}

/// The part of a document that the form covers; the rest is added to `uncovered`. `None` if the document cannot have
/// been signed in that form, or if the form covers nothing of it.
pub(super) fn signature_covered_part(
    document: &Value,
    form: CanonicalForm,
    uncovered: &mut UncoveredMemberCollector,
) -> Option<Value> {
    let Value::Object(members) = document else {
        return None;
    };
    let mut members = members.clone();
    // The order of members does not matter here, so the cheaper removal is used.
    members.swap_remove("signatures");
    let (schema, cleaned) = match form {
        CanonicalForm::Plain => return Some(Value::Object(members)),
        CanonicalForm::V0_3 if has_supported_interfaces(document) => return None,
        CanonicalForm::V0_3 => (CARD_FIELDS_0_3, true),
        CanonicalForm::Sdk => (CARD_FIELDS_1_0, true),
        CanonicalForm::Strict => (CARD_FIELDS_1_0, false),
    };
    let mut projection = PayloadProjector {
        drop_empty: cleaned,
        uncovered,
    };
    projection
        .project_message(&members, schema, &JsonPointer::Root)
        .ok()?
        .filter(|value| value.as_object().is_some_and(|map| !map.is_empty()))
}

pub(super) fn write_canonical_bytes(part: &Value, form: CanonicalForm) -> Option<Vec<u8>> {
    match form {
        CanonicalForm::V0_3 => Some(python_json::to_python_json(part).into_bytes()),
        _ => serde_json_canonicalizer::to_vec(part).ok(),
    }
}

/// The payload of a signature in that form, for a document that is I-JSON.
pub(super) fn signing_payload(document: &Value, form: CanonicalForm) -> Option<Vec<u8>> {
    write_canonical_bytes(
        &signature_covered_part(document, form, &mut UncoveredMemberCollector::disabled())?,
        form,
    )
}

/// The bytes that a signature in that form covers, before base64url. `None` if the card cannot have been signed in
/// that form, because it is not I-JSON, has members of wrong types, or has nothing that the form covers.
pub fn canonical_payload(bytes: &[u8], form: CanonicalForm) -> Option<Vec<u8>> {
    let document =
        json_document::parse_json(bytes, NulHandling::Keep, &mut FindingCollector::default())
            .ok()?;
    signing_payload(&document.value, form).filter(|_| document.exact)
}

/// The SDK form without `securitySchemes`, if the card has any. The JavaScript SDK 1.3.0 signs this form, because it
/// reads its own form of the schemes as if it were JSON and loses them.
pub(super) fn without_security_schemes(mut part: Value) -> Option<Value> {
    part.as_object_mut()?.swap_remove("securitySchemes")?;
    Some(part)
}
