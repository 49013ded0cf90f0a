//! Agents as callers see them.

use std::collections::BTreeMap;

use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::lifecycle::{LivenessState, ShownLifecycle, Visibility};
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_domain::trust::TrustLevel;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::decision::{BreakGlass, Decision, HoldView};
use super::hit::{Duplicates, Hit};
use super::limits;

/// Summary of an agent, as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// Id of the agent in this registry.
    pub id: Uuid,
    /// URN of the agent; null until its domain is proved.
    pub urn: Option<String>,
    /// Name from the card.
    pub name: String,
    /// Description from the card.
    pub description: Option<String>,
    /// Version of the agent, from the card.
    pub version: Option<String>,
    /// Organisation that runs it.
    pub provider: Option<Provider>,
    /// The domain that publishes the card.
    pub domain: String,
    /// Addresses of the agent, in the order to try.
    pub interfaces: Vec<Interface>,
    /// Capabilities that the card declares. A search shows them only if `fields` names them.
    #[serde(default)]
    #[schema(required = true)]
    pub capabilities: Capabilities,
    /// Skills of the agent. A list has at most ten of them; if there are more, those that matched come first. A search
    /// shows their ids and names, and more if `fields` names it.
    pub skills: Vec<HitSkill>,
    /// Number of skills of the agent.
    #[serde(default)]
    pub skills_total: u64,
    /// True if texts or lists of the card are cut or left out here, as in lists; a single agent shows everything.
    #[serde(default)]
    pub shortened: bool,
    /// Tags of all its skills.
    pub tags: Vec<String>,
    /// Authentication that the agent requires: `none`, `apiKey`, `http:<scheme>`, `oauth2`, `openIdConnect`,
    /// `mutualTLS`, or the card's own text; `unknown` if the registry cannot read the card's requirement.
    pub auth: Vec<String>,
    /// Labels set by curators, never by the card. A search shows them only if `fields` names them.
    #[serde(default)]
    #[schema(required = true)]
    pub labels: BTreeMap<String, String>,
    /// How well the card's origin is proved.
    pub trust: Trust,
    /// Lifecycle state of the agent, `suspended` while it is on hold.
    #[schema(value_type = ShownLifecycle)]
    pub lifecycle: OpenEnum<ShownLifecycle>,
    /// Deprecation notice; only while the agent is deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<Deprecation>,
    /// Who can find it.
    #[schema(value_type = Visibility)]
    pub visibility: OpenEnum<Visibility>,
    /// Whether the last fetches of the card succeeded, as of the last change of this entry.
    pub liveness: Liveness,
    /// SHA-256 of the served card. A search shows it only if `fields` names it.
    #[serde(default)]
    #[schema(value_type = limits::Digest, required = true)]
    pub card_digest: String,
    /// Related URLs. A search shows them only if `fields` names them.
    #[serde(default)]
    #[schema(required = true)]
    pub links: Links,
}

/// Organisation behind an agent, from its card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Provider {
    /// Name of the organisation.
    pub organization: Option<String>,
    /// Website of the organisation.
    pub url: Option<String>,
}

