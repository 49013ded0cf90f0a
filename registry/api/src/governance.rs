//! Reviews, actions and events as callers see them.

use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::ownership::{DomainState, Method};
use a2a_registry_domain::review::{ChangeClass, ReviewKind, ReviewState};
use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::access_decisions::HiddenAgent;
use super::agent::proof_coverage_text;
use super::decision::BreakGlass;
use super::hit::{Duplicates, Hit};
use super::hooks::Hook;
use super::reviewed_card::ReviewedCard;
use super::summary::HitSkill;
use super::{Diff, FindingView, Interface, Proof, SignatureVerdict, limits};

/// The card that an agent serves now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServedCard {
    /// Digest of the approved content; null before the first approval.
    #[schema(value_type = Option<limits::Digest>)]
    pub digest: Option<String>,
    /// Whether the agent is listed with it: false while it is on hold, and once it is retired.
    pub listed: bool,
}

/// Review of one version of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Review {
    /// Id of the review.
    pub id: Uuid,
    /// Id of the agent.
    pub agent: Uuid,
    /// Name of the agent in the reviewed card.
    pub name: String,
    /// Domain of the agent.
    pub domain: String,
    /// `covered` if a proof of the domain applies to the card, `nomination` if someone else registered it.
    #[schema(value_type = Coverage)]
    pub coverage: OpenEnum<Coverage>,
    /// Digest of the reviewed content.
    #[schema(value_type = limits::Digest)]
    pub digest: String,
    /// Digest of the content approved before; null for a first card.
    #[schema(value_type = Option<limits::Digest>)]
    pub previous: Option<String>,
    /// Class of the change; null for a first card.
    #[schema(value_type = Option<ChangeClass>)]
    pub change_class: Option<OpenEnum<ChangeClass>>,
    /// Result of checking the signatures of the reviewed content.
    pub signature_verdict: SignatureVerdict,
    /// What it was opened for: `admission`, a card that no rule decides; `report`, an agent that was reported;
    /// `recertification`, served content whose approval expires; `break_glass`, content that one account has approved
    /// alone.
    #[serde(default = "default_review_kind")]
    #[schema(value_type = ReviewKind)]
    pub kind: OpenEnum<ReviewKind>,
    /// State of the review.
    #[schema(value_type = ReviewState)]
    pub state: OpenEnum<ReviewState>,
    /// Account that was the first to register the card's source, not necessarily the domain's owner; null if it was
    /// registered without an account.
    pub submitter: Option<String>,
    /// Account assigned to decide it.
    #[serde(default)]
    pub assignee: Option<String>,
    /// Time by which it must be decided.
    #[serde(default)]
    pub due: Option<Timestamp>,
    /// Accounts that decided.
    pub deciders: Vec<String>,
    /// Number of accounts that must approve; one suffices to reject.
    #[serde(default = "default_approvals_needed")]
    pub approvals_needed: u32,
    /// Approvals so far, the oldest first.
    #[serde(default)]
    pub approvals: Vec<ReviewApproval>,
    /// Reason of the decision.
    pub reason: Option<String>,
    /// Card that the agent serves now, whatever this review is about.
    #[serde(default)]
    #[schema(value_type = ServedCard)]
    pub served: Option<ServedCard>,
    /// What the reviewed card says, in brief; null if it is no longer stored.
    #[serde(default)]
    #[schema(value_type = ReviewedCard)]
    pub card: Option<ReviewedCard>,
    /// Time at which it was opened.
    pub created_at: Timestamp,
    /// Time at which it was closed; null while it is open.
    pub decided_at: Option<Timestamp>,
}

fn default_review_kind() -> OpenEnum<ReviewKind> {
    ReviewKind::Admission.into()
}

const fn default_approvals_needed() -> u32 {
    1
}

/// One approval of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReviewApproval {
    /// Account that approved.
    pub account: String,
    /// Time of the approval.
    pub at: Timestamp,
    /// Reason of the approval.
    pub reason: String,
    /// Whether it counts: false if the account is not active, may no longer decide reviews, or is a party under
    /// four-eyes.
    pub counts: bool,
}

/// A comment on a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReviewComment {
    /// Id of the comment.
    pub id: Uuid,
    /// Account that wrote it.
    pub author: String,
    /// The text.
    pub text: String,
    /// Time at which it was written.
    pub at: Timestamp,
}

/// A comment to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewComment {
    /// The text.
    #[schema(value_type = limits::CommentText)]
    pub text: String,
}

/// A change of a review's assignee and due time. Members left out keep their value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewPatch {
    /// Name of the account assigned to decide it; empty for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::OptionalName>)]
    pub assignee: Option<String>,
    /// Time by which it must be decided, in RFC 3339; empty for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::OptionalTime>)]
    pub due: Option<String>,
}

