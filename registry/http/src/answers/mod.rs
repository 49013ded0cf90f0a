//! Responses: JSON with entity tags, conditional requests, `Allow`, and the headers of pages.

pub mod allowed;
pub mod answer;
pub mod catalog_links;
pub mod conditional;
pub mod page_policy;
