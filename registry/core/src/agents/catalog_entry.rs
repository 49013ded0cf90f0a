//! Agents as entries of ARD catalogs (ARD 0.91 section 4, AI Catalog 1.0). They are built from the rendered hit that
//! both the index and the database have, so that entries are searched, listed and filtered by what callers see.

use std::borrow::Cow;
use std::collections::BTreeMap;

use a2a_crawler::catalog::is_publisher_domain;
use a2a_registry_api::ard::{AGENT_CARD_TYPE, Attestation, Entry, Publisher, TrustManifest};
use a2a_registry_search::{AgentProperty, ExactFilter, LeftOutAgents, MAX_VALUE_BYTES};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::Config;

/// The path of an attribute that every entry has and nothing else has.
const ENTRY_ATTRIBUTE: &str = "entry";
/// The path of the URN by which an entry was identified before; only retrieval finds an entry by it.
pub const FORMER_IDENTIFIER_ATTRIBUTE: &str = "identifier.former";
/// The path of lower-case names, by which lists are filtered.
pub const LOWERCASE_NAME_ATTRIBUTE: &str = "displayName.lower";
/// The prefix of identifiers in catalogs.
const URN_PREFIX: &str = "urn:air:";
/// Maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 200;
/// Maximum length of a description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 2_000;
/// Maximum number of tags and capabilities; further ones are still searchable.
const MAX_TAGS: usize = 64;
/// The attestation type for a card's own signature.
const CARD_SIGNATURE_ATTESTATION: &str = "A2A-Card-JWS";

/// The members of a rendered hit or agent that an entry needs.
#[derive(Debug, Clone, Deserialize)]
pub struct AgentExcerpt<'a> {
    #[serde(borrow)]
    urn: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    description: Option<Cow<'a, str>>,
    #[serde(borrow)]
    version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    provider: Option<ProviderExcerpt<'a>>,
    #[serde(borrow)]
    domain: Cow<'a, str>,
    #[serde(borrow)]
    interfaces: Vec<InterfaceExcerpt<'a>>,
    capabilities: CapabilitiesExcerpt,
    #[serde(borrow)]
    skills: Vec<SkillExcerpt<'a>>,
    tags: Vec<Cow<'a, str>>,
    auth: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    trust: TrustExcerpt<'a>,
    #[serde(borrow)]
    lifecycle: Cow<'a, str>,
    #[serde(borrow)]
    liveness: LivenessExcerpt<'a>,
    #[serde(borrow)]
    card_digest: Cow<'a, str>,
    #[serde(borrow)]
    links: LinksExcerpt<'a>,
}

#[derive(Debug, Clone, Deserialize)]
struct ProviderExcerpt<'a> {
    #[serde(borrow)]
    organization: Option<Cow<'a, str>>,
}

#[derive(Debug, Clone, Deserialize)]
struct InterfaceExcerpt<'a> {
    #[serde(borrow)]
    binding: Cow<'a, str>,
    #[serde(borrow)]
    protocol_version: Option<Cow<'a, str>>,
}

#[derive(Debug, Clone, Deserialize)]
struct CapabilitiesExcerpt {
    streaming: bool,
    push_notifications: bool,
    extended_agent_card: bool,
}

#[derive(Debug, Clone, Deserialize)]
struct SkillExcerpt<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

#[derive(Debug, Clone, Deserialize)]
struct TrustExcerpt<'a> {
    #[serde(borrow)]
    level: Option<Cow<'a, str>>,
    #[serde(borrow)]
    domain: Cow<'a, str>,
    #[serde(borrow)]
    signature: Cow<'a, str>,
}

#[derive(Debug, Clone, Deserialize)]
struct LivenessExcerpt<'a> {
    #[serde(borrow)]
    last_changed: Option<Cow<'a, str>>,
}

#[derive(Debug, Clone, Deserialize)]
struct LinksExcerpt<'a> {
    #[serde(borrow)]
    card: Cow<'a, str>,
}

