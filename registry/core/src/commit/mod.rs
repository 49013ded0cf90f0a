//! The one way an act is written and published: its rows are locked and read, its changes gathered in a ledger and
//! written with their events in one transaction; then caches are invalidated and the index follows.

pub mod admitting;
pub mod agent_rows;
pub mod approver;
pub mod further_reviews;
pub mod ledger;
pub mod locks;
pub mod policy_numbers;
pub mod publish;
pub mod state;
pub mod touched;
