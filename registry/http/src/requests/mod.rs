//! Request parts: caller, path, query, body, form, cookies.

pub mod auth;
pub mod body;
pub mod cookies;
pub mod forms;
pub mod path_parameters;
pub mod query;
pub mod refusal_recording;
pub mod request_span;
pub mod server_state;
pub mod visitor;
pub mod whole_numbers;