impl AgentExcerpt<'_> {
    pub fn parse(hit: &[u8]) -> Option<AgentExcerpt<'_>> {
        serde_json::from_slice(hit).ok()
    }

    /// The entry of the agent; `None` if it has no catalog URN, which only agents of verified domains get. Under the
    /// company's authority it claims nothing about the agent's domain.
    pub fn to_catalog_entry(&self) -> Option<Entry> {
        let urn = self.urn.as_deref()?;
        let publisher = urn_publisher(urn)?;
        let mut entry = self.to_entry_without_identifier();
        urn.clone_into(&mut entry.identifier);
        if self.name.trim().is_empty() {
            let last = urn.rsplit(':').next().unwrap_or(urn);
            entry.display_name = last.chars().take(MAX_NAME_CHARS).collect();
        }
        if publisher != self.domain {
            entry.publisher = authority_publisher(publisher);
        } else if is_publisher_domain(publisher) {
            entry.trust_manifest = self.has_covering_proof().then(|| TrustManifest {
                identity: did_web_identifier(publisher),
                identity_type: Some("did".to_owned()),
                attestations: self.attestations(&entry.url),
            });
            let provider = self.provider.as_ref();
            let organization = provider.and_then(|one| one.organization.as_deref());
            entry.publisher = Some(Publisher {
                identifier: did_web_identifier(publisher),
                display_name: organization.unwrap_or(publisher).to_owned(),
            });
        }
        Some(entry)
    }

    /// An entry without the members that depend on the URN: identifier, publisher and trust manifest.
    pub fn to_entry_without_identifier(&self) -> Entry {
        let description = self.description.as_deref();
        Entry {
            display_name: self.name.chars().take(MAX_NAME_CHARS).collect(),
            media_type: AGENT_CARD_TYPE.to_owned(),
            url: format!("{}?version={}", self.links.card, self.card_digest),
            description: description.map(|text| text.chars().take(MAX_DESCRIPTION_CHARS).collect()),
            version: self.version.as_deref().map(str::to_owned),
            updated_at: self.liveness.last_changed.as_deref().map(str::to_owned),
            digest: Some(self.card_digest.to_string()),
            tags: deduplicate_within_limits(self.tags.iter().map(|tag| tag.to_lowercase())),
            capabilities: deduplicate_within_limits(
                self.skills.iter().map(|skill| skill.id.to_string()),
            ),
            metadata: self.entry_metadata(),
            ..Entry::default()
        }
    }

    /// Whether the domain is verified and its proof covers the card.
    fn has_covering_proof(&self) -> bool {
        self.trust.domain == "verified" && self.trust.level.as_deref() != Some("L0")
    }

    fn attestations(&self, url: &str) -> Vec<Attestation> {
        let signed = self.trust.signature == "valid";
        let attestation = signed.then(|| Attestation {
            kind: CARD_SIGNATURE_ATTESTATION.to_owned(),
            uri: url.to_owned(),
            media_type: AGENT_CARD_TYPE.to_owned(),
            digest: self.card_digest.to_string(),
        });
        attestation.into_iter().collect()
    }

    fn entry_metadata(&self) -> Map<String, Value> {
        let versions = self.interfaces.iter();
        let versions = versions.filter_map(|one| one.protocol_version.as_deref());
        let bindings = self.interfaces.iter().map(|one| one.binding.as_ref());
        let mut metadata = Map::new();
        for (name, list) in [
            ("a2aProtocolVersion", join_sorted_unique(versions)),
            ("a2aTransports", join_sorted_unique(bindings)),
            (
                "authSchemes",
                join_sorted_unique(self.auth.iter().map(Cow::as_ref)),
            ),
            ("lifecycle", self.lifecycle.to_string()),
            (
                "trustLevel",
                self.trust.level.as_deref().unwrap_or("").to_owned(),
            ),
        ] {
            if !list.is_empty() {
                metadata.insert(name.to_owned(), Value::String(list));
            }
        }
        for (name, flag) in [
            ("a2aStreaming", self.capabilities.streaming),
            ("a2aPushNotifications", self.capabilities.push_notifications),
            ("a2aExtendedCard", self.capabilities.extended_agent_card),
        ] {
            metadata.insert(name.to_owned(), Value::Bool(flag));
        }
        metadata
    }
}

/// The entry of an agent under the URN that it had before its domain was proved, which names the company's authority.
pub fn with_former_urn(entry: Entry, urn: &str) -> Entry {
    Entry {
        identifier: urn.to_owned(),
        publisher: urn_publisher(urn).and_then(authority_publisher),
        trust_manifest: None,
        ..entry
    }
}

