//! Policy sets and the decisions by them: acts and handlers.

pub mod apply_checks;
pub mod decide;
pub mod dry_run;
pub mod job;
pub mod preview;
pub mod preview_inputs;
pub mod sets;
pub mod testing;
pub mod waivers;
