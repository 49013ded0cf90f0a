//! Policies and decisions as callers see them.

use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::preview_state::PreviewState;
use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::limits;

/// A policy as submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPolicy {
    /// Its identifier in the set.
    #[schema(value_type = limits::PolicyId)]
    pub id: String,
    /// One policy in Cedar. With `@mode("off")` or `@mode("dry_run")` before it, it does not decide; with
    /// `@from("2026-12-15")` and `@until("2027-01-05")` it is off before the first day and from the second on. At most
    /// 64 KiB.
    pub text: String,
}

/// A policy set to put in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPolicies {
    /// All policies of the set; without any, no caller finds or calls anything.
    #[schema(max_items = 1000)]
    pub policies: Vec<NewPolicy>,
    /// Reason for the change.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
    /// Whether the set is accepted although no policy of it permits `discover`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allow_no_permit: bool,
    /// `token` of the preview of exactly these policies, made by the same account within the last hour. A set that
    /// hides every listed agent from every kind of caller is not accepted without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1024)]
    pub preview: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is serde's"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

/// A policy of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyView {
    /// Its identifier in the set.
    pub id: String,
    /// Its text in Cedar, as it was written.
    pub text: String,
    /// `off`, `dry_run` or `enforce`; `off` outside the dates of the policy.
    pub mode: String,
    /// `permit` or `forbid`.
    pub effect: String,
    /// The actions it is about: `discover`, `invoke`, `admit`, `register`.
    pub actions: Vec<String>,
    /// Whether it is shipped and part of every set until a policy with the same identifier replaces it.
    #[serde(default)]
    pub shipped: bool,
}

/// A policy set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Policies {
    /// Its number; 0 is the set that is shipped.
    pub number: u64,
    /// Number of the set in force in the process that responds. A new set takes effect once all agents were evaluated
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
    /// The running processes of the registry, each with the set that it has in force; the one that responds is the
    /// first.
    #[serde(default)]
    pub replicas: Vec<PolicyReplica>,
}

/// A running process of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyReplica {
    /// Its name, a new one at each start.
    pub process: Uuid,
    /// Number of the set that it has in force.
    pub in_force: u64,
    /// Number of agents that it has evaluated under the next set, or under the last one.
    pub evaluated: u64,
    /// Number of agents to evaluate under the next set.
    pub agents: u64,
    /// When it has reported this.
    pub seen_at: Timestamp,
}

/// A set that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoliciesAccepted {
    /// Its number.
    pub number: u64,
    /// Number of the set that is still in force in the process that responds.
    pub in_force: u64,
    /// What is probably not intended, for example a group that does not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
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

/// A waiver to grant: a policy that is ignored for the content that an agent shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWaiver {
    /// Identifier of a `forbid` policy of the newest set.
    #[schema(value_type = limits::PolicyId)]
    pub policy: String,
    /// The agent: its identifier or URN.
    pub agent: String,
    /// Digest of the card that it covers, which must be the card that the agent shows.
    #[schema(value_type = limits::Digest)]
    pub digest: String,
    /// Reason for the waiver.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
    /// Days until it expires.
    #[schema(value_type = limits::WaiverDays)]
    pub expires_in_days: u32,
}

/// A waiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Waiver {
    /// Its identifier.
    pub id: Uuid,
    /// The policy that is ignored.
    pub policy: String,
    /// The agent.
    pub agent: Uuid,
    /// Digest of the content that it covers, whatever signs it.
    pub content_digest: String,
    /// Whether the agent shows that content; with any other content the policy applies.
    pub is_shown: bool,
    /// Why it was granted.
    pub reason: String,
    /// The account that granted it.
    pub approver: String,
    /// When it was granted.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// When it ended; `null` while it is in force.
    pub ended_at: Option<Timestamp>,
    /// Who ended it; `null` while it is in force.
    pub ended_by: Option<String>,
    /// Why it ended; `null` while it is in force.
    pub ended_reason: Option<String>,
}

/// A page of waivers, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaiverList {
    /// The waivers.
    pub waivers: Vec<Waiver>,
    /// The token of the next page; `null` after the last.
    pub next_page_token: Option<String>,
}

/// What a policy on a dry run would have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DryRun {
    /// The policy.
    pub policy: String,
    /// Whether it is on a dry run in the newest set.
    pub running: bool,
    /// Number of decisions that it would have changed in the newest 90 days.
    pub answers: u64,
    /// The same decisions by day, newest first.
    pub days: Vec<DryRunDay>,
    /// The agents and domains of these decisions, those with the most decisions first, at most 100.
    pub resources: Vec<DryRunCount>,
    /// The accounts of these decisions, those with the most decisions first, at most 100; `anonymous` for callers
    /// without one.
    pub callers: Vec<DryRunCount>,
    /// Whether not everything was counted, so that all counts are too low.
    pub truncated: bool,
}