/// The publisher of an entry under the company's authority. The card has no say in its name.
fn authority_publisher(authority: &str) -> Option<Publisher> {
    is_publisher_domain(authority).then(|| Publisher {
        identifier: did_web_identifier(authority),
        display_name: authority.to_owned(),
    })
}

/// The attributes of an entry that the index stores beside the facets, for filters and counts.
pub fn catalog_entry_attributes(entry: &Entry) -> Vec<(String, String)> {
    let mut attributes = vec![
        (ENTRY_ATTRIBUTE.to_owned(), "1".to_owned()),
        ("type".to_owned(), normalize_media_type(&entry.media_type)),
        ("displayName".to_owned(), entry.display_name.clone()),
        (
            LOWERCASE_NAME_ATTRIBUTE.to_owned(),
            entry.display_name.to_lowercase(),
        ),
    ];
    let mut push_attribute = |path: &str, value: Option<&str>| {
        let value = value.map(|value| (path.to_owned(), value.to_owned()));
        attributes.extend(value);
    };
    push_attribute("version", entry.version.as_deref());
    push_attribute("updatedAt", entry.updated_at.as_deref());
    push_attribute("publisher", urn_publisher(&entry.identifier));
    if let Some(trust) = &entry.trust_manifest {
        push_attribute("trustManifest.identity", Some(&trust.identity));
        push_attribute("trustManifest.identityType", trust.identity_type.as_deref());
        for attestation in &trust.attestations {
            for (name, value) in [
                ("type", &attestation.kind),
                ("uri", &attestation.uri),
                ("mediaType", &attestation.media_type),
                ("digest", &attestation.digest),
            ] {
                let value = Some(value.as_str()).filter(|value| !value.is_empty());
                push_attribute(&format!("trustManifest.attestations.{name}"), value);
            }
        }
    }
    attributes.extend(entry.metadata.iter().map(|(name, value)| {
        let text = value.as_str().map(str::to_owned);
        let text = text.unwrap_or_else(|| value.to_string());
        (format!("metadata.{name}"), text)
    }));
    attributes
}

pub fn ard_base_url(config: &Config) -> String {
    format!("{}/ard", config.public_url())
}

/// A filter that matches every entry and nothing else.
pub fn any_catalog_entry_filter() -> ExactFilter {
    ExactFilter {
        property: AgentProperty::Attribute(ENTRY_ATTRIBUTE.to_owned()),
        values: vec!["1".to_owned()],
    }
}

/// The agents without an entry that match these conditions of entries otherwise.
pub fn agents_without_entry(conditions: &[ExactFilter]) -> LeftOutAgents {
    let conditions = conditions.iter().filter(|one| !matches_every_entry(one));
    LeftOutAgents {
        exact: conditions.cloned().collect(),
        failed: any_catalog_entry_filter(),
    }
}

/// Whether a condition is true for every agent with an entry. The index has no type for an agent without an entry.
fn matches_every_entry(condition: &ExactFilter) -> bool {
    let is_type = condition.property == AgentProperty::Attribute("type".to_owned());
    let takes_agents = condition.values.iter().any(|one| one == AGENT_CARD_TYPE);
    *condition == any_catalog_entry_filter() || (is_type && takes_agents)
}

/// A media type in one spelling: lower case except for the values of parameters, which are sorted.
pub fn normalize_media_type(text: &str) -> String {
    let mut parts = text.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
    let mut parameters: Vec<String> = parts
        .filter(|part| !part.is_empty())
        .map(|part| match part.split_once('=') {
            Some((name, value)) => {
                let value = value.trim();
                let unquoted = value
                    .strip_prefix('"')
                    .and_then(|value| value.strip_suffix('"'));
                let value = unquoted.unwrap_or(value);
                format!("{}={value}", name.trim().to_ascii_lowercase())
            }
            None => part.to_ascii_lowercase(),
        })
        .collect();
    parameters.sort_unstable();
    std::iter::once(essence)
        .chain(parameters)
        .collect::<Vec<_>>()
        .join(";")
}

