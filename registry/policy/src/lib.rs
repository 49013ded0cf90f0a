//! Policies in Cedar: compiled, checked, and evaluated once for each agent.
//!
//! The principal is in a policy's scope alone, so that the policies that match an agent are found without knowing who
//! will ask. A decision intersects two small sets: the policies that match the agent, and the policies whose scope
//! holds the caller (docs/governance.md#policies).
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod action;
mod depth;
mod evaluation;
mod fault;
mod policy;
mod principal;
mod resource;
mod set;
mod templates;

pub use action::Action;
pub use evaluation::{Matches, Verdict};
pub use fault::Fault;
pub use policy::{Effect, Mode, Policy, PolicyText};
pub use principal::{ANONYMOUS, Principal, PrincipalScope};
pub use resource::{AgentFacts, Collections};
pub use set::{
    MAX_PATTERN_CHARS, MAX_POLICIES, MAX_POLICY_BYTES, MAX_TERMS, PolicySet, SCHEMA, cost_faults,
    formatted,
};
pub use templates::TEMPLATES;
