//! Collections: agents that fit a filter, under a name, for an audience.

pub mod acts;
mod deletion;
pub mod pages;
pub mod routes;
