//! What a card says of credentials where no version says it: in `auth`, `auth_required`, `authSchemes` and
//! the like, or in a form that no version gives its own members.
//!
//! Clients read none of it, so a card that demands credentials only here looks open to them. What can be
//! read counts as schemes; a demand that cannot be read is told as such ([`Told::demands`]).

pub(super) mod names;
mod places;
mod told;

pub(crate) use names::is_about_credentials;
pub(crate) use places::{asks, places, told};
pub(super) use told::{Told, flag_of};

#[cfg(test)]
#[path = "informal_tests.rs"]
mod tests;