/// The publisher of a catalog identifier as defined by the ARD schema: `urn:air:<publisher>:…:<name>` in ASCII; `None`
/// for anything else.
pub fn urn_publisher(identifier: &str) -> Option<&str> {
    let (publisher, path) = identifier.strip_prefix(URN_PREFIX)?.split_once(':')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| plain(byte) || byte == b'_');
    let fits =
        !publisher.is_empty() && publisher.bytes().all(plain) && path.split(':').all(is_part);
    fits.then_some(publisher)
}

fn did_web_identifier(domain: &str) -> String {
    format!("did:web:{domain}")
}

fn deduplicate_within_limits(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut unique: Vec<String> = Vec::new();
    for text in texts {
        if !text.is_empty() && text.len() <= MAX_VALUE_BYTES && !unique.contains(&text) {
            unique.push(text);
        }
        if unique.len() == MAX_TAGS {
            break;
        }
    }
    unique
}

fn join_sorted_unique<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let texts: BTreeMap<&str, ()> = texts.map(|text| (text, ())).collect();
    texts.into_keys().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_read_as_the_schema_reads_them() {
        for (identifier, publisher) in [
            ("urn:air:a.example:x", Some("a.example")),
            ("urn:air:a.example:x:y_z.1-2", Some("a.example")),
            ("urn:air:A.example:x", Some("A.example")),
            ("urn:air:a.example:x\n", None),
            ("urn:air:a.example", None),
            ("urn:air:a.example:", None),
            ("urn:air:a.example:::x", None),
            ("urn:air::x", None),
            ("urn:air:a_b.example:x", None),
            ("urn:air:a.example:ü", None),
            ("urn:ai:a.example:x", None),
            ("URN:air:a.example:x", None),
        ] {
            assert_eq!(urn_publisher(identifier), publisher, "{identifier}");
        }
    }

    #[test]
    fn publishers_are_names_of_dns() {
        for (publisher, expected) in [
            ("a.example", true),
            ("xn--bcher-kva.example", true),
            ("agent.localhost", true),
            ("localhost", false),
            ("A.example", false),
            ("a.example.", false),
            ("-a.example", false),
            ("127.0.0.1", false),
            ("a..example", false),
        ] {
            assert_eq!(is_publisher_domain(publisher), expected, "{publisher}");
        }
        assert!(!is_publisher_domain(&format!("{}.example", "a".repeat(64))));
    }

    #[test]
    fn media_types_have_one_spelling() {
        for (text, expected) in [
            (
                "Application/A2A-agent-card+JSON",
                "application/a2a-agent-card+json",
            ),
            (
                "text/markdown; Profile=\"urn:air:x\" ; b=1",
                "text/markdown;b=1;profile=urn:air:x",
            ),
            (
                "text/markdown;b=1;profile=urn:air:x",
                "text/markdown;b=1;profile=urn:air:x",
            ),
        ] {
            assert_eq!(normalize_media_type(text), expected);
        }
    }

    #[test]
    fn what_an_entry_shows_can_be_filtered_by() {
        let entry = Entry {
            identifier: "urn:air:a.example:x".to_owned(),
            media_type: "Text/Markdown; Profile=\"p\"".to_owned(),
            trust_manifest: Some(TrustManifest {
                identity: "did:web:a.example".to_owned(),
                identity_type: None,
                attestations: vec![Attestation {
                    kind: "SOC2".to_owned(),
                    uri: "https://a.example/soc2".to_owned(),
                    ..Attestation::default()
                }],
            }),
            metadata: Map::from_iter([
                ("lifecycle".to_owned(), "approved".into()),
                ("a2aStreaming".to_owned(), true.into()),
            ]),
            ..Entry::default()
        };
        let attributes = catalog_entry_attributes(&entry);
        let has = |path: &str, value: &str| {
            attributes
                .iter()
                .any(|(one, held)| one == path && held == value)
        };
        for (path, value) in [
            ("type", "text/markdown;profile=p"),
            ("publisher", "a.example"),
            ("trustManifest.attestations.type", "SOC2"),
            ("trustManifest.attestations.uri", "https://a.example/soc2"),
            ("metadata.lifecycle", "approved"),
            ("metadata.a2aStreaming", "true"),
        ] {
            assert!(has(path, value), "{path} {attributes:?}");
        }
    }
}
