//! Format of exported content: JSON Lines, one object a line, with a header first and the number of records last.

mod reading;

use std::collections::BTreeMap;

use a2a_crawler::fetch::AGENT_CARD_PATH;
use a2a_registry_api::{Agent, AgentPatch, Collection, CollectionContent, NewPolicy, SourceView};
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_domain::source::{SourceKind, SourceState};
use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use url::Url;

pub use reading::ExportedContent;

/// Name of the format, in the header.
const FORMAT_NAME: &str = "a2a-registry-export";
/// Version of the format. It rises with every change that an older program would misread.
const FORMAT_VERSION: u32 = 1;
/// Bytes of the URL of a source.
const MAX_URL_BYTES: usize = 4096;
/// Bytes of the name of a group, a collection or a domain, which is part of the path of a request.
const MAX_NAME_BYTES: usize = 1024;
/// Length of a digest: its prefix, and 64 hexadecimal digits.
const DIGEST_PREFIX: &str = "sha256:";
const DIGEST_HEX_DIGITS: usize = 64;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExportRecord {
    Header(ExportHeader),
    Group(GroupRecord),
    Collection(CollectionRecord),
    Policy(NewPolicy),
    Domain(DomainRecord),
    Source(SourceRecord),
    Agent(AgentRecord),
    Waiver(WaiverRecord),
    Decision(DecisionRecord),
    End(ExportEnd),
}

/// First line. Members that a later version adds are ignored, so that the version can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportHeader {
    pub format: String,
    pub version: u32,
    /// URL of the registry, as it was called.
    pub origin: String,
}

/// Last line, so that a file that was cut off is recognized.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportEnd {
    /// Number of lines between the first and this one.
    pub records: u64,
}

/// A group whose members an admin sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupRecord {
    pub name: String,
    /// Names of accounts, sorted.
    pub members: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionRecord {
    pub name: String,
    pub description: String,
    pub filter: String,
    /// Names of groups, sorted; null for everyone.
    pub audience: Option<Vec<String>>,
    /// Names of accounts, sorted.
    pub owners: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainRecord {
    pub domain: String,
    pub contact: Option<String>,
}

/// A registered URL of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceRecord {
    pub domain: String,
    pub url: String,
}

/// What people have set for an agent. Ids differ between registries, so an agent is named by one of its sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRecord {
    pub domain: String,
    /// The first URL of its sources, in alphabetical order.
    pub source: String,
    pub settings: AgentSettings,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    pub visibility: Visibility,
    pub groups: Vec<String>,
    pub collections: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub sponsor: Option<String>,
    pub derived_queries: bool,
}

/// A waiver in force for the content that an agent shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaiverRecord {
    pub domain: String,
    pub source: String,
    pub policy: String,
    /// Digest of the card that the agent shows.
    pub digest: String,
    /// Account that granted it.
    pub by: String,
    pub reason: String,
    pub expires_at: Timestamp,
}

/// A person's decision on the card that an agent shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionRecord {
    pub domain: String,
    pub source: String,
    pub digest: String,
    /// Otherwise the card was rejected.
    pub approved: bool,
    /// Account that decided.
    pub by: String,
    pub at: Timestamp,
    pub reason: Option<String>,
}

impl ExportHeader {
    pub fn new(registry_url: &str) -> Self {
        Self {
            format: FORMAT_NAME.to_owned(),
            version: FORMAT_VERSION,
            origin: without_credentials(registry_url),
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.format != FORMAT_NAME {
            return Err(format!("the format is not {FORMAT_NAME}"));
        }
        if self.version != FORMAT_VERSION {
            return Err(format!(
                "the format has version {}, and this program reads version {FORMAT_VERSION}; export again with a \
                 program of this version",
                self.version
            ));
        }
        Ok(())
    }
}

impl CollectionRecord {
    pub fn new(collection: Collection) -> Self {
        let Collection {
            name,
            description,
            filter,
            mut audience,
            mut owners,
            ..
        } = collection;
        if let Some(groups) = &mut audience {
            groups.sort_unstable();
        }
        owners.sort_unstable();
        Self {
            name,
            description,
            filter,
            audience,
            owners,
        }
    }

    /// Names of the members that differ.
    pub fn differing_members(&self, other: &Self) -> Vec<&'static str> {
        differing_names([
            ("description", self.description != other.description),
            ("filter", self.filter != other.filter),
            ("audience", self.audience != other.audience),
            ("owners", self.owners != other.owners),
        ])
    }

    pub fn to_content(&self) -> CollectionContent {
        CollectionContent {
            description: self.description.clone(),
            filter: self.filter.clone(),
            audience: self.audience.clone(),
            owners: self.owners.clone(),
        }
    }
}