/// One URL at which an agent serves one protocol binding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Interface {
    /// URL from the card; a relative one is resolved against the card's own URL.
    pub url: String,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON`, or the card's own text; `unknown` if the card has the URL in a member of no
    /// protocol version, and names no binding.
    pub binding: String,
    /// `Major.Minor`; null if the card does not name a version.
    pub protocol_version: Option<String>,
    /// Tenant, which clients copy into every request; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// Optional protocol features that an agent declares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Capabilities {
    /// Streaming responses.
    pub streaming: bool,
    /// Push notifications of task updates.
    pub push_notifications: bool,
    /// An extended card for authenticated callers.
    pub extended_agent_card: bool,
    /// URIs of protocol extensions.
    pub extensions: Vec<String>,
}

/// A skill in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HitSkill {
    /// Id of the skill within its card.
    pub id: String,
    /// Name of the skill.
    pub name: String,
    /// Description of the skill. A search shows it only if `fields` names it.
    pub description: Option<String>,
    /// Tags of the skill. A search shows them only if `fields` names them.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// How well a card's origin is proved: each level includes those below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trust {
    /// null: not fetched over valid TLS; `L0`: fetched over valid TLS; `L1`: the domain is proved, and the proof
    /// covers the card; `L2`: signed with a key of that domain; `L3`: signed with a key that the domain's owner
    /// enrolled.
    #[schema(value_type = Option<String>)]
    pub level: Option<OpenEnum<TrustLevel>>,
    /// State of the domain: `unverified`, `verified`, `lapsed`, `disputed` or `opted_out`.
    #[schema(value_type = String)]
    pub domain: OpenEnum<DomainState>,
    /// Result of checking the signatures: `unsigned`, `valid`, `untrusted`, `invalid` or `unknown`.
    #[schema(value_type = String)]
    pub signature: OpenEnum<SignatureState>,
}

impl Trust {
    /// Whether an account has proved the domain. A card that was not fetched over valid TLS has no level; then the
    /// domain's state decides.
    pub fn is_proved(&self) -> bool {
        match &self.level {
            Some(level) => *level != TrustLevel::L0,
            None => self.domain == DomainState::Verified,
        }
    }
}

/// Deprecation notice of an agent, which is still served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deprecation {
    /// Reason and advice, written by the owner or a curator.
    pub message: String,
    /// Time of the deprecation.
    pub since: Timestamp,
    /// Id of the agent to use instead; null if there is none, and for callers who may not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<Uuid>,
    /// Time after which the agent may stop working; the registry does nothing by itself then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sunset: Option<Timestamp>,
}

impl Deprecation {
    /// Whether the sunset time has passed.
    pub fn is_past_sunset(&self, now: Timestamp) -> bool {
        self.sunset.is_some_and(|sunset| sunset <= now)
    }

    /// The notice as one sentence for people, without its full stop.
    pub fn sentence(&self) -> String {
        let mut sentence = self.message.trim_end_matches('.').to_owned();
        if let Some(sunset) = self.sunset {
            sentence.push_str(&format!(
                "; may stop working after {}",
                sunset.to_readable()
            ));
        }
        if let Some(replacement) = self.replacement {
            sentence.push_str(&format!("; use {replacement} instead"));
        }
        sentence
    }
}

/// Whether the last fetches of the card succeeded. Says nothing about the agent itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Liveness {
    /// `fresh`: the last fetch succeeded; `stale`: it failed, and the last good card is served; `gone`: fetches failed
    /// for so long that the agent is not listed.
    #[schema(value_type = LivenessState)]
    pub state: OpenEnum<LivenessState>,
    /// Reason of the last failure; absent if `fresh`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time of the last successful fetch; absent in search and lookup results, because a fetch that finds the card
    /// unchanged does not update the search index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Timestamp>,
    /// Time at which the card last changed.
    pub last_changed: Option<Timestamp>,
    /// Time of the next fetch; absent in search and lookup results, like `last_seen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_due: Option<Timestamp>,
}

/// URLs related to an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Links {
    /// The agent in this API.
    #[serde(rename = "self")]
    pub this: String,
    /// Its card, byte for byte.
    pub card: String,
    /// Its web page.
    pub page: String,
    /// Base URL for an SDK's card resolver.
    pub resolver: String,
    /// URL of its card at its publisher, for clients that compare the origin of a card with that of the agent; as of
    /// the last change of this entry. Null if the card has no URL of its own, because it is embedded in a catalog.
    #[serde(default)]
    pub origin: Option<String>,
    /// Its similar agents in this API.
    #[serde(default)]
    pub similar: String,
}

/// Agents that are similar to one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Similar {
    /// Similar agents, the most similar first; one of each group of duplicates, and none of the agent's own
    /// duplicates. `score` is comparable within this response only.
    pub agents: Vec<Hit>,
    /// What was compared: `semantic` (vectors) or `lexical` (words).
    pub mode: String,
    /// Duplicates of the agent: with the same name at the same endpoint, or with the same content.
    pub duplicates: Option<Duplicates>,
}

