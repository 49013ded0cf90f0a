//! Hooks: accounts are told of agents and reviews by deliveries to their receivers (docs/govern/notifications.md).

pub mod actions;
pub mod delivery;
pub mod event_notices;
pub mod job;
pub mod mail_links;
pub mod messages;
pub mod notices;
mod retries;
pub mod sending;
pub mod sight;
pub mod target;
pub mod views;
pub mod watches;
