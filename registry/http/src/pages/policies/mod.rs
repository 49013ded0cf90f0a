//! Pages about policies.

pub mod dry_run;
pub mod edit;
pub mod edit_form;
pub mod history;
pub mod set;
pub mod waivers;
