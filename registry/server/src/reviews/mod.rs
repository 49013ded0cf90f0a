//! Reviews: the queue of cards that wait for a person, and the decisions on them.

pub mod detail;
pub mod queue;
pub mod routes;
