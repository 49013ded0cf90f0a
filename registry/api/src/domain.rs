//! Domains as callers see them.

use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::ownership::{DomainState, Method, ProofOutcome};
use a2a_registry_domain::source::{SourceKind, SourceState};
use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::OutcomeProblem;
use super::SourceCredentialView;
use super::endpoint::EndpointVouch;
use super::limits;
use super::object_list::deserialize_objects;

/// What to register: exactly one of `domain` and `card_url`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// A host name, with `:port` if that is not the scheme's default. The registry fetches its well-known paths and
    /// catalogs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The URL of one card, the base URL of an agent whose card is at the well-known path under it, or the URL of a
    /// catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_url: Option<String>,
    /// Approve the first card at once; only for accounts that may approve reviews.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approve: bool,
}

/// Several registrations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRegistration {
    /// What to register, at most 1,000 domains and card URLs, processed in order.
    #[serde(deserialize_with = "deserialize_objects")]
    #[schema(min_items = 1, max_items = 1000)]
    pub registrations: Vec<Registration>,
}

/// Results of several registrations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BulkRegistrationOutcome {
    /// One result for each registration, in the order of the request.
    pub outcomes: Vec<RegistrationOutcome>,
}

/// Result of one of several registrations: either `domain` or `problem` is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RegistrationOutcome {
    /// The registration as it was sent.
    pub registration: Registration,
    /// HTTP status that the registration alone would have had: 202 if it was accepted.
    pub status: u16,
    /// Name of the domain.
    pub domain: Option<String>,
    /// The sources of the registration, as `GET /v1/domains/{domain}` shows them, without daily statistics.
    pub sources: Vec<SourceView>,
    /// Reason why nothing was registered.
    pub problem: Option<OutcomeProblem>,
}

/// A registered domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DomainView {
    /// `host` or `host:port`.
    pub domain: String,
    /// `unverified`, `verified`, `lapsed`, `disputed` or `opted_out`.
    #[schema(value_type = String)]
    pub state: OpenEnum<DomainState>,
    /// Generation of the domain: it rises by one with each new owner.
    pub generation: i64,
    /// Proofs that are valid now.
    pub proofs: Vec<Proof>,
    /// The account with the strongest proof, or the one that an admin vouches for (`owner_vouch`); only shown to that
    /// account and to callers who see everything.
    pub owner: Option<String>,
    /// Set while an admin vouches for an account as owner of a host that cannot be proved; it proves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_vouch: Option<OwnerVouch>,
    /// Set while an admin vouches for the endpoints of this host, which the registry may then check; shown to the same
    /// callers as `owner`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_vouch: Option<EndpointVouch>,
    /// True if the owner has turned off checks of its agents and of endpoints on this host; shown to the same callers
    /// as `owner`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub endpoint_checks_off: bool,
    /// Contact for problems with the domain; shown to the same callers as `owner`.
    pub contact: Option<String>,
    /// Fingerprint (name servers, TLS key, card keys) of the domain at its last successful check. If all of it
    /// changes, the domain has a new owner. Only shown to callers who registered it and to those who see
    /// everything; null before the first successful check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_by: Option<OwnerFingerprint>,
    /// Keys enrolled for signing its cards, sorted by name; only shown to callers who registered it and to those
    /// who see everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<EnrolledKey>,
    /// Challenges of the caller: publish one of them to prove ownership.
    pub challenges: Vec<Challenge>,
    /// Why there is no challenge and what to do instead, if such a domain cannot be proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_challenge: Option<String>,
    /// Results of the proof checks, newest first; only shown to callers who registered it and to those who see
    /// everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<ProofCheck>,
    /// Time of the next proof check.
    pub next_check: Option<Timestamp>,
    /// URLs fetched from this domain.
    pub sources: Vec<SourceView>,
    /// Ids of its agents.
    pub agents: Vec<Uuid>,
    /// True if all sources and agents are listed, as for the owner and for callers who see everything; other callers
    /// see only their own registrations and listed agents.
    #[serde(default)]
    pub complete: bool,
    /// Reasons why the domain or one of its agents is not listed, one sentence each with what to do; only shown to
    /// callers who registered it and to those who see everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_listed: Vec<String>,
    /// Time of registration.
    pub created_at: Timestamp,
}

