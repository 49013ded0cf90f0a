//! What a card says of credentials where no version says it: in `auth`, `auth_required`, `authSchemes` and
//! the like, or in a form that no version gives its own members.
//!
//! Clients read none of it, so a card that demands credentials only here looks open to them. What can be
//! read counts as schemes; a demand that cannot be read is told as such ([`Told::demands`]).

use serde_json::{Map, Value};

use super::v0_2::labelled;
use super::{NESTS, security, v1_0};
use crate::finding::Findings;
use crate::member::{self, Length, MAX_LIST, folded};
use crate::pointer::Pointer;
use crate::{SchemeKind, SecurityRequirement, SecurityScheme};

/// Members that say which credentials are asked for, without case and signs.
const NAMES: [&str; 24] = [
    "auth",
    "authentication",
    "authorization",
    "authentications",
    "authscheme",
    "authschemes",
    "authenticationscheme",
    "authenticationschemes",
    "authtype",
    "authtypes",
    "authenticationtype",
    "authenticationtypes",
    "authmethod",
    "authmethods",
    "authenticationmethod",
    "authenticationmethods",
    "authmode",
    "authprotocol",
    "authmechanism",
    "authmechanisms",
    "security",
    "securityscheme",
    "securityschemes",
    "securityrequirements",
];

/// Members of those that say the same one level lower.
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

/// Members of those that say whether anything is asked for.
const INNER_FLAGS: [&str; 5] = ["required", "mandatory", "enabled", "enforced", "needed"];

/// Members of a card in which its publisher may speak of credentials, beside those of [`NESTS`].
const HOLDERS: [&str; 4] = [
    "capabilities",
    "metadata",
    "supportedInterfaces",
    "additionalInterfaces",
];

/// A label of a publisher's own is at most this long; longer ones explain something.
const MAX_LABEL_CHARS: usize = 64;

/// What a member says of credentials.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Told {
    /// The schemes that could be read, of which any one will do. Each name once.
    schemes: Vec<SecurityScheme>,
    /// Whether credentials are needed, where that is said outright.
    required: Option<bool>,
    /// Whether something is said that could not be read.
    vague: bool,
}

impl Told {
    /// What the value of a member that says which credentials are asked for comes to.
    pub(super) fn by(value: &Value) -> Self {
        let mut told = Told::default();
        told.read(value);
        told
    }

    /// Whether credentials are asked for, as far as this says: outright, by naming schemes that all ask for
    /// something, or by words that could not be read.
    pub(crate) fn demands(&self) -> bool {
        let named = !self.schemes.is_empty() && self.schemes.iter().all(is_closed);
        self.required.unwrap_or(named || self.vague)
    }

    /// Whether anything is asked for, be it of some callers only.
    pub(super) fn asks(&self) -> bool {
        self.demands() || self.schemes.iter().any(is_closed)
    }

    /// Whether it is said outright that a caller need not bring anything.
    pub(super) fn is_optional(&self) -> bool {
        self.required == Some(false)
    }

