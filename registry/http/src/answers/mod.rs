//! Responses: JSON with entity tags, conditional requests, `Allow`, and page headers.

pub mod catalog_links;
pub mod conditional_response;
pub mod content_security_policy;
pub mod response;
pub mod route_table;
