//! Accounts, their groups, their tokens and their sessions.

pub mod attempts;
pub(crate) mod bootstrap;
pub mod groups;
pub mod page;
pub mod people;
pub mod people_routes;
pub mod provider_sign_in;
mod records;
pub mod refusals;
pub mod routes;
pub mod session_routes;
pub mod sessions;
pub mod sign_in;
pub mod tokens;
