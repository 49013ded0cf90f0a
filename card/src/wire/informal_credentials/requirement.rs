//! Reader of the value of a member about credentials.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::credential_names::{CREDENTIAL_NAMES, says_credentials_required};
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::{self, LengthLimit, MAX_LIST_ELEMENTS, fold_name};
use crate::wire::v0_2::scheme_kind_from_label;
use crate::wire::{security, v1_0};
use crate::{SchemeKind, SecurityRequirement, SecurityScheme};

/// Inner members that have the same meaning one level lower.
const INNER_SCHEME_NAMES: [&str; 14] = [
    "scheme",
    "schemes",
    "type",
    "types",
    "method",
    "methods",
    "mechanism",
    "mechanisms",
    "supported",
    "supportedschemes",
    "supportedmethods",
    "supportedtypes",
    "mode",
    "protocol",
];

/// Inner members that state whether credentials are required.
const INNER_REQUIRED_NAMES: [&str; 5] = ["required", "mandatory", "enabled", "enforced", "needed"];

/// Maximum length of a publisher's own label in characters; longer texts are explanations.
const MAX_LABEL_CHARS: usize = 64;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct CredentialRequirement {
    /// Schemes that could be read, any one of which suffices. No duplicate names.
    schemes: Vec<SecurityScheme>,
    scheme_names: HashSet<String>,
    /// Whether credentials are required, if the member states it explicitly.
    explicitly_required: Option<bool>,
    is_unreadable: bool,
}

impl CredentialRequirement {
    pub(crate) fn from_value(value: &Value) -> Self {
        let mut requirement = CredentialRequirement::default();
        requirement.read_value(value);
        requirement
    }

    /// Whether credentials are required: explicitly, by schemes that all need some, or by unreadable text.
    pub(crate) fn is_required(&self) -> bool {
        let needs_all_schemes =
            !self.schemes.is_empty() && self.schemes.iter().all(needs_credentials);
        self.explicitly_required
            .unwrap_or(needs_all_schemes || self.is_unreadable)
    }

    /// Whether any credentials are required, even if only from some callers.
    pub(crate) fn requires_any(&self) -> bool {
        self.is_required() || self.schemes.iter().any(needs_credentials)
    }

    /// Whether the member explicitly states that no credentials are required.
    pub(crate) fn is_explicitly_optional(&self) -> bool {
        self.explicitly_required == Some(false)
    }

    /// The schemes, and the alternatives that they form. Both are empty if nothing could be read, or if schemes
    /// without credentials contradict an explicit requirement.
    pub(crate) fn into_schemes(self) -> (Vec<SecurityScheme>, Vec<SecurityRequirement>) {
        let CredentialRequirement {
            mut schemes,
            explicitly_required: required,
            ..
        } = self;
        if required == Some(true) {
            schemes.retain(needs_credentials);
        }
        let mut alternatives: Vec<SecurityRequirement> = schemes
            .iter()
            .map(|scheme| SecurityRequirement {
                schemes: vec![(scheme.name.clone(), Vec::new())],
            })
            .collect();
        if required == Some(false) && schemes.iter().all(needs_credentials) {
            alternatives.push(SecurityRequirement::default());
        }
        (schemes, alternatives)
    }

    pub(super) fn merge(&mut self, other: CredentialRequirement) {
        for scheme in other.schemes {
            self.add_scheme(&scheme.name, scheme.kind, scheme.description);
        }
        if let Some(flag) = other.explicitly_required {
            self.set_required(flag);
        }
        self.is_unreadable |= other.is_unreadable;
    }

    pub(super) fn read_value(&mut self, value: &Value) {
        match value {
            Value::Null => {}
            Value::Bool(flag) => self.set_required(*flag),
            Value::Number(_) => self.is_unreadable = true,
            Value::String(text) => self.read_text(text),
            Value::Array(list) => {
                for element in list.iter().take(MAX_LIST_ELEMENTS) {
                    if is_blank_value(element) {
                        self.is_unreadable = true;
                    } else {
                        self.read_value(element);
                    }
                }
            }
            Value::Object(object) => self.read_object(object),
        }
    }

