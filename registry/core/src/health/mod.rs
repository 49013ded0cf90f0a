//! Health: readiness, metrics, housekeeping and upkeep, and what `doctor` checks on a machine.

pub mod damaged_cards;
pub mod database_writes;
pub mod disk_space;
pub mod housekeeping;
pub mod readiness;
pub mod received_request;
pub mod scrape;