/// A proof of ownership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Proof {
    /// `dns`, `dns-parent` (a record of a domain above, for all below it), `http` or `operator`.
    #[schema(value_type = String)]
    pub method: OpenEnum<Method>,
    /// Time from which the proof is valid.
    pub at: Timestamp,
    /// Time of the last check that found it.
    pub seen: Timestamp,
    /// Time of the first of the checks in a row that did not find it; null if the last check found it.
    pub missing_since: Option<Timestamp>,
    /// The admin's reason, for `operator`; null for other methods.
    pub reason: Option<String>,
}

/// An admin's vouch that gives an account the owner's rights on a host that cannot be proved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnerVouch {
    /// Time at which an admin last vouched for it.
    pub since: Timestamp,
    /// Time at which it expires.
    pub until: Timestamp,
    /// The admin; shown to the same callers as `owner`.
    pub by: Option<String>,
    /// The admin's reason; shown to the same callers as `owner`.
    pub reason: Option<String>,
}

/// Fingerprint that detects a change of owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnerFingerprint {
    /// Name servers of the registrable domain; empty if the lookup failed.
    pub name_servers: Vec<String>,
    /// SHA-256, in base64url, of the public key in the domain's TLS certificate; null if the connection failed.
    pub tls_key: Option<String>,
    /// RFC 7638 thumbprints of the keys that signed its cards; empty if no card is signed.
    pub card_keys: Vec<String>,
    /// Time of the check.
    pub at: Timestamp,
}

/// A DNS record or a file to publish as proof of ownership.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Challenge {
    /// `dns` or `http`.
    #[schema(value_type = String)]
    pub method: OpenEnum<Method>,
    /// Name of the TXT record, for `dns`.
    pub name: Option<String>,
    /// URL of the file, for `http`.
    pub url: Option<String>,
    /// Text of the TXT record, for `dns`.
    pub value: Option<String>,
    /// Content of the file, for `http`.
    pub body: Option<String>,
    /// Expiry of the challenge; null for a persistent DNS record.
    pub expires: Option<Timestamp>,
}

/// A key enrolled for signing a domain's cards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnrolledKey {
    /// Key name (`kid`) in signatures.
    pub kid: String,
    /// RFC 7638 thumbprint of the key, with SHA-256, in base64url.
    pub thumbprint: String,
    /// Time of enrolment.
    pub at: Timestamp,
}

/// One proof check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProofCheck {
    /// Time of the check.
    pub at: Timestamp,
    /// `dns`, `dns-parent` or `http`.
    #[schema(value_type = String)]
    pub method: OpenEnum<Method>,
    /// The DNS names or the URL that were queried.
    pub place: String,
    /// `held`, `absent`, `wrong`, `unknown` (the check failed, which does not mean absent) or `bogus`.
    #[schema(value_type = String)]
    pub outcome: OpenEnum<ProofOutcome>,
    /// The result, and what to do.
    pub detail: String,
    /// The expected text, if it was not found; at most 255 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
    /// Records found instead, at most 5 texts of at most 120 characters each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<String>,
    /// True if a CNAME was followed, so that the record is in another zone.
    #[serde(default)]
    pub aliased: bool,
}

impl ProofCheck {
    /// The check as one sentence for people.
    pub fn sentence(&self) -> String {
        let mut sentence = self.detail.clone();
        if !self.found.is_empty() {
            let found: Vec<String> = self
                .found
                .iter()
                .map(|text| format!("\"{text}\""))
                .collect();
            sentence.push_str(&format!("; found instead: {}", found.join(", ")));
        }
        if let Some(wanted) = &self.wanted {
            sentence.push_str(&format!("; expected: \"{wanted}\""));
        }
        if self.aliased {
            sentence.push_str("; a CNAME was followed, so the record is in another zone");
        }
        sentence
    }
}

