//! Policies and decisions as callers see them.

use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::limits;

/// A policy as somebody writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPolicy {
    /// Its identifier in the set.
    #[schema(value_type = limits::PolicyId)]
    pub id: String,
    /// One policy in Cedar. `@mode("off")` and `@mode("dry_run")` before it keep it from deciding. At most 64 KiB.
    pub text: String,
}

/// A policy set to put in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPolicies {
    /// All policies of the set; without any nobody finds or calls anything.
    #[schema(max_items = 1000)]
    pub policies: Vec<NewPolicy>,
    /// Why.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
}

/// A policy of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyView {
    /// Its identifier in the set.
    pub id: String,
    /// Its text in Cedar, as it was written.
    pub text: String,
    /// `off`, `dry_run` or `enforce`.
    pub mode: String,
    /// `permit` or `forbid`.
    pub effect: String,
    /// The actions it is about: `discover`, `invoke`.
    pub actions: Vec<String>,
}

/// A policy set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Policies {
    /// Its number; 0 is the set that is shipped.
    pub number: u64,
    /// The number of the set that decides in the process that answers. A new set decides once all agents were evaluated
    /// under it.
    pub in_force: u64,
    /// Its policies in their order.
    pub policies: Vec<PolicyView>,
    /// The account that made it; `null` for the shipped one.
    pub author: Option<String>,
    /// Why it was made.
    pub reason: Option<String>,
    /// When it was made.
    pub created_at: Option<Timestamp>,
}

/// A set that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoliciesAccepted {
    /// Its number.
    pub number: u64,
    /// The number of the set that decides meanwhile in the process that answers.
    pub in_force: u64,
}

/// A policy set in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicySetEntry {
    /// Its number.
    pub number: u64,
    /// How many policies it has.
    pub policies: u64,
    /// The account that made it.
    pub author: String,
    /// Why it was made.
    pub reason: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A page of the history of policy sets, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyHistory {
    /// The sets.
    pub sets: Vec<PolicySetEntry>,
    /// The token of the next page.
    pub next_page_token: Option<String>,
}

/// A question whether the caller may do something with an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionRequest {
    /// `discover` or `invoke`.
    #[schema(pattern = "^(discover|invoke)$")]
    pub action: String,
    /// Id or URN of the agent.
    #[schema(max_length = 1024)]
    pub agent: String,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyDecision {
    /// Id of the decision.
    pub id: Uuid,
    /// Whether the caller may.
    pub allowed: bool,
    /// Why not, in words; `null` where the caller may.
    pub reason: Option<String>,
    /// The policies that it follows from, for callers who see everything; others are told none.
    pub policies: Vec<String>,
    /// The number of the policy set that decided.
    pub number: u64,
    /// The agent.
    pub agent: Uuid,
    /// Digest of the card that it is about.
    pub card_digest: String,
    /// When it was decided.
    pub decided_at: Timestamp,
}
