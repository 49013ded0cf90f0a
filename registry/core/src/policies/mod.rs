//! Policy sets and the decisions by them: actions and handlers.

pub mod access_decision;
pub mod dry_run;
pub mod policy_cases;
pub mod policy_job;
pub mod preview;
pub mod preview_inputs;
pub mod preview_jobs;
pub mod principal_warnings;
pub mod set_checks;
pub mod sets;
pub mod subject_decisions;
pub mod time_changes;
pub mod waivers;
