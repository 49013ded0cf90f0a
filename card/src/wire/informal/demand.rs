//! Reads the value of a member about credentials.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::names::{NAMES, is_demand};
use crate::finding::Findings;
use crate::member::{self, Length, MAX_LIST, folded};
use crate::pointer::Pointer;
use crate::wire::v0_2::labelled;
use crate::wire::{security, v1_0};
use crate::{SchemeKind, SecurityRequirement, SecurityScheme};

/// Inner members with the same meaning one level lower.
const INNER_NAMES: [&str; 14] = [
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

/// Inner members that tell whether credentials are required.
const INNER_FLAGS: [&str; 5] = ["required", "mandatory", "enabled", "enforced", "needed"];

/// Longest label of a publisher's own; longer texts are explanations.
const MAX_LABEL_CHARS: usize = 64;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct CredentialDemand {
    /// The schemes that could be read, any one of which is enough. No duplicate names.
    schemes: Vec<SecurityScheme>,
    names: HashSet<String>,
    /// Whether credentials are required, if the member says so explicitly.
    required: Option<bool>,
    vague: bool,
}

impl CredentialDemand {
    pub(crate) fn by(value: &Value) -> Self {
        let mut demand = CredentialDemand::default();
        demand.read(value);
        demand
    }

    /// Whether credentials are required: explicitly, by schemes that all need some, or by unreadable text.
    pub(crate) fn demands(&self) -> bool {
        let named = !self.schemes.is_empty() && self.schemes.iter().all(is_closed);
        self.required.unwrap_or(named || self.vague)
    }

    /// Whether any credentials are required, even if only of some callers.
    pub(crate) fn asks(&self) -> bool {
        self.demands() || self.schemes.iter().any(is_closed)
    }

    /// Whether the member explicitly says that no credentials are required.
    pub(crate) fn is_optional(&self) -> bool {
        self.required == Some(false)
    }

    /// The schemes, and the alternatives that they form. Both are empty if nothing could be read, or if schemes
    /// without credentials contradict an explicit requirement.
    pub(crate) fn into_schemes(self) -> (Vec<SecurityScheme>, Vec<SecurityRequirement>) {
        let CredentialDemand {
            mut schemes,
            required,
            ..
        } = self;
        if required == Some(true) {
            schemes.retain(is_closed);
        }
        let mut alternatives: Vec<SecurityRequirement> = schemes
            .iter()
            .map(|scheme| SecurityRequirement {
                schemes: vec![(scheme.name.clone(), Vec::new())],
            })
            .collect();
        if required == Some(false) && schemes.iter().all(is_closed) {
            alternatives.push(SecurityRequirement::default());
        }
        (schemes, alternatives)
    }

    pub(super) fn join(&mut self, other: CredentialDemand) {
        for scheme in other.schemes {
            self.add(&scheme.name, scheme.kind, scheme.description);
        }
        if let Some(flag) = other.required {
            self.flag(flag);
        }
        self.vague |= other.vague;
    }

    pub(super) fn read(&mut self, value: &Value) {
        match value {
            Value::Null => {}
            Value::Bool(flag) => self.flag(*flag),
            Value::Number(_) => self.vague = true,
            Value::String(text) => self.text(text),
            Value::Array(list) => {
                for element in list.iter().take(MAX_LIST) {
                    if is_blank(element) {
                        self.vague = true;
                    } else {
                        self.read(element);
                    }
                }
            }
            Value::Object(object) => self.object(object),
        }
    }

    /// Once required, credentials stay required.
    fn flag(&mut self, flag: bool) {
        self.required = Some(flag || self.required == Some(true));
    }

    fn text(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if let Some(flag) = flag_of(text) {
            self.flag(flag);
            return;
        }
        let is_label = !names_no_scheme(text)
            && text.chars().count() <= MAX_LABEL_CHARS
            && !text.contains(char::is_whitespace)
            && !text.contains("://");
        match labelled(text) {
            SchemeKind::Other { .. } if !is_label => self.vague = true,
            kind => self.add(text, kind, None),
        }
    }

    fn object(&mut self, object: &Map<String, Value>) {
        let before = (self.schemes.len(), self.required);
        let is_scheme = self.scheme(object);
        if !is_scheme {
            for (name, value) in object {
                let name = folded(name);
                if INNER_NAMES.contains(&name.as_str()) || NAMES.contains(&name.as_str()) {
                    self.read(value);
                }
            }
            if self.schemes.len() == before.0 {
                self.keyed(object);
            }
        }
        for (name, value) in object {
            if INNER_FLAGS.contains(&folded(name).as_str()) || is_demand(name) {
                self.demand(value);
            }
        }
        // In 0.1 an empty list of schemes requires nothing, whatever else the object says.
        let open = object.get("schemes").and_then(Value::as_array);
        let open = open.is_some_and(Vec::is_empty);
        let silent = !is_scheme && (self.schemes.len(), self.required) == before;
        self.vague |= silent && !open && !object.values().all(is_blank);
    }

    /// Reads an object that describes one scheme, in the form of any version; false where it does not.
    fn scheme(&mut self, object: &Map<String, Value>) -> bool {
        let text = |name: &str| {
            let text = object.get(name)?.as_str()?.trim();
            (!text.is_empty() && flag_of(text).is_none()).then_some(text)
        };
        let wrapped = v1_0::WRAPPERS.iter().any(|name| object.contains_key(*name));
        let label = match text("type").or_else(|| text("scheme")) {
            Some(label) => label,
            None if wrapped => "scheme",
            None => return false,
        };
        let Some((kind, description)) = scheme(object.clone()) else {
            return false;
        };
        let name = text("id").unwrap_or(label);
        let differs = |other: &SecurityScheme| other.name == name && other.kind != kind;
        if self.names.contains(name) && self.schemes.iter().any(differs) {
            let name = format!("{name}-{}", self.schemes.len() + 1);
            self.add(&name, kind, description);
        } else {
            self.add(name, kind, description);
        }
        true
    }

    /// Reads an object whose members are named by schemes: `{"bearer": {…}}`.
    fn keyed(&mut self, object: &Map<String, Value>) {
        for (name, value) in object {
            let kind = labelled(name);
            match (&kind, value) {
                (SchemeKind::Other { .. }, _) | (_, Value::Bool(false)) => {}
                (_, Value::Bool(true)) => self.add(name, kind, None),
                (SchemeKind::None, _) | (_, Value::Null) => self.vague = true,
                (_, Value::Object(inner)) => {
                    let mut described = inner.clone();
                    described
                        .entry("type")
                        .or_insert_with(|| name.as_str().into());
                    let (kind, description) = scheme(described).unwrap_or((kind, None));
                    self.add(name, kind, description);
                }
                _ => self.add(name, kind, None),
            }
        }
    }

    /// Reads a member whose name says that credentials are required: yes, no, or the required scheme.
    pub(super) fn demand(&mut self, value: &Value) {
        match value {
            Value::Bool(flag) => self.flag(*flag),
            Value::String(text) => match (flag_of(text.trim()), labelled(text)) {
                (Some(flag), _) => self.flag(flag),
                (None, SchemeKind::Other { .. }) => self.vague |= !is_blank(value),
                (None, kind) => self.add(text.trim(), kind, None),
            },
            other => self.vague |= !is_blank(other),
        }
    }

    /// Adds a scheme unless there is one of that name, or more of them than are read.
    fn add(&mut self, name: &str, kind: SchemeKind, description: Option<String>) {
        let out = &mut Findings::default();
        let name = member::bounded(name.to_owned(), &Pointer::Root, Length::Line, out);
        let Some(name) = name.filter(|_| self.schemes.len() < MAX_LIST) else {
            return;
        };
        if self.names.insert(name.clone()) {
            self.schemes.push(SecurityScheme {
                name,
                kind,
                description,
            });
        }
    }
}

/// Reads a scheme in the form of any version, without reporting its oddities.
fn scheme(object: Map<String, Value>) -> Option<(SchemeKind, Option<String>)> {
    let out = &mut Findings::default();
    security::scheme(Value::Object(object), &Pointer::Root, out)
}

/// Whether a scheme requires anything of a caller.
fn is_closed(scheme: &SecurityScheme) -> bool {
    scheme.kind != SchemeKind::None
}

/// A text that answers whether something is required.
pub(crate) fn flag_of(text: &str) -> Option<bool> {
    match folded(text).as_str() {
        "true" | "yes" | "required" | "mandatory" | "enabled" | "always" => Some(true),
        "false" | "no" | "notrequired" | "notneeded" | "optional" | "disabled" | "never" => {
            Some(false)
        }
        _ => None,
    }
}

/// Whether a label is about credentials or permissions, but names no way to authenticate: `role_based`, `auth_required`.
pub(crate) fn names_no_scheme(label: &str) -> bool {
    const POLICIES: [&str; 6] = [
        "rolebased",
        "rolebasedaccesscontrol",
        "rbac",
        "attributebased",
        "abac",
        "permissionbased",
    ];
    let is_unknown = matches!(labelled(label), SchemeKind::Other { .. });
    is_unknown && (POLICIES.contains(&folded(label).as_str()) || is_demand(label))
}

/// Whether a value is a list of schemes of kinds that are known, by its form alone.
pub(crate) fn is_scheme_list(value: &Value) -> bool {
    let is_scheme = |element: &Value| {
        let label = ["type", "scheme"]
            .iter()
            .find_map(|name| element.get(name)?.as_str())
            .or_else(|| element.as_str());
        label.is_some_and(|label| !matches!(labelled(label), SchemeKind::Other { .. }))
    };
    let list = value.as_array();
    list.is_some_and(|list| !list.is_empty() && list.iter().take(MAX_LIST).all(is_scheme))
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