/// One agent in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// The members of the agent in a list.
    #[serde(flatten)]
    pub hit: Hit,
    /// The card in the registry's own form, which is the same for every protocol version.
    #[schema(value_type = Object)]
    pub card: a2a_card::AgentCard,
    /// URL that `send` assumes, because the card is at a well-known path and names no URL at all; absent for all other
    /// cards. Clients should not send it credentials that were not given for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed_url: Option<String>,
    /// How to authenticate, one sentence per alternative.
    pub security: Vec<String>,
    /// Result of checking the card's signatures.
    pub signature_verdict: SignatureVerdict,
    /// The decision on this version of the card.
    pub decision: Decision,
    /// `covered` if a proof of the domain applies to the card, `nomination` if someone else registered it.
    #[schema(value_type = Coverage)]
    pub coverage: OpenEnum<Coverage>,
    /// Account that is responsible for the agent inside this company; null if there is none.
    #[serde(default)]
    pub sponsor: Option<String>,
    /// Whether a curator has accepted representative queries derived from its skills for its ARD entry.
    #[serde(default)]
    pub derived_queries: bool,
    /// Groups whose members find the agent while it is restricted; empty for callers who may not see its holds.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Collections whose audience finds the agent while it is restricted; empty for callers who may not see its holds.
    /// The agent need not be in these collections.
    #[serde(default)]
    pub collections: Vec<String>,
    /// Holds on the agent; empty for callers who may not see them.
    pub holds: Vec<HoldView>,
    /// The break-glass approval under which the agent is served until others confirm it; null if there is none.
    #[serde(default)]
    pub break_glass: Option<BreakGlass>,
}

impl Agent {
    /// Whether a proof of the domain covers the card, in words.
    pub fn coverage_meaning(&self) -> String {
        coverage_meaning(&self.coverage, self.hit.summary.trust.is_proved())
    }
}

/// What a coverage means; an unknown one is shown as it is.
pub(crate) fn coverage_meaning(coverage: &OpenEnum<Coverage>, is_proved: bool) -> String {
    match coverage.known_value() {
        Some(known) => known.description(is_proved).to_owned(),
        None => coverage.to_string(),
    }
}

/// Result of checking the signatures of one version of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignatureVerdict {
    /// The best result among the signatures.
    #[schema(value_type = SignatureState)]
    pub state: OpenEnum<SignatureState>,
    /// Reason for the result, in one sentence.
    pub reason: String,
    /// The first 16 signatures, in the card's order.
    pub signatures: Vec<SignatureEntryView>,
}

/// Result of checking one signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignatureEntryView {
    /// Key name from the signature.
    pub kid: Option<String>,
    /// Algorithm from the signature.
    pub alg: Option<String>,
    /// RFC 7638 thumbprint of the key that the signature verifies with, or else of the key it names; null if no key
    /// was found.
    pub key_thumbprint: Option<String>,
    /// Source of the key: the URL of a key set, or `enrolled`; null if no key was found.
    pub key_from: Option<String>,
    /// Result for this signature alone; `unsigned` for an entry that is not a JWS.
    #[schema(value_type = SignatureState)]
    pub verdict: OpenEnum<SignatureState>,
    /// Reason for the result, in one sentence.
    pub reason: String,
}

/// One stored version of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// SHA-256 of the bytes.
    #[schema(value_type = limits::Digest)]
    pub digest: String,
    /// SHA-256 of the RFC 8785 form without signatures.
    #[schema(value_type = limits::Digest)]
    pub content_digest: String,
    /// Time at which it was first fetched.
    pub observed_at: Timestamp,
    /// State of the version.
    #[schema(value_type = VersionState)]
    pub state: OpenEnum<VersionState>,
    /// Class of the change against the version that was approved at the time; null for a first card.
    #[schema(value_type = Option<ChangeClass>)]
    pub change_class: Option<OpenEnum<ChangeClass>>,
    /// Wire format that the card was read as.
    pub wire_family: String,
    /// True if this version is served.
    #[serde(default)]
    pub served: bool,
    /// Result of checking its signatures with the keys known today.
    pub signature_verdict: SignatureVerdict,
}

