//! Policy sets and the decisions by them: acts and handlers.

pub mod decide;
pub mod dry_run;
pub mod job;
pub mod preview;
pub mod routes;
pub mod sets;
pub mod testing;
pub mod waiver_routes;
pub mod waivers;
