//! Reviews: the queue of cards that wait for a person, and the decisions on them.

pub mod approval_terms_job;
pub mod approvers;
pub mod break_glass;
pub mod break_glass_expiry;
pub mod bulk;
pub mod decisions;
pub mod detail;
pub mod inbox;
pub mod list;
pub mod note_views;
pub mod notes;
pub mod recertification;
pub mod reports;
pub mod resume;
pub mod reviewed_card;
pub mod view;
