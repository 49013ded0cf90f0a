//! Responses: JSON with entity tags, conditional requests, `Allow`, and the headers of pages.

pub mod catalog_links;
pub mod conditional_response;
pub mod content_security_policy;
pub mod response;
pub mod route_table;
