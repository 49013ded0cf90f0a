//! Agents as callers see them.

use std::collections::BTreeMap;

use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::lifecycle::{Hold, LivenessState, ShownLifecycle, Visibility};
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::limits;

/// One agent in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Hit {
    /// What the index keeps ready.
    #[serde(flatten)]
    pub summary: Summary,
    /// How it matched.
    #[serde(flatten)]
    pub matched: Match,
}

/// How an agent matched a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Match {
    /// Relevance, where a text was searched for. It says nothing about trust.
    #[serde(default)]
    pub score: Option<f32>,
    /// Pieces of text that matched.
    #[serde(default)]
    pub highlights: Vec<HighlightView>,
    /// Ids of the skills that matched.
    #[serde(default)]
    pub matched_skills: Vec<String>,
    /// The parts of the score, where asked for.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub explain: Option<Value>,
}

/// A piece of text in which something matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HighlightView {
    /// The field it is from.
    pub field: String,
    /// The skill it is from, by id.
    pub skill: Option<String>,
    /// The text in order, matching and other pieces in turn.
    pub fragments: Vec<Fragment>,
}

/// A piece of a highlighted text, as the card writes it: escape it before showing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fragment {
    /// The piece.
    pub text: String,
    /// Whether it matched.
    pub matched: bool,
}

/// What every list shows of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// The registry's identifier.
    pub id: Uuid,
    /// The agent's URN, once its domain was proved.
    pub urn: Option<String>,
    /// The card's name.
    pub name: String,
    /// The card's description.
    pub description: Option<String>,
    /// The agent's own version.
    pub version: Option<String>,
    /// Who runs it.
    pub provider: Option<Provider>,
    /// The domain that publishes the card.
    pub domain: String,
    /// Where it can be reached, in the order to try.
    pub interfaces: Vec<Interface>,
    /// What it says it can do.
    pub capabilities: Capabilities,
    /// Its skills.
    pub skills: Vec<HitSkill>,
    /// The tags of all skills.
    pub tags: Vec<String>,
    /// `none`, `apiKey`, `http:<scheme>`, `oauth2`, `openIdConnect`, `mutualTLS`, or the card's own text; `unknown`
    /// where the card asks for something in a form that is not understood.
    pub auth: Vec<String>,
    /// Set by curators, never by the card.
    pub labels: BTreeMap<String, String>,
    /// What is known about the card's origin.
    pub trust: Trust,
    /// Where the agent stands.
    pub lifecycle: ShownLifecycle,
    /// What was said when it was marked as on its way out; only while it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<Deprecation>,
    /// Who may find it.
    pub visibility: Visibility,
    /// Whether the card could be reached lately, as of the last change of this entry.
    pub liveness: Liveness,
    /// SHA-256 of the card served.
    #[schema(value_type = limits::Digest)]
    pub card_digest: String,
    /// Where to go on.
    pub links: Links,
}

/// The organisation behind an agent, as its card names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Provider {
    /// The organisation.
    pub organization: Option<String>,
    /// Its site.
    pub url: Option<String>,
}

