//! Summaries of agents, as lists show them.

use std::collections::BTreeMap;

use a2a_registry_domain::lifecycle::{LivenessState, ShownLifecycle, Visibility};
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_domain::trust::TrustLevel;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::endpoint::EndpointSummary;
use super::limits;

/// Summary of an agent, as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// Id of the agent in this registry.
    pub id: Uuid,
    /// URN of the agent; null until its domain is proved, or an admin vouches for its host and the company names it.
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
    /// Whether the agent itself answers, by the last check of its endpoint.
    #[serde(default)]
    pub endpoint: EndpointSummary,
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Values of a newer registry are read, and written back unchanged.
    #[test]
    fn states_of_a_newer_registry_are_kept() {
        let newer = serde_json::json!({"level": "L9", "domain": "moonlit", "signature": "sealed"});
        let trust: Trust = serde_json::from_value(newer.clone()).unwrap();
        assert_eq!(trust.domain.known_value(), None);
        assert_eq!(serde_json::to_value(&trust).unwrap(), newer);
    }
}