/// Result of `:verify`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Verification {
    /// The domain after the checks.
    pub domain: DomainView,
    /// Each check with its method, place and result.
    pub checks: Vec<ProofCheck>,
}

/// Changes to a domain by its owner. Members left out keep their value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DomainPatch {
    /// Contact for problems: a `mailto:` or `https:` URL; an empty text removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::Contact>)]
    pub contact: Option<String>,
    /// True to opt out: the domain and its agents are not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opt_out: Option<bool>,
    /// False to turn off checks of the domain's agents, and of endpoints on its host; true to permit them again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_checks: Option<bool>,
}

/// New owner of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Name of the account.
    pub account: String,
}

/// A source: one URL from which cards are fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceView {
    /// Id of the source; use it to withdraw its registration.
    pub id: String,
    /// The URL that was registered, or that a catalog lists.
    pub url: String,
    /// `well_known`, `url`, `ard` and `ai_catalog` (catalogs, in which a domain lists its agents), or `entry` (a card
    /// that a catalog lists).
    #[schema(value_type = String)]
    pub kind: OpenEnum<SourceKind>,
    /// `new`, `fresh`, `stale` or `gone`; `absent` is a catalog that does not exist, which is not an error. A caller
    /// who neither owns the domain nor registered it first sees only `recorded` for a URL that it has registered,
    /// until it may see a listed agent there.
    #[schema(value_type = String)]
    pub state: OpenEnum<SourceState>,
    /// The agent of which this is a source; null if there is none that the caller may see.
    pub agent: Option<Uuid>,
    /// `covered`: a proof of the domain applies to it (a well-known path, a card that the domain's own catalog lists,
    /// a URL registered by the owner). `nomination`: someone else registered it. Rules that trust a domain do not
    /// decide on a nomination, and it gets no trust level and no URN from the domain.
    #[schema(value_type = Coverage)]
    pub coverage: OpenEnum<Coverage>,
    /// True if the caller registered it.
    pub own: bool,
    /// The limit that was reached, if a card was fetched but no agent was created from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_met: Option<String>,
    /// The URL of the card, if `url` is a base URL and the card is at the well-known path under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_url: Option<String>,
    /// The credential with which the registry fetches it, its own or that of the catalog that lists it; its secret is
    /// never shown. Agents found with one start as `internal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<SourceCredentialView>,
    /// The last attempt to fetch it.
    pub last_attempt: Option<AttemptView>,
    /// Earlier attempts, newest first; only for callers who may see them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptView>,
    /// Time of the next fetch.
    pub next_due: Option<Timestamp>,
    /// Validators for the next conditional request; only for callers who may see attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validators: Option<KnownValidators>,
    /// `max-age` of its last successful response, in seconds; null if the response had none. Only for callers who may
    /// see attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<u32>,
    /// `Vary` of its last successful response, at most 255 bytes. Only for callers who may see attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vary: Option<String>,
    /// Daily fetch statistics of the last 90 days, newest first; only if a single domain is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<SourceDay>,
}

impl SourceView {
    /// Number of successful fetches in the last 90 days, as a sentence without its full stop; `None` before the first
    /// fetch.
    pub fn uptime_sentence(&self) -> Option<String> {
        let sum = |part: fn(&SourceDay) -> u32| -> u64 {
            self.days.iter().map(|day| u64::from(part(day))).sum()
        };
        let (fetches, good) = (sum(|day| day.looks), sum(|day| day.good));
        (fetches > 0).then(|| format!("{good} of {fetches} fetches succeeded in the last 90 days"))
    }
}

/// Validators that the origin sent with its last successful response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KnownValidators {
    /// True if it sent an `ETag`.
    pub etag: bool,
    /// True if it sent a `Last-Modified`.
    pub last_modified: bool,
}

