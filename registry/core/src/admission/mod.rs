//! Admission: the coverage of an agent's sources, and the decision on its card.

pub mod agent_redecision;
pub mod authority_urns;
pub mod change_class;
pub mod coverage;
pub mod coverage_updates;
pub mod decision;
pub mod policies;
pub mod policy_reevaluation;
pub mod policy_subject;
pub mod rule_changes;
pub mod rules_job;
pub mod rules_lease;
pub mod rules_reload;
pub mod rules_run;
pub mod urn;
