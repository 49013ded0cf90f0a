//! Types of the HTTP contract (docs/contract.md): handlers and the index render them, the command line reads them. Members may be added, never renamed.
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod agent;
pub mod ard;
mod collections;
mod decision;
mod domain;
mod finding;
mod governance;
mod hit;
pub mod limits;
mod list;
mod objects;
mod peers;
mod people;
mod personal;
mod policies;
mod served;

pub use agent::*;
pub use collections::*;
pub use decision::*;
pub use domain::*;
pub use finding::*;
pub use governance::*;
pub use hit::*;
pub use list::*;
pub use peers::*;
pub use people::*;
pub use personal::*;
pub use policies::{
    AccessChange, DecisionRequest, DryRun, DryRunCount, DryRunDay, NewPolicies, NewPolicy,
    NewWaiver, Policies, PoliciesAccepted, PolicyCase, PolicyCaseResult, PolicyCaseResults,
    PolicyCases, PolicyChange, PolicyDecision, PolicyHistory, PolicyPreview, PolicySetEntry,
    PolicyView, PreviewedAgent, Waiver, WaiverList,
};
