//! Finds members about credentials that no version defines.

use serde_json::{Map, Value};

use super::demand::CredentialDemand;
use super::names::{is_about_credentials, is_demand};
use crate::member::{MAX_LIST, is_spelling};
use crate::wire::members::NESTS;

/// Members of a card that may contain members about credentials, besides those of [`NESTS`].
const HOLDERS: [&str; 6] = [
    "capabilities",
    "metadata",
    "callingPattern",
    "a2aTransport",
    "supportedInterfaces",
    "additionalInterfaces",
];

/// A member about credentials that no version defines, or that could not be read.
pub(crate) struct CredentialMember<'a> {
    /// The member of the card that contains it, unless it is at the top level.
    pub(crate) holder: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) value: &'a Value,
}

impl CredentialMember<'_> {
    pub(crate) fn demand(&self) -> CredentialDemand {
        let mut demand = CredentialDemand::default();
        if is_demand(self.name) {
            demand.demand(self.value);
        } else {
            demand.read(self.value);
        }
        demand
    }
}

pub(crate) fn asks(name: &str, value: &Value) -> bool {
    let holder = None;
    let member = CredentialMember {
        holder,
        name,
        value,
    };
    member.demand().asks()
}

pub(crate) fn members(unknown: &Map<String, Value>) -> Vec<CredentialMember<'_>> {
    let mut found = Vec::new();
    for (name, value) in unknown {
        if is_about_credentials(name) {
            found.push(CredentialMember {
                holder: None,
                name,
                value,
            });
        } else {
            let held = held_members(name, value).into_iter();
            found.extend(held.map(|(inner, value)| CredentialMember {
                holder: Some(name),
                name: inner,
                value,
            }));
        }
    }
    found
}

/// The members about credentials in a member of a card that may contain some.
pub(crate) fn held_members<'v>(holder: &str, value: &'v Value) -> Vec<(&'v str, &'v Value)> {
    if !is_holder(holder) {
        return Vec::new();
    }
    let single = std::slice::from_ref(value);
    let objects = value.as_array().map_or(single, Vec::as_slice);
    let members = objects
        .iter()
        .take(MAX_LIST)
        .filter_map(Value::as_object)
        .flatten();
    let about = members.filter(|(name, _)| is_about_credentials(name));
    about.map(|(name, value)| (name.as_str(), value)).collect()
}

fn is_holder(name: &str) -> bool {
    let spelt = |holder: &&str| is_spelling(name, holder);
    HOLDERS.iter().any(spelt) || NESTS.iter().any(spelt)
}

pub(crate) fn demand_of(unknown: &Map<String, Value>) -> CredentialDemand {
    let mut all = CredentialDemand::default();
    for member in members(unknown) {
        all.join(member.demand());
    }
    all
}