    /// Sets whether credentials are required; once required, they stay required.
    fn set_required(&mut self, flag: bool) {
        self.explicitly_required = Some(flag || self.explicitly_required == Some(true));
    }

    fn read_text(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if let Some(flag) = parse_required_flag(text) {
            self.set_required(flag);
            return;
        }
        let is_label = !is_access_policy_label(text)
            && text.chars().count() <= MAX_LABEL_CHARS
            && !text.contains(char::is_whitespace)
            && !text.contains("://");
        match scheme_kind_from_label(text) {
            SchemeKind::Other { .. } if !is_label => self.is_unreadable = true,
            kind => self.add_scheme(text, kind, None),
        }
    }

    fn read_object(&mut self, object: &Map<String, Value>) {
        let before = (self.schemes.len(), self.explicitly_required);
        let is_scheme = self.read_scheme_object(object);
        if !is_scheme {
            for (name, value) in object {
                let name = fold_name(name);
                if INNER_SCHEME_NAMES.contains(&name.as_str())
                    || CREDENTIAL_NAMES.contains(&name.as_str())
                {
                    self.read_value(value);
                }
            }
            if self.schemes.len() == before.0 {
                self.read_schemes_by_name(object);
            }
        }
        for (name, value) in object {
            if INNER_REQUIRED_NAMES.contains(&fold_name(name).as_str())
                || says_credentials_required(name)
            {
                self.read_required_flag_or_scheme(value);
            }
        }
        // In 0.1 an empty list of schemes requires nothing, whatever else the object says.
        let scheme_list = object.get("schemes").and_then(Value::as_array);
        let has_no_schemes = scheme_list.is_some_and(Vec::is_empty);
        let has_no_effect = !is_scheme && (self.schemes.len(), self.explicitly_required) == before;
        self.is_unreadable |=
            has_no_effect && !has_no_schemes && !object.values().all(is_blank_value);
    }

    /// Reads an object that describes one scheme, in the form of any version; false if it does not describe one.
    fn read_scheme_object(&mut self, object: &Map<String, Value>) -> bool {
        let label_text = |name: &str| {
            let text = object.get(name)?.as_str()?.trim();
            (!text.is_empty() && parse_required_flag(text).is_none()).then_some(text)
        };
        let is_wrapped = v1_0::SCHEME_WRAPPERS
            .iter()
            .any(|name| object.contains_key(*name));
        let label = match label_text("type").or_else(|| label_text("scheme")) {
            Some(label) => label,
            None if is_wrapped => "scheme",
            None => return false,
        };
        let Some((kind, description)) = read_scheme_silently(object.clone()) else {
            return false;
        };
        let name = label_text("id").unwrap_or(label);
        let is_other_kind = |other: &SecurityScheme| other.name == name && other.kind != kind;
        if self.scheme_names.contains(name) && self.schemes.iter().any(is_other_kind) {
            let name = format!("{name}-{}", self.schemes.len() + 1);
            self.add_scheme(&name, kind, description);
        } else {
            self.add_scheme(name, kind, description);
        }
        true
    }

    /// Reads an object with schemes by name: `{"bearer": {…}}`.
    fn read_schemes_by_name(&mut self, object: &Map<String, Value>) {
        for (name, value) in object {
            let kind = scheme_kind_from_label(name);
            match (&kind, value) {
                (SchemeKind::Other { .. }, _) | (_, Value::Bool(false)) => {}
                (_, Value::Bool(true)) => self.add_scheme(name, kind, None),
                (SchemeKind::None, _) | (_, Value::Null) => self.is_unreadable = true,
                (_, Value::Object(inner)) => {
                    let mut scheme_object = inner.clone();
                    scheme_object
                        .entry("type")
                        .or_insert_with(|| name.as_str().into());
                    let (kind, description) =
                        read_scheme_silently(scheme_object).unwrap_or((kind, None));
                    self.add_scheme(name, kind, description);
                }
                _ => self.add_scheme(name, kind, None),
            }
        }
    }

