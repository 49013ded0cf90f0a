//! Collections: agents that fit a filter, under a name, for an audience.

pub mod actions;
pub mod deletion_impact;
