//! Accounts, their groups, their tokens and their sessions.

pub mod authentication;
pub mod bootstrap;
pub mod groups;
pub mod identity;
pub mod last_way_in;
pub mod people;
pub mod records;
pub mod refusals;
pub mod reserved_names;
pub mod tokens;
