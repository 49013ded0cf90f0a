//! Collections: named sets of agents that match a filter, with an audience.

pub mod actions;
pub mod deletion_impact;
