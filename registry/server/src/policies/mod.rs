//! Policy sets and the decisions by them: acts and handlers.

pub mod decide;
pub mod routes;
pub mod sets;
