//! What all of HTTP has in common: the envelope, problem documents, authorisation, reading bodies, serving.
//!
//! A handler parses, lets the type of its caller authorise, calls one act and renders what it gives. One envelope stands
//! around all of them: request ids, problem documents, headers, measuring.

pub mod allowed;
pub mod answer;
pub mod auth;
pub mod body;
pub mod connection;
pub mod connections;
pub mod envelope;
pub mod path;
pub mod problem;
pub mod problem_kinds;
pub mod problem_pages;
pub mod query;
pub mod request_id;
pub mod state;
pub mod writes;