    /// Reads a member whose name indicates that credentials are required: yes, no, or the required scheme.
    pub(super) fn read_required_flag_or_scheme(&mut self, value: &Value) {
        match value {
            Value::Bool(flag) => self.set_required(*flag),
            Value::String(text) => match (
                parse_required_flag(text.trim()),
                scheme_kind_from_label(text),
            ) {
                (Some(flag), _) => self.set_required(flag),
                (None, SchemeKind::Other { .. }) => self.is_unreadable |= !is_blank_value(value),
                (None, kind) => self.add_scheme(text.trim(), kind, None),
            },
            other => self.is_unreadable |= !is_blank_value(other),
        }
    }

    /// Adds a scheme, unless there is one of that name or the limit is reached.
    fn add_scheme(&mut self, name: &str, kind: SchemeKind, description: Option<String>) {
        let out = &mut FindingCollector::default();
        let name = member_reader::trim_and_truncate(
            name.to_owned(),
            &JsonPointer::Root,
            LengthLimit::Line,
            out,
        );
        let Some(name) = name.filter(|_| self.schemes.len() < MAX_LIST_ELEMENTS) else {
            return;
        };
        if self.scheme_names.insert(name.clone()) {
            self.schemes.push(SecurityScheme {
                name,
                kind,
                description,
            });
        }
    }
}

/// Reads a scheme in the form of any version, without reporting its oddities.
fn read_scheme_silently(object: Map<String, Value>) -> Option<(SchemeKind, Option<String>)> {
    let out = &mut FindingCollector::default();
    security::read_scheme(Value::Object(object), &JsonPointer::Root, out)
}

/// Whether a scheme requires anything of a caller.
fn needs_credentials(scheme: &SecurityScheme) -> bool {
    scheme.kind != SchemeKind::None
}

/// The flag in a text that states whether something is required; `None` for other texts.
pub(crate) fn parse_required_flag(text: &str) -> Option<bool> {
    match fold_name(text).as_str() {
        "true" | "yes" | "required" | "mandatory" | "enabled" | "always" => Some(true),
        "false" | "no" | "notrequired" | "notneeded" | "optional" | "disabled" | "never" => {
            Some(false)
        }
        _ => None,
    }
}

/// Whether a label is about credentials or permissions, but names no way to authenticate: `role_based`,
/// `auth_required`.
pub(crate) fn is_access_policy_label(label: &str) -> bool {
    const ACCESS_POLICY_LABELS: [&str; 6] = [
        "rolebased",
        "rolebasedaccesscontrol",
        "rbac",
        "attributebased",
        "abac",
        "permissionbased",
    ];
    let is_unknown = matches!(scheme_kind_from_label(label), SchemeKind::Other { .. });
    is_unknown
        && (ACCESS_POLICY_LABELS.contains(&fold_name(label).as_str())
            || says_credentials_required(label))
}

/// Whether a value is a list of schemes of known kinds, by its form alone.
pub(crate) fn is_scheme_list(value: &Value) -> bool {
    let is_scheme = |element: &Value| {
        let label = ["type", "scheme"]
            .iter()
            .find_map(|name| element.get(name)?.as_str())
            .or_else(|| element.as_str());
        label
            .is_some_and(|label| !matches!(scheme_kind_from_label(label), SchemeKind::Other { .. }))
    };
    let list = value.as_array();
    list.is_some_and(|list| !list.is_empty() && list.iter().take(MAX_LIST_ELEMENTS).all(is_scheme))
}

fn is_blank_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
