//! Accounts, their groups and their tokens.

pub(crate) mod bootstrap;
pub mod groups;
pub mod people;
pub mod people_routes;
mod records;
pub mod routes;
pub mod tokens;
