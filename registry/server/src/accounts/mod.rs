//! Accounts and their tokens.

pub mod routes;
pub mod tokens;