impl AgentSettings {
    /// Settings of an agent; `None` if its visibility is known only to a later version of this program.
    pub fn from_agent(agent: &Agent) -> Option<Self> {
        Some(Self {
            visibility: agent.hit.summary.visibility.known_value()?,
            groups: agent.groups.clone(),
            collections: agent.collections.clone(),
            labels: agent.hit.summary.labels.clone(),
            sponsor: agent.sponsor.clone(),
            derived_queries: agent.derived_queries,
        })
    }

    /// Whether nobody has set anything.
    pub fn is_initial(&self) -> bool {
        let initial = Self {
            visibility: Visibility::Public,
            groups: Vec::new(),
            collections: Vec::new(),
            labels: BTreeMap::new(),
            sponsor: None,
            derived_queries: false,
        };
        *self == initial
    }

    pub fn to_patch(&self) -> AgentPatch {
        AgentPatch {
            visibility: Some(self.visibility),
            groups: Some(self.groups.clone()),
            collections: Some(self.collections.clone()),
            labels: Some(self.labels.clone()),
            sponsor: Some(self.sponsor.clone().unwrap_or_default()),
            derived_queries: Some(self.derived_queries),
            reason: None,
        }
    }

    /// Names of the members that differ.
    pub fn differing_members(&self, other: &Self) -> Vec<&'static str> {
        differing_names([
            ("visibility", self.visibility != other.visibility),
            ("groups", self.groups != other.groups),
            ("collections", self.collections != other.collections),
            ("labels", self.labels != other.labels),
            ("sponsor", self.sponsor != other.sponsor),
            (
                "derived_queries",
                self.derived_queries != other.derived_queries,
            ),
        ])
    }
}

impl ExportRecord {
    /// Checks what the types do not.
    fn check(&self) -> Result<(), String> {
        let (name, url, digest) = match self {
            Self::Group(group) => (Some(&group.name), None, None),
            Self::Collection(collection) => (Some(&collection.name), None, None),
            Self::Domain(domain) => (Some(&domain.domain), None, None),
            Self::Source(source) => (Some(&source.domain), Some(&source.url), None),
            Self::Agent(agent) => (Some(&agent.domain), Some(&agent.source), None),
            Self::Waiver(waiver) => (
                Some(&waiver.domain),
                Some(&waiver.source),
                Some(&waiver.digest),
            ),
            Self::Decision(decision) => (
                Some(&decision.domain),
                Some(&decision.source),
                Some(&decision.digest),
            ),
            Self::Header(_) | Self::Policy(_) | Self::End(_) => (None, None, None),
        };
        if name.is_some_and(|name| !(1..=MAX_NAME_BYTES).contains(&name.len())) {
            return Err(format!("a name has 1 to {MAX_NAME_BYTES} bytes"));
        }
        if url.is_some_and(|url| url.len() > MAX_URL_BYTES) {
            return Err(format!("the URL is longer than {MAX_URL_BYTES} bytes"));
        }
        match digest.is_none_or(|digest| is_digest(digest)) {
            true => Ok(()),
            false => Err("the digest is not `sha256:` and 64 hexadecimal digits".to_owned()),
        }
    }
}

/// The URL without a user name and password, because it becomes part of the reasons of what is imported.
fn without_credentials(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else {
        return url.to_owned();
    };
    // Only a URL without a host has nothing to remove.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.as_str().trim_end_matches('/').to_owned()
}

fn differing_names<const COUNT: usize>(
    members: [(&'static str, bool); COUNT],
) -> Vec<&'static str> {
    let differing = members.into_iter().filter(|(_, differs)| *differs);
    differing.map(|(name, _)| name).collect()
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix(DIGEST_PREFIX).is_some_and(|digits| {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        digits.len() == DIGEST_HEX_DIGITS && digits.bytes().all(is_hex)
    })
}

/// URL by which a source is known in every registry, and can be registered unless a catalog lists it.
pub fn source_url(source: &SourceView) -> String {
    if source.kind == SourceKind::WellKnown
        && let Ok(card) = Url::parse(&source.url).and_then(|url| url.join(AGENT_CARD_PATH))
    {
        return card.into();
    }
    source.url.clone()
}

/// Whether people register such a source, as opposed to an entry of a catalog.
pub fn is_registered_source(source: &SourceView) -> bool {
    let is_known_kind = source.kind.known_value().is_some();
    is_known_kind && source.kind != SourceKind::Entry && source.state != SourceState::Recorded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_shows_no_password() {
        for (url, origin) in [
            (
                "https://ann:hush@registry.example",
                "https://registry.example",
            ),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            (
                "https://registry.example/under",
                "https://registry.example/under",
            ),
        ] {
            assert_eq!(ExportHeader::new(url).origin, origin);
        }
    }
}
