//! Policy sets and the decisions by them: acts and handlers.

mod apply_checks;
pub mod decide;
pub mod dry_run;
pub mod dry_run_page;
mod edit_form;
pub mod edit_page;
pub mod history_page;
pub mod job;
pub mod preview;
mod preview_inputs;
pub mod routes;
pub mod set_page;
pub mod sets;
pub mod testing;
pub mod waiver_page;
pub mod waiver_routes;
pub mod waivers;