/// One address at which an agent speaks one protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Interface {
    /// The address as the card writes it.
    pub url: String,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON`, or the card's own text.
    pub binding: String,
    /// `Major.Minor`; null when nothing dates it.
    pub protocol_version: Option<String>,
    /// Copied by clients into every request.
    pub tenant: Option<String>,
}

/// What an agent says it can do beyond answering.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Capabilities {
    /// Streams answers.
    pub streaming: bool,
    /// Pushes task updates.
    pub push_notifications: bool,
    /// Gives a fuller card to authenticated callers.
    pub extended_agent_card: bool,
    /// URIs of protocol extensions.
    pub extensions: Vec<String>,
}

/// A skill in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HitSkill {
    /// Its id inside the card.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// Its keywords.
    pub tags: Vec<String>,
}

/// How well a card's origin is proved: a ladder on which each step includes those below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trust {
    /// null: not fetched over valid TLS; `L0`: fetched over valid TLS; `L1`: its domain is proved, and the proof covers the
    /// card; `L2`: signed with a key of that domain; `L3`: signed with a key that the domain's owner has enrolled.
    pub level: Option<String>,
    /// `unverified`, `verified`, `lapsed`, `disputed` or `opted_out`.
    pub domain: String,
    /// `unsigned`, `valid`, `untrusted`, `invalid` or `unknown`.
    pub signature: String,
}

/// Word that an agent is on its way out. It is still served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deprecation {
    /// Why, and what to do, in the words of its owner or a curator.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
    /// The agent to move to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<Uuid>,
    /// From when on it is not to be counted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sunset: Option<Timestamp>,
}

impl Deprecation {
    /// All of it as one sentence for people, without its full stop.
    pub fn told(&self) -> String {
        let mut told = self.message.trim_end_matches('.').to_owned();
        if let Some(sunset) = self.sunset {
            told.push_str(&format!(
                "; not to be counted on from {}",
                sunset.to_rfc3339()
            ));
        }
        if let Some(replacement) = self.replacement {
            told.push_str(&format!("; moves to {replacement}"));
        }
        told
    }
}

/// Whether the card could be reached lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Liveness {
    /// `fresh`, `stale` or `gone`.
    pub state: LivenessState,
    /// Why it is not fresh.
    pub reason: Option<String>,
    /// When the card was last seen; null in what a search or a lookup finds, because a look that changes nothing moves
    /// it and the search index does not hear of that.
    pub last_seen: Option<Timestamp>,
    /// When its content last changed.
    pub last_changed: Option<Timestamp>,
    /// When it will be looked at again; null where `last_seen` is for that reason.
    pub next_due: Option<Timestamp>,
}

/// Where to go on from an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Links {
    /// This agent in the API.
    #[serde(rename = "self")]
    pub this: String,
    /// Its card, byte for byte.
    pub card: String,
    /// Its page for people.
    pub page: String,
    /// The base URL to give to an SDK's card resolver.
    pub resolver: String,
}

/// One agent in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// Everything a list shows.
    #[serde(flatten)]
    pub hit: Hit,
    /// The card as the registry reads it, in one form for every protocol version.
    #[schema(value_type = Object)]
    pub card: a2a_card::AgentCard,
    /// How to authenticate, one sentence per alternative.
    pub security: Vec<String>,
    /// What the card's signatures are worth, and why.
    pub signature_verdict: SignatureVerdict,
    /// Who or what decided, on which grounds.
    pub decision: Decision,
    /// Whether a proof of its domain covers the card, or somebody else has nominated it.
    pub coverage: Coverage,
    /// What holds it back; empty for whoever may not see holds.
    pub holds: Vec<HoldView>,
}

/// What the signatures of one version of a card are worth, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignatureVerdict {
    /// Of all signatures together: the best one counts.
    pub state: SignatureState,
    /// Why, in one sentence.
    pub reason: String,
    /// The first 16 signatures, in the card's order.
    pub signatures: Vec<SignatureEntryView>,
}

/// What one signature is worth, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignatureEntryView {
    /// The name of the key, as the signature gives it.
    pub kid: Option<String>,
    /// The algorithm, as the signature gives it.
    pub alg: Option<String>,
    /// The RFC 7638 thumbprint of the key that it verifies with, or that it names; null where there is none.
    pub key_thumbprint: Option<String>,
    /// Where that key is from: the URL of a key set, or `enrolled`; null where there is no key.
    pub key_from: Option<String>,
    /// What this signature alone is worth; `unsigned` for an entry that is no JWS.
    pub verdict: SignatureState,
    /// Why, in one sentence.
    pub reason: String,
}

/// Why an agent stands where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Decision {
    /// The version's state.
    pub state: VersionState,
    /// The rules that decided, by name.
    pub rules: Vec<String>,
    /// The account that decided, or `policy`.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// In whose words; null where a rule decided.
    pub reason: Option<String>,
    /// Whether the decider was also the submitter.
    #[serde(default)]
    pub self_approved: bool,
}

/// A hold and its cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HoldView {
    /// Which hold.
    pub hold: Hold,
    /// Why it was set.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
}

/// One kept version of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// SHA-256 of the bytes.
    #[schema(value_type = limits::Digest)]
    pub digest: String,
    /// SHA-256 of the RFC 8785 form without signatures.
    #[schema(value_type = limits::Digest)]
    pub content_digest: String,
    /// When it was first seen.
    pub observed_at: Timestamp,
    /// Where it stands.
    pub state: VersionState,
    /// Against the version approved then; null for a first card.
    pub change_class: Option<ChangeClass>,
    /// The wire format it was read as.
    pub wire_family: String,
    /// Whether this is the version served.
    #[serde(default)]
    pub served: bool,
    /// What its signatures are worth, with the keys of today.
    pub signature_verdict: SignatureVerdict,
}

/// What changed between two versions of a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Diff {
    /// The digest of the older version.
    #[schema(value_type = limits::Digest)]
    pub from: String,
    /// The digest of the newer version.
    #[schema(value_type = limits::Digest)]
    pub to: String,
    /// How much the whole change matters: what its gravest part does.
    pub change_class: ChangeClass,
    /// The changes, the gravest first.
    pub changes: Vec<Change>,
    /// Whether there are more changes than the list has.
    pub cut: bool,
}

/// One thing that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// RFC 6901 pointer into the newer card, or into the older one for what is gone.
    pub pointer: String,
    /// What stood there, shortened for people; null where nothing did.
    #[schema(value_type = Value)]
    pub before: Option<serde_json::Value>,
    /// What stands there now, in the same form.
    #[schema(value_type = Value)]
    pub after: Option<serde_json::Value>,
    /// How much it matters.
    pub class: ChangeClass,
    /// Why it has that class.
    pub reason: String,
}

impl From<&a2a_card::CardChange> for Change {
    fn from(change: &a2a_card::CardChange) -> Self {
        Self {
            pointer: change.pointer.clone(),
            before: change.before.clone(),
            after: change.after.clone(),
            class: change.class.into(),
            reason: change.reason.clone(),
        }
    }
}

/// One lint finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindingView {
    /// The rule's stable id.
    pub rule: String,
    /// `error`, `warning` or `info`.
    pub severity: String,
    /// RFC 6901 pointer into the card.
    pub pointer: String,
    /// What was there.
    pub found: String,
    /// What its version wants.
    pub wanted: String,
    /// How to mend it.
    pub hint: String,
    /// The section it follows.
    pub section: String,
}

impl From<a2a_card::Finding> for FindingView {
    fn from(finding: a2a_card::Finding) -> Self {
        let severity = match finding.severity {
            a2a_card::Severity::Info => "info",
            a2a_card::Severity::Warning => "warning",
            a2a_card::Severity::Error => "error",
        };
        Self {
            rule: finding.rule,
            severity: severity.into(),
            pointer: finding.pointer,
            found: finding.found,
            wanted: finding.wanted,
            hint: finding.hint,
            section: finding.section,
        }
    }
}

/// What may be changed of an agent beside its card. What is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentPatch {
    /// Who may find it; its owner may only narrow this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// All its labels; for curators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::Labels>)]
    pub labels: Option<BTreeMap<String, String>>,
}
