//! Admission: which sources cover an agent, and the decision on its card.

pub mod change;
pub mod coverage;
pub mod covering;
pub mod decision;
pub(crate) mod policies;
pub(crate) mod ruled_agent;
pub mod rules_changed;
pub(crate) mod rules_job;
pub(crate) mod rules_lease;
pub mod rules_pass;
pub mod settling;
pub mod urn;
