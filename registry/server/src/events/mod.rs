//! Events: reading and following what has happened.

pub mod list;
pub mod listen;
pub mod routes;
