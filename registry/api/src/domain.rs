//! Domains as callers see them.

use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::limits;

/// What to register: exactly one of `domain` and `card_url`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// A host name, with `:port` where it is not the scheme's own. Its well-known paths and catalogs are asked.
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
    /// Whose it is by the strongest proof: an account's name, for its owner and for those who see everything.
    pub owner: Option<String>,
    /// Where its owner wants to be told of trouble; for the same.
    pub contact: Option<String>,
    /// What it was like when a proof of it was last found: where all of it changes, it has another owner. For those
    /// who registered it and those who see everything; null where no proof was found yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_by: Option<KnownBy>,
    /// The keys that were named for its cards, by their names; for those who registered it and those who see
    /// everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<EnrolledKey>,
    /// What the caller may place to prove ownership; one of them suffices.
    pub challenges: Vec<Challenge>,
    /// Why the caller gets nothing to place, where nobody can prove such a domain, and what to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_challenge: Option<String>,
    /// What looking for proofs has found, newest first; for those who registered it and those who see everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<ProofCheck>,
    /// When proofs are looked for next.
    pub next_check: Option<Timestamp>,
    /// What is asked of the domain.
    pub sources: Vec<SourceView>,
    /// Its agents.
    pub agents: Vec<Uuid>,
    /// Whether these are all of its sources and agents, as its owner and those who see everything are shown; the others see
    /// what they have registered and what is listed.
    #[serde(default)]
    pub complete: bool,
    /// Why it, or an agent of it, is not listed, one sentence each with what to do; for those who registered it and
    /// those who see everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_listed: Vec<String>,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// A proof of ownership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Proof {
    /// `dns`, `dns-parent` (a record of a domain above, for all below it), `http` or `operator`.
    pub method: String,
    /// Since when it holds.
    pub at: Timestamp,
    /// When it was last found.
    pub seen: Timestamp,
    /// Since when it is missing, where it is.
    pub missing_since: Option<Timestamp>,
    /// An admin's reason; null for the others.
    pub reason: Option<String>,
}

/// What one owner of a domain is told from the next by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KnownBy {
    /// The name servers of its registrable domain; none where nobody could tell.
    pub name_servers: Vec<String>,
    /// SHA-256, in base64url, of the public key of the certificate it showed; null where nobody could tell.
    pub tls_key: Option<String>,
    /// RFC 7638 thumbprints of the keys that its cards were signed with; none where none is signed.
    pub card_keys: Vec<String>,
    /// When it was looked at.
    pub at: Timestamp,
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
    /// Until when it counts; null for what stays.
    pub expires: Option<Timestamp>,
}

/// A key that was named for a domain's cards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnrolledKey {
    /// What signatures call it.
    pub kid: String,
    /// Its RFC 7638 thumbprint, with SHA-256, in base64url.
    pub thumbprint: String,
    /// Since when.
    pub at: Timestamp,
}

/// One look for a proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProofCheck {
    /// When.
    pub at: Timestamp,
    /// `dns`, `dns-parent` or `http`.
    pub method: String,
    /// The DNS names or the URL asked.
    pub place: String,
    /// `held`, `absent`, `wrong`, `unknown` (nobody could tell, which is not absence) or `bogus`.
    pub outcome: String,
    /// What came of it, and what to do.
    pub detail: String,
    /// What was looked for, where it is missing; at most 255 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// The records found instead of it, at most 5 texts of at most 120 characters each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<String>,
    /// Whether a CNAME led there, so that the record stands in another zone.
    #[serde(default)]
    pub aliased: bool,
}

impl ProofCheck {
    /// All of it as one sentence for people.
    pub fn told(&self) -> String {
        let mut told = self.detail.clone();
        if !self.found.is_empty() {
            let found: Vec<String> = self
                .found
                .iter()
                .map(|text| format!("\"{text}\""))
                .collect();
            told.push_str(&format!("; found there: {}", found.join(", ")));
        }
        if let Some(wanted) = &self.wanted {
            told.push_str(&format!("; looked for: \"{wanted}\""));
        }
        if self.aliased {
            told.push_str("; a CNAME leads there, so the record stands in another zone");
        }
        told
    }
}

/// The answer to `:verify`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Verification {
    /// The domain as it stands now.
    pub domain: DomainView,
    /// What was looked for, where, and what was found.
    pub checks: Vec<ProofCheck>,
}

/// What a domain's owner may change. What is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DomainPatch {
    /// Where to tell of trouble: a `mailto:` or `https:` URL; an empty text for nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::Contact>)]
    pub contact: Option<String>,
    /// Whether the domain is to be listed no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opt_out: Option<bool>,
}

/// To whom a domain goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// The account's name.
    pub account: String,
}

