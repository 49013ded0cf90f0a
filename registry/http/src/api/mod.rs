//! Handlers of the API, by subject.

pub mod accounts;
pub mod agents;
pub mod collections;
pub mod domains;
pub mod events;
pub mod federation;
pub mod health;
pub mod hooks;
pub mod lint;
pub mod policies;
pub mod reviews;
pub mod search;
