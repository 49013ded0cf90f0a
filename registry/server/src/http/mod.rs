//! The common parts of the HTTP interface: middleware, problem documents, authorization, request bodies, connections.
//!
//! A handler parses, authorizes by the type of its caller, calls one act and renders its result. One envelope wraps all
//! of them: request ids, problem documents, headers, metrics.

pub mod allowed;
pub mod anonymous_write_limit;
pub mod answer;
pub mod auth;
pub mod body;
pub mod catalog_links;
pub mod client_address;
pub(crate) mod conditional;
pub mod connection;
pub mod connections;
pub mod cookies;
pub mod dialect_errors;
pub mod envelope;
pub mod forms;
pub mod page_policy;
pub mod path;
pub mod problem;
pub mod problem_kinds;
pub mod query;
pub(crate) mod refusals;
pub mod request_id;
pub mod sign_in_limit;
pub mod state;
pub mod stream_places;
pub mod unread_bytes;
pub mod unread_limit;
pub mod visitor;
mod whole_numbers;
