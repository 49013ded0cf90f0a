//! All routes: those of the API, which form its document, and all others.

pub mod api;
pub mod openapi;
pub mod plain;
