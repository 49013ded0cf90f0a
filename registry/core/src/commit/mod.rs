//! Commits and publishes actions: rows are locked and read, changes are collected in a change set and written with
//! their events in one transaction; then caches are invalidated and the index is updated.

pub mod admission_policies;
pub mod agent_rows;
pub mod agent_state;
pub mod audit_log;
pub mod change_set;
pub mod committed_changes;
pub mod decision_maker;
pub mod locks;
pub mod policy_set_numbers;
pub mod publish;
pub mod secondary_reviews;