    /// The schemes and the alternatives that they are; without any where nothing could be read, or where
    /// schemes that ask for nothing stand beside a demand.
    pub(super) fn into_schemes(self) -> (Vec<SecurityScheme>, Vec<SecurityRequirement>) {
        let Told {
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

    fn read(&mut self, value: &Value) {
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

    /// A demand once made stays.
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
        let is_label = text.chars().count() <= MAX_LABEL_CHARS
            && !text.contains(char::is_whitespace)
            && !text.contains("://");
        match labelled(text) {
            SchemeKind::Other { .. } if !is_label => self.vague = true,
            kind => self.add(text, kind, None),
        }
    }

    fn object(&mut self, object: &Map<String, Value>) {
        let before = (self.schemes.len(), self.required);
        if !self.scheme(object) {
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
        let silent = (self.schemes.len(), self.required) == before;
        self.vague |= silent && !object.values().all(is_blank);
    }

    /// Reads an object that describes one scheme, in the form of any version; false where it does not.
    fn scheme(&mut self, object: &Map<String, Value>) -> bool {
        let text = |name: &str| {
            let text = object.get(name)?.as_str()?.trim();
            (!text.is_empty() && flag_of(text).is_none()).then_some(text)
        };
        let wrapped = v1_0::WRAPPERS.iter().any(|name| object.contains_key(*name));
        let (label, named) = match (text("type"), text("scheme")) {
            (Some(kind), _) => (kind, None),
            (None, Some(scheme)) => (scheme, Some(labelled(scheme))),
            (None, None) if wrapped => ("scheme", None),
            (None, None) => return false,
        };
        let read = match named {
            // `scheme` alone may name any kind; what it does not name is a scheme of HTTP.
            Some(
                kind @ (SchemeKind::Oauth2 { .. }
                | SchemeKind::OpenIdConnect { .. }
                | SchemeKind::MutualTls
                | SchemeKind::None),
            ) => Some((kind, None)),
            _ => scheme(object.clone()),
        };
        let Some((kind, description)) = read else {
            return false;
        };
        self.add(text("id").unwrap_or(label), kind, description);
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

    /// What a member says that is called a demand: yes, no, or the scheme that is demanded.
    fn demand(&mut self, value: &Value) {
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
        if self.schemes.iter().all(|scheme| scheme.name != name) {
            self.schemes.push(SecurityScheme {
                name,
                kind,
                description,
            });
        }
    }
}

/// A scheme as the versions describe one; what is odd about it has no finding of its own here.
fn scheme(object: Map<String, Value>) -> Option<(SchemeKind, Option<String>)> {
    let out = &mut Findings::default();
    security::scheme(Value::Object(object), &Pointer::Root, out)
}

/// Whether a scheme asks a caller for anything.
fn is_closed(scheme: &SecurityScheme) -> bool {
    scheme.kind != SchemeKind::None
}

/// A text that is an answer to whether something is needed.
pub(super) fn flag_of(text: &str) -> Option<bool> {
    match folded(text).as_str() {
        "true" | "yes" | "required" | "mandatory" | "enabled" | "always" => Some(true),
        "false" | "no" | "notrequired" | "notneeded" | "optional" | "disabled" | "never" => {
            Some(false)
        }
        _ => None,
    }
}

/// Whether a value says nothing.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a member is called a demand for credentials: `auth_required`, `requiresAuthentication`, …
fn is_demand(name: &str) -> bool {
    let name = folded(name);
    let about = name.contains("apikey")
        || name.contains("credential")
        || (name.contains("auth") && !name.contains("authority") && !is_of_authors(&name));
    let demand = ["requir", "need", "mandatory", "enforce"];
    about && demand.iter().any(|word| name.contains(word))
}

/// Whether the name speaks of an author and not of authorisation.
fn is_of_authors(name: &str) -> bool {
    name.contains("author") && !name.contains("authoriz") && !name.contains("authoris")
}

/// Whether a member of this name speaks of the credentials that callers bring.
pub(crate) fn is_about_credentials(name: &str) -> bool {
    NAMES.contains(&folded(name).as_str()) || is_demand(name)
}

/// The members of an object that speak of credentials, where it has any.
pub(super) fn credentials(object: &Map<String, Value>) -> Option<Value> {
    let about = object
        .iter()
        .filter(|(name, _)| is_about_credentials(name))
        .map(|(name, value)| (name.clone(), value.clone()));
    let about: Map<String, Value> = about.collect();
    (!about.is_empty()).then_some(Value::Object(about))
}

/// A member that speaks of credentials, among those of a card that no version knows or nobody could read.
pub(crate) struct Place<'a> {
    /// The member of the card in which it stands, where it is none itself.
    pub(crate) holder: Option<&'a str>,
    /// Its name.
    pub(crate) name: &'a str,
    /// What it says.
    pub(crate) value: &'a Value,
}

impl Place<'_> {
    /// What it comes to.
    pub(super) fn told(&self) -> Told {
        let mut told = Told::default();
        if is_demand(self.name) {
            told.demand(self.value);
        } else {
            told.read(self.value);
        }
        told
    }
}

/// Whether a member of that name asks callers for anything.
pub(crate) fn asks(name: &str, value: &Value) -> bool {
    let holder = None;
    let place = Place {
        holder,
        name,
        value,
    };
    place.told().asks()
}

/// Every such member, in the card's order.
pub(crate) fn places(unknown: &Map<String, Value>) -> Vec<Place<'_>> {
    let mut places = Vec::new();
    for (name, value) in unknown {
        if is_about_credentials(name) {
            places.push(Place {
                holder: None,
                name,
                value,
            });
        } else if is_holder(name) {
            let single = std::slice::from_ref(value);
            let objects = value.as_array().map_or(single, Vec::as_slice);
            let members = objects
                .iter()
                .take(MAX_LIST)
                .filter_map(Value::as_object)
                .flatten();
            let about = members.filter(|(name, _)| is_about_credentials(name));
            places.extend(about.map(|(inner, value)| Place {
                holder: Some(name),
                name: inner,
                value,
            }));
        }
    }
    places
}

/// Whether a publisher may speak of credentials inside this member of a card.
fn is_holder(name: &str) -> bool {
    let spelt = |holder: &&str| member::is_spelling(name, holder);
    HOLDERS.iter().any(spelt) || NESTS.iter().any(spelt)
}

/// What all of them say together.
pub(crate) fn told(unknown: &Map<String, Value>) -> Told {
    let mut all = Told::default();
    for told in places(unknown).iter().map(Place::told) {
        for scheme in told.schemes {
            all.add(&scheme.name.clone(), scheme.kind, scheme.description);
        }
        all.required = match (all.required, told.required) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (one, other) => one.or(other),
        };
        all.vague |= told.vague;
    }
    all
}

#[cfg(test)]
#[path = "informal_tests.rs"]
mod tests;
