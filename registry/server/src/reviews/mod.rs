//! Reviews: the queue of cards that wait for a person, and the decisions on them.

pub(crate) mod approvers;
pub mod break_glass;
pub mod bulk;
pub mod deciding;
pub mod detail;
pub mod feed;
pub mod feed_routes;
pub mod glass_restored;
pub mod list_page;
pub mod notes;
pub mod page;
pub mod queue;
pub mod recertification;
pub mod report_page;
pub mod reporting;
pub mod resuming;
pub mod routes;
pub(crate) mod terms_job;
mod view;
pub mod waiting;
pub mod waiting_page;
mod words;
pub mod writing_routes;
mod written;
