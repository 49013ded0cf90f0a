//! Policies in Cedar: compiled, checked, and evaluated once for each agent.
//!
//! A policy is a predicate over principals times one over agents: its scope and its clauses about the principal on the
//! one hand, its other clauses on the other. So the policies that match an agent are found without knowing the caller.
//! A decision intersects two small sets: the policies that match the agent, and the policies whose scope contains the
//! caller (docs/govern/policies.md#the-language).
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod action;
mod agent_age;
mod agent_attributes;
mod annotations;
mod batch_evaluation;
mod cedar_requests;
mod endpoint_suffixes;
mod evaluation;
mod nesting_limit;
mod policy;
mod policy_dates;
mod policy_error;
mod policy_matches;
mod policy_set;
mod policy_times;
mod principal;
mod principal_clauses;
mod templates;

pub use action::Action;
pub use agent_age::{AgeThreshold, AgentAge, MAX_AGE_COMPARISONS, days_since};
pub use agent_attributes::{AgentAttributes, CollectionMembership};
pub use annotations::{ANNOTATIONS, MAX_CONTACT_CHARS, MAX_MESSAGE_CHARS, PolicyNotice};
pub use batch_evaluation::BatchEvaluator;
pub use endpoint_suffixes::EndpointSuffixes;
pub use evaluation::AuthorizationDecision;
pub use policy::{Effect, Policy, PolicyMode, PolicyText};
pub use policy_dates::{PolicyDates, parse_date};
pub use policy_error::PolicyError;
pub use policy_matches::PolicyMatches;
pub use policy_set::{
    MAX_PATTERN_CHARS, MAX_POLICIES, MAX_POLICY_BYTES, MAX_TERMS, PolicySet, SCHEMA, format_policy,
    policy_set_cost_errors,
};
pub use principal::{ANONYMOUS_ACCOUNT, Principal, PrincipalScope};
pub use templates::TEMPLATES;
