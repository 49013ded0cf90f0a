//! The one way an act is written and published: its rows are locked and read, its changes gathered in a ledger and
//! written with their events in one transaction; then caches are invalidated and the index follows.

pub mod admission_policies;
pub mod agent_rows;
pub mod agent_state;
pub mod change_set;
pub mod committed_changes;
pub mod decision_maker;
pub mod locks;
pub mod policy_set_numbers;
pub mod publish;
pub mod secondary_reviews;
