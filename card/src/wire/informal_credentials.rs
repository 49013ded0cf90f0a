//! Reader of required credentials in members that no version defines (`auth`, `auth_required`, `authSchemes` and the
//! like), or in a version's own members in a form that no version defines.
//!
//! Clients do not read them, so a card that requires credentials only here seems to require none. Readable parts count
//! as schemes; an unreadable requirement is only reported ([`CredentialRequirement::is_required`]).

mod credential_members;
pub(super) mod credential_names;
mod requirement;

pub(crate) use credential_members::{
    combined_credential_requirement, find_credential_members, member_requires_credentials,
    nested_credential_members,
};
pub(crate) use credential_names::is_about_credentials;
pub(crate) use requirement::is_access_policy_label;
pub(super) use requirement::{CredentialRequirement, is_scheme_list, parse_required_flag};

#[cfg(test)]
#[path = "informal_tests.rs"]
mod tests;