/// What a policy on a dry run would have changed on a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DryRunDay {
    /// The day, UTC, as `2026-11-24`.
    pub day: String,
    /// Decisions that would have denied what was allowed.
    pub denied: u64,
    /// Decisions that would have allowed what was denied.
    pub allowed: u64,
    /// Distinct agents and domains.
    pub resources: u64,
    /// Distinct callers.
    pub callers: u64,
}

/// The number of changed decisions about a resource, or for a caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DryRunCount {
    /// The agent's identifier, the domain or the account.
    pub name: String,
    /// Number of decisions.
    pub answers: u64,
}

/// Differences between a policy set and the newest set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyPreview {
    /// The number of the set that it is compared with.
    pub number: u64,
    /// The policies that differ, by their identifiers.
    pub policies: Vec<PolicyChange>,
    /// Number of agents that were evaluated.
    pub agents: u64,
    /// What changes, for each action and each kind of caller that the policies of both sets name.
    pub changes: Vec<AccessChange>,
    /// Changes that are probably not intended.
    pub warnings: Vec<String>,
    /// Whether no policy permits `discover`, so that the set is accepted only with `allow_no_permit`.
    #[serde(default)]
    pub permits_nothing: bool,
    /// Whether every listed agent would be hidden from every kind of caller, except its owner, curators, auditors and
    /// admins.
    #[serde(default)]
    pub hides_every_agent: bool,
    /// Token of this preview, to send as `preview` with the set to put in force.
    #[serde(default)]
    pub token: String,
}

/// A policy that differs between two sets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct PolicyChange {
    /// Its identifier.
    pub id: String,
    /// `add`, `change` or `remove`.
    pub what: String,
}

/// Agents that a kind of caller gains and loses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccessChange {
    /// `discover`, `invoke`, or `admit`: approved agents that are put on hold or released, and waiting cards that are
    /// approved or no longer approved.
    pub action: String,
    /// `anonymous`, `anybody signed in`, `group NAME`, `groups NAME, NAME` for members of several, or `account NAME`;
    /// `registrant` for `admit`.
    pub caller: String,
    /// Number of agents that are allowed and were not.
    pub gained: u64,
    /// Some of these agents, at most 20.
    pub gained_sample: Vec<PreviewedAgent>,
    /// Number of agents that were allowed and are not.
    pub lost: u64,
    /// Some of these agents, at most 20.
    pub lost_sample: Vec<PreviewedAgent>,
}

/// A preview that is waiting, in progress or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewJob {
    /// Id of the preview, by which callers read and cancel it.
    pub id: Uuid,
    /// Whether the preview waits, runs or has ended, and how.
    #[schema(value_type = PreviewState)]
    pub state: OpenEnum<PreviewState>,
    /// Number of agents that were evaluated so far.
    pub evaluated: u64,
    /// Number of agents to evaluate.
    pub agents: u64,
    /// When it was requested. It ends an hour later.
    pub made_at: Timestamp,
    /// The result, once it is `done`.
    pub preview: Option<PolicyPreview>,
    /// Why it is `failed`.
    pub problem: Option<String>,
}

/// An agent of a preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewedAgent {
    /// Its identifier.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// The determining policies of the new decision; empty if no policy permits it any more.
    pub policies: Vec<String>,
}

/// Cases that a policy set must decide in a certain way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyCases {
    /// The policies to test; those of the newest set if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 1000)]
    pub policies: Option<Vec<NewPolicy>>,
    /// The cases.
    #[schema(min_items = 1, max_items = 500)]
    pub cases: Vec<PolicyCase>,
}

/// A case: what a caller must be allowed or denied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyCase {
    /// The name of an account; a client without a token if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Groups that the account counts as a member of, as policies name them, whether it is in them or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 50)]
    pub groups: Vec<String>,
    /// `discover`, `invoke`, `admit` or `register`.
    #[schema(pattern = "^(discover|invoke|admit|register)$")]
    pub action: String,
    /// An agent: its identifier or URN; for `register` a domain.
    pub resource: String,
    /// The day of the decision, UTC, as `2026-12-15`, by which the dates of policies and the ages of agents count;
    /// today if left out. At most ten different days in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = r"^\d{4}-\d{2}-\d{2}$")]
    pub at: Option<String>,
    /// `allow` or `deny`.
    #[schema(pattern = "^(allow|deny)$")]
    pub expect: String,
    /// The policy that must determine the decision; any policy if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// Results of the cases, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyCaseResults {
    /// Whether all cases were decided as expected.
    pub passed: bool,
    /// One result for each case.
    pub results: Vec<PolicyCaseResult>,
}

/// Result of one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyCaseResult {
    /// Whether it was decided as expected.
    pub passed: bool,
    /// Whether it is allowed.
    pub allowed: bool,
    /// The determining policies; empty if no policy permits it.
    pub policies: Vec<String>,
}
