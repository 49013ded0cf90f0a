//! Reviews: the queue of cards that wait for a person, and the decisions on them.

pub(crate) mod approvers;
pub mod bulk;
pub mod deciding;
pub mod detail;
pub mod notes;
pub mod queue;
pub mod reporting;
pub mod routes;
mod view;
pub mod waiting;
pub mod writing_routes;
mod written;
