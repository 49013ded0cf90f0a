//! Accounts, their groups, their tokens and their sessions.

pub mod attempts;
pub(crate) mod bootstrap;
pub mod groups;
mod last_way_in;
pub mod page;
pub mod people;
pub mod people_routes;
pub mod provider_sign_in;
mod records;
pub mod refusals;
pub(crate) mod reserved_names;
pub mod revocation_pages;
pub mod routes;
pub mod session_routes;
pub mod sessions;
pub mod sign_in;
pub mod tokens;
