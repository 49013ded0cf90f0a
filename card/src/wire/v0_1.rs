//! Reads the `authentication` member of 0.1: a list of scheme labels, any of which is enough. Other content of it, in
//! real cards, is read by [`informal`].

use serde_json::{Map, Value};

use super::informal::{self, CredentialDemand};
use super::names::take_location;
use super::v0_2::labelled;
use crate::finding::Findings;
use crate::member::{self, Length, Members};
use crate::pointer::Pointer;
use crate::{SchemeKind, SecurityRequirement, SecurityScheme, rules};

const WANTED: &str = "an object with the list `schemes`";

/// Takes `authentication`; each label becomes a scheme of that name and an alternative of its own.
///
/// A card that also has `securitySchemes` is of a later version, and those count.
pub(super) fn authentication(
    members: &mut Members<'_>,
    has_schemes: bool,
    out: &mut Findings,
) -> (Vec<SecurityScheme>, Vec<SecurityRequirement>) {
    let Some((spot, value)) = members.take("authentication", out) else {
        return (Vec::new(), Vec::new());
    };
    let parent = members.at();
    let at = spot.below(&parent);
    if has_schemes {
        out.add_value(&rules::AUTHENTICATION_LATE, &at, &value);
        members.keep(&spot, value);
        return (Vec::new(), Vec::new());
    }
    let told = CredentialDemand::by(&value);
    let unread = value.clone();
    let (mut labels, mut details) = labels(value, &unread, &at, out);
    labels.retain(|label| !informal::names_no_scheme(label));
    if labels.is_empty() {
        // In a form of no version, or unreadable.
        let demands = told.demands();
        let (schemes, alternatives) = told.into_schemes();
        if !schemes.is_empty() {
            out.coerced(&at, &unread, WANTED);
        } else if demands || !matches!(unread, Value::Object(_) | Value::Array(_)) {
            out.mistyped(&at, &unread, WANTED);
        }
        if demands && schemes.is_empty() {
            members.keep(&spot, unread);
        }
        return (schemes, alternatives);
    }
    let schemes = described(labels, details.as_mut(), out);
    let mut requirements: Vec<SecurityRequirement> = schemes
        .iter()
        .map(|scheme| SecurityRequirement {
            schemes: vec![(scheme.name.clone(), Vec::new())],
        })
        .collect();
    let open = schemes.iter().any(|scheme| scheme.kind == SchemeKind::None);
    if told.is_optional() && !open {
        requirements.push(SecurityRequirement::default());
    } else if told.demands() && schemes.iter().all(|scheme| scheme.kind == SchemeKind::None) {
        members.keep(&spot, unread);
    }
    (schemes, requirements)
}

/// The labels of the schemes, and the object that may describe them further. `unread` is the same value, for findings.
fn labels<'a>(
    value: Value,
    unread: &Value,
    at: &'a Pointer<'a>,
    out: &mut Findings,
) -> (Vec<String>, Option<Members<'a>>) {
    match value {
        Value::Object(inner) if is_labelled(&inner) => {
            let mut inner = Members::new(inner, *at);
            let mut labels = inner.texts("schemes", Length::Line, out);
            if labels.is_empty() {
                labels.extend(inner.text("type", Length::Line, out));
            }
            (labels, Some(inner))
        }
        Value::Array(list) if list.iter().all(Value::is_string) => {
            out.coerced(at, unread, WANTED);
            (member::texts(list, at, Length::Line, out), None)
        }
        Value::String(ref text) if informal::flag_of(text).is_none() => {
            out.coerced(at, unread, WANTED);
            (member::texts(vec![value], at, Length::Line, out), None)
        }
        _ => (Vec::new(), None),
    }
}

fn described(
    labels: Vec<String>,
    mut details: Option<&mut Members<'_>>,
    out: &mut Findings,
) -> Vec<SecurityScheme> {
    let mut schemes: Vec<SecurityScheme> = Vec::new();
    for label in labels {
        if schemes.iter().all(|scheme| scheme.name != label) {
            let kind = detailed(&label, details.as_deref_mut(), out);
            schemes.push(SecurityScheme {
                name: label,
                kind,
                description: None,
            });
        }
    }
    schemes
}

/// Whether the schemes are labels, as 0.1 has them.
fn is_labelled(object: &Map<String, Value>) -> bool {
    match object.get("schemes") {
        Some(Value::Array(list)) => list.iter().all(|label| !label.is_object()),
        Some(other) => !other.is_object(),
        None => true,
    }
}

/// The kind of a label, with the key's location from `{"apiKey": {"in": …, "name": …}}` or `apiKeyHeader`.
fn detailed(label: &str, details: Option<&mut Members<'_>>, out: &mut Findings) -> SchemeKind {
    let mut kind = labelled(label);
    if let (
        SchemeKind::ApiKey {
            location,
            parameter,
        },
        Some(details),
    ) = (&mut kind, details)
    {
        if let Some((spot, Value::Object(inner))) = details.take("apiKey", out) {
            let parent = details.at();
            let mut inner = Members::new(inner, spot.below(&parent));
            *location = take_location(&mut inner, out);
            *parameter = inner.text("name", Length::Line, out).unwrap_or_default();
        } else if let Some(header) = details.text("apiKeyHeader", Length::Line, out) {
            *location = "header".to_owned();
            *parameter = header;
        }
    }
    kind
}