/// Fetch statistics of one day. Fetches that failed while the circuit breaker was open (many fetches failing at once,
/// probably because of the registry's own network) are not counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceDay {
    /// The day, in UTC.
    #[schema(format = Date, example = "2026-11-20")]
    pub day: String,
    /// Number of fetches.
    pub looks: u32,
    /// Number of fetches that returned a card.
    pub good: u32,
}

/// One attempt to fetch a URL; also recorded if the registry refused to send the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptView {
    /// Time at which it began.
    pub at: Timestamp,
    /// The result: `card`, `not_modified`, `not_found`, `timeout`, …
    pub outcome: String,
    /// HTTP status; null if there was no response.
    pub status: Option<u16>,
    /// How the cached copy was used: `revalidated` (conditional request, the origin responded 304), `replaced`
    /// (conditional request, the origin sent another card), `whole` (unconditional request); null if no card was
    /// fetched.
    #[serde(default)]
    pub cache: Option<String>,
    /// Duration in milliseconds.
    #[serde(default)]
    pub elapsed_ms: u32,
    /// IP address of the origin; only shown to curators.
    pub address: Option<String>,
    /// What happened and what to do, in one sentence.
    pub detail: String,
    /// The URL that was fetched.
    pub url: String,
}

/// A request to vouch for a host, and for one of its registrants. It gives the host no owner; `NewOwnerVouch` does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Vouch {
    /// Why the admission rules may decide on the cards of the host's well-known paths and catalogs; stored with the
    /// vouch.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
    /// Name of a registrant: the rules may then decide on the card URLs of the host that this account registers, too.
    /// No account's URLs if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// A request to vouch for an account as owner of a host that cannot be proved. It does not affect how the rules decide
/// on its cards.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewOwnerVouch {
    /// Name of the account that gets the owner's rights.
    #[schema(value_type = limits::Name)]
    pub account: String,
    /// Why this account is considered the owner; stored in the event log.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
    /// Days until the vouch expires, at most 365; by default 180.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::VouchDays>)]
    pub expires_in_days: Option<u32>,
}

/// A request to start a new generation, because the domain has a new owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGeneration {
    /// Why the owner is considered to have changed; stored in the event log.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
}

/// A request to erase a domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Erasure {
    /// Why the domain is erased; stored in the event log.
    #[schema(value_type = limits::Reason)]
    pub reason: String,
}

/// A request to crawl a domain as soon as possible.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Recrawl {
    /// True to send unconditional requests, so that cards are fetched again even if they have not changed.
    #[serde(default)]
    pub full: bool,
}

/// Time at which a requested crawl begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecrawlAccepted {
    /// The domain.
    pub domain: String,
    /// The earliest time allowed by the rate limits.
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
            kind: SourceKind::Url.into(),
            state: SourceState::Fresh.into(),
            agent: None,
            coverage: Coverage::Covered.into(),
            own: false,
            limit_met: None,
            card_url: None,
            credential: None,
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
    fn uptime_is_summed_over_days() {
        for (days, text) in [
            (&[][..], None),
            (&[(0, 0)], None),
            (
                &[(1, 1)],
                Some("1 of 1 fetches succeeded in the last 90 days"),
            ),
            (
                &[(1, 0)],
                Some("0 of 1 fetches succeeded in the last 90 days"),
            ),
            (
                &[(1, 0), (1, 1)],
                Some("1 of 2 fetches succeeded in the last 90 days"),
            ),
            (
                &[(9999, 9998), (1, 1)],
                Some("9999 of 10000 fetches succeeded in the last 90 days"),
            ),
            (
                &[(u32::MAX, u32::MAX), (u32::MAX, u32::MAX)],
                Some("8589934590 of 8589934590 fetches succeeded in the last 90 days"),
            ),
        ] {
            assert_eq!(source(days).uptime_sentence().as_deref(), text, "{days:?}");
        }
    }
}
