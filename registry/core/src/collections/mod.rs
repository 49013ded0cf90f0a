//! Collections: agents that fit a filter, under a name, for an audience.

pub mod acts;
pub mod deletion;