/// Several decisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkDecision {
    /// The decisions, at most 50, made in order.
    #[schema(min_items = 1, max_items = 50)]
    pub decisions: Vec<BulkDecisionItem>,
}

/// One of several decisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkDecisionItem {
    /// Id of the review.
    pub review: Uuid,
    /// Digest of the content to decide on.
    pub digest: String,
    /// Whether to approve it; otherwise it is rejected.
    pub approve: bool,
    /// Reason; stored with the decision.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
}

/// Results of several decisions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BulkOutcome {
    /// One result for each decision, in the order of the request.
    pub outcomes: Vec<DecisionOutcome>,
}

/// Result of one of several decisions: either `review` or `problem` is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DecisionOutcome {
    /// Id of the review.
    pub id: Uuid,
    /// The review after the decision; still open if further accounts must approve.
    pub review: Option<Review>,
    /// Reason why nothing was decided.
    pub problem: Option<OutcomeProblem>,
}

/// Reason why one of the items of a request was not processed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutcomeProblem {
    /// Kind of the problem: `/problems/<slug>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// HTTP status that the item alone would have had.
    pub status: u16,
    /// What is wrong, and what to do.
    pub detail: String,
}

/// A report of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewReport {
    /// What is wrong with the agent. Its owner may read it.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
    /// How to reach the reporter; only curators and auditors read it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(value_type = limits::ReportContact, required = false)]
    pub contact: String,
}

/// The response to a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportAccepted {
    /// Id of the agent.
    pub agent: Uuid,
    /// Time of the report.
    pub at: Timestamp,
}

/// A report that a review collects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportView {
    /// What is wrong with the agent.
    pub reason: String,
    /// Time of the report.
    pub at: Timestamp,
    /// Account that reported; null for an anonymous client, and for callers who do not see everything.
    pub reporter: Option<String>,
    /// How to reach the reporter; null for callers who do not see everything.
    pub contact: Option<String>,
}

/// An earlier decision on the agent of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EarlierDecision {
    /// Whether the content was approved.
    pub approved: bool,
    /// Rule that decided.
    pub rule: String,
    /// Account that decided, or `policy`.
    pub by: String,
    /// Time of the decision.
    pub at: Timestamp,
    /// Reason of the decision.
    pub reason: Option<String>,
    /// Whether it was about the content of this review.
    pub same_content: bool,
}

/// A policy that matches the content of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MatchingPolicy {
    /// Id of the policy.
    pub id: String,
    /// Its mode: `off`, `dry_run` or `enforce`.
    pub mode: String,
    /// Its effect: `permit` or `forbid`.
    pub effect: String,
}

/// Reviews, news and domains that wait for the caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Waiting {
    /// Open reviews that are assigned to the caller or that it can decide, those with the nearest due date first; at
    /// most 50.
    pub reviews: Vec<Review>,
    /// Decisions and comments on the caller's agents since it last read the news, the newest first; at most 50.
    pub news: Vec<News>,
    /// Domains that wait for the caller's proof; at most 50.
    pub domains: Vec<WaitingDomain>,
    /// Agents of the caller that policies hide from some callers, the newest first; at most 50.
    #[serde(default)]
    pub hidden: Vec<HiddenAgent>,
    /// Hooks that fail: the caller's, for an admin those of all accounts, the longest failing first; at most 50.
    #[serde(default)]
    pub failing_hooks: Vec<Hook>,
    /// Time up to which the caller has read the news; null before the first time.
    pub seen_at: Option<Timestamp>,
    /// Time of this response, for `POST /v1/me:seen`.
    pub at: Timestamp,
}

/// Something that happened to an agent of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct News {
    /// `approved`, `rejected`, `comment`, or `hidden`: policies hide the agent from some callers.
    pub kind: String,
    /// Id of the agent.
    pub agent: Uuid,
    /// Id of the review; null for a decision.
    pub review: Option<Uuid>,
    /// Account that decided or commented, or `policy`.
    pub by: String,
    /// Reason of the decision, or text of the comment.
    pub text: Option<String>,
    /// Time at which it happened.
    pub at: Timestamp,
}

/// A domain that waits for a proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitingDomain {
    /// Name of the domain.
    pub domain: String,
    /// Time at which the challenge expires.
    pub expires: Timestamp,
}

/// Time up to which the caller has read its news.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// `at` of the response that the caller has read.
    pub at: Timestamp,
}

