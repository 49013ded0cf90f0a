//! Reviews: the queue of cards that wait for a person, and the decisions on them.

pub mod approvers;
pub mod break_glass;
pub mod bulk;
pub mod deciding;
pub mod detail;
pub mod glass_restored;
pub mod notes;
pub mod queue;
pub mod recertification;
pub mod reporting;
pub mod resuming;
pub mod terms_job;
pub mod view;
pub mod waiting;
pub mod written;