/// One URL of a domain that yields cards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceView {
    /// What it is called in this registry, to withdraw its registration by.
    pub id: String,
    /// What is asked.
    pub url: String,
    /// `well_known`, `url`, `ard` and `ai_catalog` (catalogs, in which a domain names its agents), or `entry` (a card
    /// that a catalog names).
    pub kind: String,
    /// `new`, `fresh`, `stale` or `gone`; `absent` is a catalog that is not there, which is no fault.
    pub state: String,
    /// The agent that it feeds; null where it feeds none, or none that the caller may see.
    pub agent: Option<Uuid>,
    /// Whether a proof of the domain covers it (`covered`: a well-known path, a card that the domain's own catalog names,
    /// a URL registered by whoever holds the proof) or somebody else has nominated it (`nomination`): the rules that
    /// trust a domain do not decide on a nomination, and it gets neither level nor URN through the domain.
    pub coverage: Coverage,
    /// Whether the caller has registered it.
    pub own: bool,
    /// Why it feeds no agent although it gave a card: the limit that was met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_met: Option<String>,
    /// The last request.
    pub last_attempt: Option<AttemptView>,
    /// Earlier requests, newest first; for those who may see them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptView>,
    /// When it is asked next.
    pub next_due: Option<Timestamp>,
    /// By what the next request can be conditional; for those who may see attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validators: Option<KnownValidators>,
    /// Seconds that its last good answer said it stays fresh; null where it said nothing, and for the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<u32>,
    /// The request fields by which the origin last said that its answer differs (`Vary`), at most 255 bytes; for the
    /// same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vary: Option<String>,
    /// How it fared, the newest day first, at most 90 of them; where one domain is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<SourceDay>,
}

impl SourceView {
    /// How the source fared on the days that are counted, in one sentence without its full stop; `None` where none are.
    pub fn uptime(&self) -> Option<String> {
        let sum = |part: fn(&SourceDay) -> u32| -> u64 {
            self.days.iter().map(|day| u64::from(part(day))).sum()
        };
        let (looks, good) = (sum(|day| day.looks), sum(|day| day.good));
        // Rounded down, so that only a source that never failed has fared well every time.
        let thousandths = good.saturating_mul(1000).checked_div(looks)?;
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let days = self.days.len() as u64;
        Some(format!(
            "{}.{} % of {looks} look{} on {days} day{} succeeded",
            thousandths / 10,
            thousandths % 10,
            plural(looks),
            plural(days)
        ))
    }
}

/// Which validators the origin has sent with what it served last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KnownValidators {
    /// Whether it sent an `ETag`.
    pub etag: bool,
    /// Whether it sent a `Last-Modified`.
    pub last_modified: bool,
}

/// How a source fared on one day. Looks that failed while so many did that the fault was likely the
/// registry's do not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceDay {
    /// The day, in UTC.
    #[schema(format = Date, example = "2026-11-20")]
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
    /// What kept content had to do with it: `revalidated` where the request was conditional and the origin answered
    /// that nothing has changed (304), `replaced` where it sent another one instead, `whole` where all of it was asked for; null where it gave nothing.
    #[serde(default)]
    pub cache: Option<String>,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub elapsed_ms: u32,
    /// The address spoken to; for curators only.
    pub address: Option<String>,
    /// One sentence: what happened and what to do.
    pub detail: String,
    /// The URL asked.
    pub url: String,
}

/// An admin's word for a domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Vouch {
    /// Why the domain is trusted; kept with the proof.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
    /// The account, by name, whose card URLs of the domain are trusted too; of nobody's where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// That a domain has another owner now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGeneration {
    /// Why.
    #[schema(value_type = limits::Reason)]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn source(days: &[(u32, u32)]) -> SourceView {
        let day = |&(looks, good): &(u32, u32)| SourceDay {
            day: "2026-11-20".into(),
            looks,
            good,
        };
        SourceView {
            id: "7".into(),
            url: "https://a.example/card.json".into(),
            kind: "url".into(),
            state: "fresh".into(),
            agent: None,
            coverage: Coverage::Covered,
            own: false,
            limit_met: None,
            last_attempt: None,
            attempts: Vec::new(),
            next_due: None,
            validators: None,
            max_age: None,
            vary: None,
            days: days.iter().map(day).collect(),
        }
    }

    #[test]
    fn uptime_is_summed_over_days_and_never_rounded_up() {
        for (days, told) in [
            (&[][..], None),
            (&[(0, 0)], None),
            (&[(1, 1)], Some("100.0 % of 1 look on 1 day succeeded")),
            (
                &[(1, 0), (1, 1)],
                Some("50.0 % of 2 looks on 2 days succeeded"),
            ),
            (
                &[(9999, 9998), (1, 1)],
                Some("99.9 % of 10000 looks on 2 days succeeded"),
            ),
            (
                &[(u32::MAX, u32::MAX), (u32::MAX, u32::MAX)],
                Some("100.0 % of 8589934590 looks on 2 days succeeded"),
            ),
        ] {
            assert_eq!(source(days).uptime().as_deref(), told, "{days:?}");
        }
    }
}
