//! Reviews, acts and events as callers see them.

use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::ownership::{DomainState, Method};
use a2a_registry_domain::review::{ChangeClass, ReviewState};
use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::agent::{Duplicates, Hit, coverage_meaning};
use super::{Diff, FindingView, Interface, Proof, SignatureVerdict, limits};

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
    /// `covered` if a proof of the domain applies to the card, `nomination` if somebody else registered it.
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
    /// State of the review.
    #[schema(value_type = ReviewState)]
    pub state: OpenEnum<ReviewState>,
    /// Account that was the first to register the card's source, not necessarily the domain's owner; null if it was
    /// registered without an account.
    pub submitter: Option<String>,
    /// Accounts that decided.
    pub deciders: Vec<String>,
    /// Reason of the decision.
    pub reason: Option<String>,
    /// Time at which it was opened.
    pub created_at: Timestamp,
    /// Time at which it was closed; null while it is open.
    pub decided_at: Option<Timestamp>,
}

/// A review with what is needed to decide on it, all about the reviewed content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReviewDetail {
    /// The review.
    #[serde(flatten)]
    pub review: Review,
    /// Card as it was published; null if it is no longer stored.
    pub card_text: Option<String>,
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
    /// Listed agents that are similar to the agent, the most similar first; empty while the index cannot be read.
    #[serde(default)]
    pub similar: Vec<Hit>,
    /// Listed duplicates of the agent: with the same name at the same endpoint, or with the same content.
    #[serde(default)]
    pub duplicates: Option<Duplicates>,
}

impl ReviewDetail {
    /// Whether a proof of the domain covers the reviewed card, in words.
    pub fn coverage_meaning(&self) -> String {
        let mut proofs = self.domain_proofs.proofs.iter();
        let is_proved = proofs.any(|proof| proof.method != Method::Operator);
        coverage_meaning(&self.review.coverage, is_proved)
    }
}

/// Ownership of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DomainProofs {
    /// State of the domain: `unverified`, `verified`, `lapsed`, `disputed` or `opted_out`.
    #[schema(value_type = String)]
    pub state: OpenEnum<DomainState>,
    /// Account that has proved it.
    pub owner: Option<String>,
    /// Proofs that are valid now.
    pub proofs: Vec<Proof>,
    /// Names of the keys enrolled for signing its cards.
    pub enrolled_keys: Vec<String>,
}

/// Of a domain that is no longer registered.
impl Default for DomainProofs {
    fn default() -> Self {
        Self {
            state: OpenEnum::Unknown(String::new()),
            owner: None,
            proofs: Vec::new(),
            enrolled_keys: Vec::new(),
        }
    }
}

/// A decision on a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewDecision {
    /// Digest of the content to decide on; if the review is about another content, the decision is refused with 409.
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
    /// Reason and advice, shown to everybody who finds the agent.
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
