//! Admission: which sources cover an agent, and the decision on its card.

pub mod agent_facts;
pub mod change;
pub mod coverage;
pub mod covering;
pub mod decision;
pub mod policies;
pub mod ruled_agent;
pub mod rules_changed;
pub mod rules_job;
pub mod rules_lease;
pub mod rules_pass;
pub mod settling;
pub mod urn;
