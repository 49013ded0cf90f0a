//! Policies in Cedar: compiled, checked, and evaluated once for each agent.
//!
//! Only a policy's scope refers to the principal, so the policies that match an agent are found without knowing the
//! caller. A decision intersects two small sets: the policies that match the agent, and the policies whose scope
//! contains the caller (docs/governance.md#policies).
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod action;
mod agent_attributes;
mod annotations;
mod evaluation;
mod nesting_limit;
mod policy;
mod policy_error;
mod policy_matches;
mod policy_set;
mod principal;
mod templates;

pub use action::Action;
pub use agent_attributes::{AgentAttributes, CollectionMembership};
pub use annotations::{ANNOTATIONS, MAX_CONTACT_CHARS, MAX_MESSAGE_CHARS, PolicyNotice};
pub use evaluation::AuthorizationDecision;
pub use policy::{Effect, Policy, PolicyMode, PolicyText};
pub use policy_error::PolicyError;
pub use policy_matches::PolicyMatches;
pub use policy_set::{
    MAX_PATTERN_CHARS, MAX_POLICIES, MAX_POLICY_BYTES, MAX_TERMS, PolicySet, SCHEMA,
    annotation_value_errors, format_policy, policy_set_cost_errors,
};
pub use principal::{ANONYMOUS_ACCOUNT, Principal, PrincipalScope};
pub use templates::TEMPLATES;