/// A review with everything that is needed to decide it, all about the reviewed content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReviewDetail {
    /// The review.
    #[serde(flatten)]
    pub review: Review,
    /// Card as it was published; null if it is no longer stored.
    pub card_text: Option<String>,
    /// Description in the reviewed card.
    #[serde(default)]
    pub description: Option<String>,
    /// Skills in the reviewed card.
    #[serde(default)]
    pub skills: Vec<HitSkill>,
    /// Addresses that callers would use, in the order to try.
    pub interfaces: Vec<Interface>,
    /// Authentication that callers would need, with the values of the `auth` filter of searches.
    pub auth: Vec<String>,
    /// How to authenticate, one sentence per alternative.
    pub security: Vec<String>,
    /// Findings of the linter and of the signature check, errors first.
    pub findings: Vec<FindingView>,
    /// Changes against the content approved before; null for a first card.
    pub diff: Option<Diff>,
    /// Ownership of the domain.
    pub domain_proofs: DomainProofs,
    /// The break-glass approval that the review confirms; null for other reviews.
    #[serde(default)]
    pub break_glass: Option<BreakGlass>,
    /// Account that is responsible for the agent inside this company.
    #[serde(default)]
    pub sponsor: Option<String>,
    /// Policies that match the reviewed content, with their mode.
    #[serde(default)]
    pub policies: Vec<MatchingPolicy>,
    /// Earlier decisions on the agent, the newest first; at most 20.
    #[serde(default)]
    pub earlier: Vec<EarlierDecision>,
    /// Comments, the oldest first.
    #[serde(default)]
    pub comments: Vec<ReviewComment>,
    /// Reports that the review collects, the oldest first.
    #[serde(default)]
    pub reports: Vec<ReportView>,
    /// Reason why the caller cannot decide it; null if it can.
    #[serde(default)]
    pub cannot_decide: Option<String>,
    /// Listed agents that are similar to the agent, the most similar first; empty while the index cannot be read.
    #[serde(default)]
    pub similar: Vec<Hit>,
    /// Listed duplicates of the agent: with the same name at the same endpoint, or with the same content.
    #[serde(default)]
    pub duplicates: Option<Duplicates>,
}

impl ReviewDetail {
    /// Whether a proof of the domain covers the reviewed card, in words.
    pub fn proof_coverage_text(&self) -> String {
        let mut proofs = self.domain_proofs.proofs.iter();
        let is_proved = proofs.any(|proof| proof.method != Method::Operator);
        proof_coverage_text(&self.review.coverage, is_proved)
    }
}

/// Ownership of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DomainProofs {
    /// State of the domain: `unverified`, `verified`, `lapsed`, `disputed` or `opted_out`.
    #[schema(value_type = String)]
    pub state: OpenEnum<DomainState>,
    /// Account that has proved it, or that an admin vouches for as its owner.
    pub owner: Option<String>,
    /// Time until which an admin vouches for the owner; left out for an owner that has proved the domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_vouched_until: Option<Timestamp>,
    /// Proofs that are valid now.
    pub proofs: Vec<Proof>,
    /// Names of the keys enrolled for signing its cards.
    pub enrolled_keys: Vec<String>,
}

impl DomainProofs {
    /// The owner, and until when an admin vouches for it; `nobody` if there is none.
    pub fn owner_description(&self) -> String {
        let Some(owner) = &self.owner else {
            return "nobody".to_owned();
        };
        match self.owner_vouched_until {
            Some(until) => format!(
                "{owner}, vouched for by an admin until {}",
                until.to_rfc3339()
            ),
            None => owner.clone(),
        }
    }
}

/// The values for a domain that is no longer registered.
impl Default for DomainProofs {
    fn default() -> Self {
        Self {
            state: OpenEnum::Unknown(String::new()),
            owner: None,
            owner_vouched_until: None,
            proofs: Vec::new(),
            enrolled_keys: Vec::new(),
        }
    }
}

/// A decision on a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewDecision {
    /// Digest of the content to decide on; if the review is about other content, the decision is rejected with 409.
    pub digest: String,
    /// Reason; stored with the decision.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
}

/// An action on an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Act {
    /// Reason; stored with the event.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
    /// For `:resume`: the hold to lift, by default `operator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
}

/// A request to deprecate an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Deprecate {
    /// Reason and advice, shown to everyone who finds the agent.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
    /// Id or URN of the agent to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
    /// Time after which the agent may stop working.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sunset: Option<Timestamp>,
}

/// One entry of the event log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Sequence number of the event.
    pub seq: i64,
    /// Time of the event.
    pub at: Timestamp,
    /// Kind of the event.
    #[schema(value_type = EventKind)]
    pub kind: OpenEnum<EventKind>,
    /// Subject of the event: an agent's id, a domain, a review's id.
    pub subject: String,
    /// Account that caused it, or `crawler`, `policy`, `system`.
    pub actor: String,
    /// Details, which depend on the kind.
    #[schema(value_type = Object)]
    pub data: Value,
}
