//! Where cards speak of credentials outside of what the versions have for it: the names of such members, and
//! which of them a card has.

use serde_json::{Map, Value};

use super::Told;
use crate::member::{self, MAX_LIST, folded};
use crate::wire::NESTS;

/// Members that say which credentials are asked for, without case and signs.
pub(super) const NAMES: [&str; 24] = [
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

/// Members of a card in which its publisher may speak of credentials, beside those of [`NESTS`].
const HOLDERS: [&str; 4] = [
    "capabilities",
    "metadata",
    "supportedInterfaces",
    "additionalInterfaces",
];

/// Whether a member is called a demand for credentials: `auth_required`, `requiresAuthentication`, …
pub(super) fn is_demand(name: &str) -> bool {
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
pub(crate) fn credentials(object: &Map<String, Value>) -> Option<Value> {
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
    pub(crate) fn told(&self) -> Told {
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
    for place in places(unknown) {
        all.join(place.told());
    }
    all
}
