//! Health: readiness, metrics, housekeeping and upkeep.

pub mod damaged_cards;
pub mod housekeeping;
pub mod readiness;
