//! Registry process: combines core and HTTP, runs background jobs, starts and stops, and does maintenance without a
//! server.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod application;
pub mod backup;
pub mod group_selection;
pub mod jobs;
pub mod maintenance;
pub mod secrets_key;
pub mod serve;
pub mod startup;
#[cfg(test)]
mod tests;
pub mod tls;
pub mod trace_export;
pub mod upkeep;
pub mod urn_authority;
