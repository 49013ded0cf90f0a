//! Where cards speak of credentials outside of what the versions have for it.

use serde_json::{Map, Value};

use super::names::{is_about_credentials, is_demand};
use super::told::Told;
use crate::member::{self, MAX_LIST};
use crate::wire::members::NESTS;

/// Members of a card in which its publisher may speak of credentials, beside those of [`NESTS`].
const HOLDERS: [&str; 4] = [
    "capabilities",
    "metadata",
    "supportedInterfaces",
    "additionalInterfaces",
];

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
