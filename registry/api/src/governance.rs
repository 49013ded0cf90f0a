//! Reviews, acts, events and tokens as callers see them.

use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::review::{ChangeClass, ReviewState};
use a2a_registry_domain::role::Role;
use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Diff, FindingView, Interface, Proof, SignatureVerdict, limits};

/// A question about one content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Review {
    /// Its identifier.
    pub id: Uuid,
    /// The agent it is about.
    pub agent: Uuid,
    /// That agent's name in this content.
    pub name: String,
    /// That agent's domain.
    pub domain: String,
    /// Whether a proof of that domain covers the content, or somebody else has nominated it.
    pub coverage: Coverage,
    /// The content in question.
    #[schema(value_type = limits::Digest)]
    pub digest: String,
    /// The content approved before; null for a first card.
    #[schema(value_type = Option<limits::Digest>)]
    pub previous: Option<String>,
    /// How much changed; null for a first card.
    pub change_class: Option<ChangeClass>,
    /// What the signatures of the content in question are worth, and why.
    pub signature_verdict: SignatureVerdict,
    /// Where it stands.
    pub state: ReviewState,
    /// The account that was the first to register the card's source, which need not be the domain's owner; null where
    /// nobody with an account has.
    pub submitter: Option<String>,
    /// The accounts that decided.
    pub deciders: Vec<String>,
    /// The decider's reason.
    pub reason: Option<String>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was closed.
    pub decided_at: Option<Timestamp>,
}

/// A review with everything that a decision needs, all of it about the content in question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReviewDetail {
    /// The review.
    #[serde(flatten)]
    pub review: Review,
    /// The card as it was published; null where it is no longer kept.
    pub card_text: Option<String>,
    /// Where callers would be sent, in the order to try.
    pub interfaces: Vec<Interface>,
    /// What callers would have to bring, in the values of search.
    pub auth: Vec<String>,
    /// How to authenticate, one sentence per alternative.
    pub security: Vec<String>,
    /// What the linter and the verification of signatures found, errors first.
    pub findings: Vec<FindingView>,
    /// What changed against the content approved before; null for a first card.
    pub diff: Option<Diff>,
    /// What is known about the domain.
    pub domain_proofs: DomainProofs,
}

/// Who stands behind a domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DomainProofs {
    /// `unverified`, `verified`, `lapsed`, `disputed` or `opted_out`.
    pub state: String,
    /// The account that has proved it.
    pub owner: Option<String>,
    /// The proofs that hold.
    pub proofs: Vec<Proof>,
    /// The names of the keys that are enrolled for its cards.
    pub enrolled_keys: Vec<String>,
}

/// A decision on a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewDecision {
    /// The content decided on; another one than the review's is refused with 409.
    pub digest: String,
    /// Why; kept with the decision.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
}

/// An act on an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Act {
    /// Why; kept with the act.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
    /// For `:resume`: which hold to lift; `operator` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
}

/// Marking an agent as on its way out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Deprecate {
    /// Why, and what to do; shown to everybody who finds the agent.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
    /// The agent to move to, by its id or URN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
    /// From when on it is not to be counted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sunset: Option<Timestamp>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its place in the order of everything.
    pub seq: i64,
    /// When.
    pub at: Timestamp,
    /// What.
    pub kind: EventKind,
    /// To whom or what: an agent's id, a domain, a review's id.
    pub subject: String,
    /// The account that caused it, or `crawler`, `policy`, `system`.
    pub actor: String,
    /// Details by kind.
    #[schema(value_type = Object)]
    pub data: Value,
}

/// A token to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// The account it belongs to; made where it does not exist.
    #[serde(default = "admin_account")]
    #[schema(value_type = limits::Name)]
    pub account: String,
    /// The role of an account that is made; must agree with one that exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// What it is for.
    #[schema(value_type = limits::Name)]
    pub name: String,
    /// Days until it ends; never, where absent. At most 3650.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::TokenDays>)]
    pub expires_in_days: Option<u32>,
}

fn admin_account() -> String {
    "admin".into()
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its identifier.
    pub id: Uuid,
    /// The account it belongs to.
    pub account: String,
    /// What it is for.
    pub name: String,
    /// Its first characters, to tell tokens apart.
    pub prefix: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// A token, with the secret that is shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedToken {
    /// The token's description.
    #[serde(flatten)]
    pub token: Token,
    /// The secret. Only its hash is kept.
    pub secret: String,
}
