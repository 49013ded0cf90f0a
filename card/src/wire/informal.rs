//! Reads requirements for credentials from members that no version defines: `auth`, `auth_required`, `authSchemes`
//! and the like, or a version's own members in a form that no version defines.
//!
//! Clients do not read them, so a card that requires credentials only here seems to require none. Readable parts
//! count as schemes; an unreadable requirement is only reported ([`CredentialDemand::demands`]).

mod demand;
mod members;
pub(super) mod names;

pub(super) use demand::{CredentialDemand, flag_of};
pub(crate) use demand::{is_scheme_list, names_no_scheme};
pub(crate) use members::{asks, demand_of, held_members, members};
pub(crate) use names::is_about_credentials;

#[cfg(test)]
#[path = "informal_tests.rs"]
mod tests;
