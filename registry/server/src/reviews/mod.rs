//! Reviews: cards that wait for a person, and deciding on them.

pub mod detail;
pub mod queue;
pub mod routes;
