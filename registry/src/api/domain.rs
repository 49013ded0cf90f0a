//! Domains as callers see them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::timestamp::Timestamp;

/// What to register: exactly one of `domain` and `card_url`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// A host name, with `:port` where it is not the scheme's own. Its well-known paths are asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The URL of one card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_url: Option<String>,
    /// Approve the first card at once; for callers who may approve.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approve: bool,
}

/// A registered domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DomainView {
    /// `host` or `host:port`.
    pub domain: String,
    /// `unverified`, `verified`, `lapsed`, `disputed` or `opted_out`.
    pub state: String,
    /// Rises when the domain has a new owner.
    pub generation: i64,
    /// Proofs that hold.
    pub proofs: Vec<Proof>,
    /// What to place to prove ownership.
    pub challenges: Vec<Challenge>,
    /// What is asked of the domain.
    pub sources: Vec<SourceView>,
    /// Its agents.
    pub agents: Vec<Uuid>,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// A proof of ownership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Proof {
    /// `dns`, `http` or `operator`.
    pub method: String,
    /// Since when it holds.
    pub at: Timestamp,
    /// An admin's reason; null for the others.
    pub reason: Option<String>,
}

/// Something to place so that ownership can be checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Challenge {
    /// `dns` or `http`.
    pub method: String,
    /// The DNS name.
    pub name: Option<String>,
    /// The URL.
    pub url: Option<String>,
    /// The DNS record's text.
    pub value: Option<String>,
    /// The file's content.
    pub body: Option<String>,
    /// Until when it can be checked.
    pub expires: Timestamp,
}

/// One URL of a domain that yields cards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceView {
    /// What is asked.
    pub url: String,
    /// `well_known` or `url`.
    pub kind: String,
    /// `new`, `fresh`, `stale` or `gone`.
    pub state: String,
    /// The last request.
    pub last_attempt: Option<AttemptView>,
    /// Earlier requests, newest first; for those who may see them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptView>,
    /// When it is asked next.
    pub next_due: Option<Timestamp>,
    /// How it fared, the newest day first, at most 90 of them; where one domain is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<SourceDay>,
}

/// How a source fared on one day. Looks that failed while so many did that the fault was likely the
/// registry's do not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceDay {
    /// The day, in UTC.
    #[schema(example = "2026-11-20")]
    pub day: String,
    /// How often it was asked.
    pub looks: u32,
    /// How often it had a card.
    pub good: u32,
}

/// One request to an origin, or a refusal to make it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptView {
    /// When it began.
    pub at: Timestamp,
    /// How it ended: `card`, `not_modified`, `not_found`, `timeout`, …
    pub outcome: String,
    /// The HTTP status, where there was an answer.
    pub status: Option<u16>,
    /// The address spoken to; for curators only.
    pub address: Option<String>,
    /// One sentence: what happened and what to do.
    pub detail: String,
    /// The URL asked.
    pub url: String,
}

/// An admin's word for a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Vouch {
    /// Why the domain is trusted; kept with the proof.
    pub reason: String,
}

/// A wish to have a domain visited now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Recrawl {
    /// Fetch whole cards even where the origin would answer 304.
    #[serde(default)]
    pub full: bool,
}

/// When the wish comes true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecrawlAccepted {
    /// The domain.
    pub domain: String,
    /// The earliest moment politeness allows.
    pub next_due: Timestamp,
}
