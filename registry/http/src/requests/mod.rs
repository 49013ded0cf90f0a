//! What a request brings: caller, path, query, body, form, cookies.

pub mod auth;
pub mod body;
pub mod cookies;
pub mod forms;
pub mod path;
pub mod query;
pub mod refusals;
pub mod state;
pub mod visitor;
pub mod whole_numbers;
