//! Types of the HTTP contract (docs/reference/http.md): handlers and the index write them, the command line reads
//! them. Members may be added, never renamed.
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod access_decisions;
mod account_data;
mod accounts;
mod agent;
pub mod ard;
mod collections;
mod credential;
mod decision;
mod domain;
mod endpoint;
mod event_details;
mod finding;
mod governance;
mod hit;
mod hooks;
pub mod limits;
mod list;
mod object_list;
mod peers;
mod policies;
mod review_sentences;
mod reviewed_card;
pub mod search_query;
mod summary;

pub use access_decisions::*;
pub use account_data::*;
pub use accounts::*;
pub use agent::*;
pub use collections::*;
pub use credential::*;
pub use decision::*;
pub use domain::*;
pub use endpoint::*;
pub use finding::*;
pub use governance::*;
pub use hit::*;
pub use hooks::*;
pub use list::*;
pub use peers::*;
pub use policies::{
    AccessChange, DryRun, DryRunCount, DryRunDay, NewPolicies, NewPolicy, NewWaiver, Policies,
    PoliciesAccepted, PolicyCase, PolicyCaseResult, PolicyCaseResults, PolicyCases, PolicyChange,
    PolicyHistory, PolicyPreview, PolicyReplica, PolicySetEntry, PolicyView, PreviewJob,
    PreviewedAgent, Waiver, WaiverList,
};
pub use reviewed_card::*;
pub use summary::*;