/// Changes between two versions of a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Diff {
    /// Digest of the older version.
    #[schema(value_type = limits::Digest)]
    pub from: String,
    /// Digest of the newer version.
    #[schema(value_type = limits::Digest)]
    pub to: String,
    /// Class of the whole change: the most severe class among its parts.
    #[schema(value_type = ChangeClass)]
    pub change_class: OpenEnum<ChangeClass>,
    /// The changes, the most severe first.
    pub changes: Vec<Change>,
    /// True if there are more changes than are listed.
    pub cut: bool,
}

/// One change in a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// RFC 6901 pointer into the newer card, or into the older one for a removed value.
    pub pointer: String,
    /// Old value, shortened for display; null if it was added.
    #[schema(value_type = serde_json::Value)]
    pub before: Option<serde_json::Value>,
    /// New value, shortened for display; null if it was removed.
    #[schema(value_type = serde_json::Value)]
    pub after: Option<serde_json::Value>,
    /// Class of this change.
    #[schema(value_type = ChangeClass)]
    pub class: OpenEnum<ChangeClass>,
    /// Why it has that class.
    pub reason: String,
}

impl From<&a2a_card::CardChange> for Change {
    fn from(change: &a2a_card::CardChange) -> Self {
        Self {
            pointer: change.pointer.clone(),
            before: change.before.clone(),
            after: change.after.clone(),
            class: ChangeClass::from(change.class).into(),
            reason: change.reason.clone(),
        }
    }
}

/// Changes to an agent apart from its card. Members left out keep their value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentPatch {
    /// Who can find it; its owner may only narrow this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// All groups whose members find it while it is restricted: `NAME` of an admin's group, `ORIGIN#NAME` of another
    /// one. An owner can name groups that it is in, and may only narrow this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::Audience>)]
    pub groups: Option<Vec<String>>,
    /// All collections whose audience finds it while it is restricted, whether it is in them or not. An owner can name
    /// collections that it sees, and may only narrow this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::NamedCollections>)]
    pub collections: Option<Vec<String>>,
    /// All its labels; only curators set them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::Labels>)]
    pub labels: Option<BTreeMap<String, String>>,
    /// Name of the account that is responsible for it inside this company; empty for none. Owners and curators set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::OptionalName>)]
    pub sponsor: Option<String>,
    /// Whether its ARD entry may have representative queries derived from its skills if its examples are too few; only
    /// curators set this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived_queries: Option<bool>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn trust(level: Option<&str>, domain: &str) -> Trust {
        let value = serde_json::json!({"level": level, "domain": domain, "signature": "unsigned"});
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_proof_is_claimed_only_of_a_proved_domain() {
        for (level, domain, is_proved) in [
            (None, "unverified", false),
            (None, "verified", true),
            (Some("L0"), "unverified", false),
            // The operator vouches for it, and no account has proved it.
            (Some("L0"), "verified", false),
            (Some("L1"), "verified", true),
            (Some("L3"), "verified", true),
        ] {
            let trust = trust(level, domain);
            assert_eq!(trust.is_proved(), is_proved, "{level:?} {domain}");
            let meaning = coverage_meaning(&Coverage::Covered.into(), trust.is_proved());
            assert_eq!(meaning.contains("a proof of"), is_proved, "{meaning}");
        }
        let newer = OpenEnum::from_text("moonlit".into());
        assert_eq!(coverage_meaning(&newer, true), "moonlit");
    }

    /// Values of a newer registry are read, and written back unchanged.
    #[test]
    fn states_of_a_newer_registry_are_kept() {
        let newer = serde_json::json!({"level": "L9", "domain": "moonlit", "signature": "sealed"});
        let trust: Trust = serde_json::from_value(newer.clone()).unwrap();
        assert_eq!(trust.domain.known_value(), None);
        assert_eq!(serde_json::to_value(&trust).unwrap(), newer);
    }
}
