//! Search for members about credentials that no version defines.

use serde_json::{Map, Value};

use super::credential_names::{is_about_credentials, says_credentials_required};
use super::requirement::CredentialRequirement;
use crate::member_reader::{MAX_LIST_ELEMENTS, is_spelling_of};
use crate::wire::member_names::NESTING_MEMBERS;

/// Members of a card that may contain members about credentials, besides those of [`NESTING_MEMBERS`].
const HOLDER_MEMBERS: [&str; 6] = [
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
    pub(crate) fn requirement(&self) -> CredentialRequirement {
        let mut requirement = CredentialRequirement::default();
        if says_credentials_required(self.name) {
            requirement.read_required_flag_or_scheme(self.value);
        } else {
            requirement.read_value(self.value);
        }
        requirement
    }
}

pub(crate) fn member_requires_credentials(name: &str, value: &Value) -> bool {
    let holder = None;
    let member = CredentialMember {
        holder,
        name,
        value,
    };
    member.requirement().requires_any()
}

pub(crate) fn find_credential_members(unknown: &Map<String, Value>) -> Vec<CredentialMember<'_>> {
    let mut credential_members = Vec::new();
    for (name, value) in unknown {
        if is_about_credentials(name) {
            credential_members.push(CredentialMember {
                holder: None,
                name,
                value,
            });
        } else {
            let nested_members = nested_credential_members(name, value).into_iter();
            credential_members.extend(nested_members.map(|(inner, value)| CredentialMember {
                holder: Some(name),
                name: inner,
                value,
            }));
        }
    }
    credential_members
}

/// The members about credentials inside a member of a card that may contain some.
pub(crate) fn nested_credential_members<'v>(
    holder: &str,
    value: &'v Value,
) -> Vec<(&'v str, &'v Value)> {
    if !can_contain_credentials(holder) {
        return Vec::new();
    }
    let single_object = std::slice::from_ref(value);
    let objects = value.as_array().map_or(single_object, Vec::as_slice);
    let members = objects
        .iter()
        .take(MAX_LIST_ELEMENTS)
        .filter_map(Value::as_object)
        .flatten();
    let credential_members = members.filter(|(name, _)| is_about_credentials(name));
    credential_members
        .map(|(name, value)| (name.as_str(), value))
        .collect()
}

fn can_contain_credentials(name: &str) -> bool {
    let is_spelling_of_name = |holder: &&str| is_spelling_of(name, holder);
    HOLDER_MEMBERS.iter().any(is_spelling_of_name)
        || NESTING_MEMBERS.iter().any(is_spelling_of_name)
}

pub(crate) fn combined_credential_requirement(
    unknown: &Map<String, Value>,
) -> CredentialRequirement {
    let mut combined = CredentialRequirement::default();
    for member in find_credential_members(unknown) {
        combined.merge(member.requirement());
    }
    combined
}
