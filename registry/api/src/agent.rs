//! Agents as callers see them.

use std::collections::BTreeMap;

use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::access_decisions::HiddenFrom;
use super::decision::{BreakGlass, Decision, HoldView};
use super::hit::{Duplicates, Hit};
use super::limits;

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
    /// URN under the company's authority that the agent had before its domain was proved, and that still leads to it;
    /// absent for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former_urn: Option<String>,
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
    /// From whom policies hide the agent, for its owner and callers who see everything; null if from nobody, and for
    /// all others.
    #[serde(default)]
    pub hidden_from: Option<HiddenFrom>,
}

impl Agent {
    /// Whether a proof of the domain covers the card, in words.
    pub fn proof_coverage_text(&self) -> String {
        proof_coverage_text(&self.coverage, self.hit.summary.trust.is_proved())
    }
}

/// What a coverage means; an unknown one is shown as it is.
pub(crate) fn proof_coverage_text(coverage: &OpenEnum<Coverage>, is_proved: bool) -> String {
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
    /// Reason; stored with the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<limits::Reason>)]
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::summary::Trust;

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
            let meaning = proof_coverage_text(&Coverage::Covered.into(), trust.is_proved());
            assert_eq!(meaning.contains("a proof of"), is_proved, "{meaning}");
        }
        let newer = OpenEnum::from_text("moonlit".into());
        assert_eq!(proof_coverage_text(&newer, true), "moonlit");
    }
}
