//! Health: readiness, metrics, housekeeping and upkeep.

pub mod damaged_cards;
pub mod database_writes;
pub mod housekeeping;
pub mod readiness;
pub mod scrape;
