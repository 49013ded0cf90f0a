//! Every route: of the API, which make up its document, and of everything else.

pub mod api;
pub mod openapi;
pub mod plain;
