//! Events: reading and following what has happened.

pub mod listen;
pub mod log;
pub mod routes;
