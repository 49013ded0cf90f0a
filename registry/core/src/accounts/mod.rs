//! Accounts, their groups, their tokens and their sessions.

pub mod account_operations;
pub mod admin_access;
pub mod authentication;
pub mod bootstrap;
pub mod groups;
pub mod identity;
pub mod login_codes;
pub mod one_time_codes;
pub mod records;
pub mod refusal_events;
pub mod reserved_names;
pub mod subject_callers;
pub mod tokens;
