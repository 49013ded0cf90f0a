//! What a card says of credentials where no version says it: in `auth`, `auth_required`, `authSchemes` and
//! the like, or in a form that no version gives its own members.
//!
//! Clients read none of it, so a card that demands credentials only here looks open to them. What can be
//! read counts as schemes; a demand that cannot be read is told as such ([`CredentialDemand::demands`]).

mod demand;
mod members;
pub(super) mod names;

pub(super) use demand::{CredentialDemand, flag_of};
pub(crate) use members::{asks, demand_of, members};
pub(crate) use names::is_about_credentials;

#[cfg(test)]
#[path = "informal_tests.rs"]
mod tests;
