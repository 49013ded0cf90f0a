//! Reader of the `authentication` member of 0.1: a list of scheme labels, any of which suffices.
//! [`super::informal_credentials`] reads its other content in real cards.

use serde_json::{Map, Value};

use super::informal_credentials::{self, CredentialRequirement};
use super::v0_2::scheme_kind_from_label;
use super::value_spellings::take_api_key_location;
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::{self, LengthLimit, MemberReader};
use crate::{SchemeKind, SecurityRequirement, SecurityScheme, rules};

const EXPECTED_AUTHENTICATION: &str = "an object with the list `schemes`";

/// Takes `authentication`; each label becomes a scheme of that name and an alternative of its own.
///
/// A card that also has `securitySchemes` is of a later version, and those schemes count.
pub(super) fn take_authentication(
    members: &mut MemberReader<'_>,
    has_schemes: bool,
    out: &mut FindingCollector,
) -> (Vec<SecurityScheme>, Vec<SecurityRequirement>) {
    let Some((position, value)) = members.take_member("authentication", out) else {
        return (Vec::new(), Vec::new());
    };
    let parent = members.pointer();
    let pointer = position.pointer_in(&parent);
    if has_schemes {
        out.add_with_value(&rules::AUTHENTICATION_LATE, &pointer, &value);
        members.retain_unreadable(&position, value);
        return (Vec::new(), Vec::new());
    }
    let requirement = CredentialRequirement::from_value(&value);
    let original_value = value.clone();
    let (mut labels, mut details) = scheme_labels(value, &original_value, &pointer, out);
    labels.retain(|label| !informal_credentials::is_access_policy_label(label));
    if labels.is_empty() {
        // The member has the form of no version, or is unreadable.
        let is_required = requirement.is_required();
        let (schemes, alternatives) = requirement.into_schemes();
        if !schemes.is_empty() {
            out.add_coerced_type(&pointer, &original_value, EXPECTED_AUTHENTICATION);
        } else if is_required || !matches!(original_value, Value::Object(_) | Value::Array(_)) {
            out.add_wrong_type(&pointer, &original_value, EXPECTED_AUTHENTICATION);
        }
        if is_required && schemes.is_empty() {
            members.retain_unreadable(&position, original_value);
        }
        return (schemes, alternatives);
    }
    let schemes = schemes_from_labels(labels, details.as_mut(), out);
    let mut requirements: Vec<SecurityRequirement> = schemes
        .iter()
        .map(|scheme| SecurityRequirement {
            schemes: vec![(scheme.name.clone(), Vec::new())],
        })
        .collect();
    let has_open_scheme = schemes.iter().any(|scheme| scheme.kind == SchemeKind::None);
    if requirement.is_explicitly_optional() && !has_open_scheme {
        requirements.push(SecurityRequirement::default());
    } else if requirement.is_required()
        && schemes.iter().all(|scheme| scheme.kind == SchemeKind::None)
    {
        members.retain_unreadable(&position, original_value);
    }
    (schemes, requirements)
}

/// The labels of the schemes, and the object that may describe them further. `original_value` is the same value, for
/// findings.
fn scheme_labels<'a>(
    value: Value,
    original_value: &Value,
    pointer: &'a JsonPointer<'a>,
    out: &mut FindingCollector,
) -> (Vec<String>, Option<MemberReader<'a>>) {
    match value {
        Value::Object(inner) if has_scheme_labels(&inner) => {
            let mut inner = MemberReader::new(inner, *pointer);
            let mut labels = inner.take_texts("schemes", LengthLimit::Line, out);
            if labels.is_empty() {
                labels.extend(inner.take_text("type", LengthLimit::Line, out));
            }
            (labels, Some(inner))
        }
        Value::Array(list) if list.iter().all(Value::is_string) => {
            out.add_coerced_type(pointer, original_value, EXPECTED_AUTHENTICATION);
            (
                member_reader::read_texts(list, pointer, LengthLimit::Line, out),
                None,
            )
        }
        Value::String(ref text) if informal_credentials::parse_required_flag(text).is_none() => {
            out.add_coerced_type(pointer, original_value, EXPECTED_AUTHENTICATION);
            (
                member_reader::read_texts(vec![value], pointer, LengthLimit::Line, out),
                None,
            )
        }
        _ => (Vec::new(), None),
    }
}

fn schemes_from_labels(
    labels: Vec<String>,
    mut details: Option<&mut MemberReader<'_>>,
    out: &mut FindingCollector,
) -> Vec<SecurityScheme> {
    let mut schemes: Vec<SecurityScheme> = Vec::new();
    for label in labels {
        if schemes.iter().all(|scheme| scheme.name != label) {
            let kind = labelled_scheme_kind(&label, details.as_deref_mut(), out);
            schemes.push(SecurityScheme {
                name: label,
                kind,
                description: None,
            });
        }
    }
    schemes
}

/// Whether the schemes are labels, as in 0.1.
fn has_scheme_labels(object: &Map<String, Value>) -> bool {
    match object.get("schemes") {
        Some(Value::Array(list)) => list.iter().all(|label| !label.is_object()),
        Some(other) => !other.is_object(),
        None => true,
    }
}

/// The kind of a label, with the key's location from `{"apiKey": {"in": …, "name": …}}` or `apiKeyHeader`.
fn labelled_scheme_kind(
    label: &str,
    details: Option<&mut MemberReader<'_>>,
    out: &mut FindingCollector,
) -> SchemeKind {
    let mut kind = scheme_kind_from_label(label);
    if let (
        SchemeKind::ApiKey {
            location,
            parameter,
        },
        Some(details),
    ) = (&mut kind, details)
    {
        if let Some((position, Value::Object(inner))) = details.take_member("apiKey", out) {
            let parent = details.pointer();
            let mut inner = MemberReader::new(inner, position.pointer_in(&parent));
            *location = take_api_key_location(&mut inner, out);
            *parameter = inner
                .take_text("name", LengthLimit::Line, out)
                .unwrap_or_default();
        } else if let Some(header) = details.take_text("apiKeyHeader", LengthLimit::Line, out) {
            *location = "header".to_owned();
            *parameter = header;
        }
    }
    kind
}
