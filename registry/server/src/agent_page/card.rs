//! The card on an agent's page.

use a2a_card::{AgentCard, Capabilities, Extension, Interface, Provider, Skill};

use crate::pages::text;
use crate::pages::text::{ADDRESS, BLOCK, LINE, web_address};

/// Skills on the page.
const SKILLS: usize = 60;
/// Tags, examples and modes of one skill.
const FEW: usize = 20;
/// Interfaces on the page.
const INTERFACES: usize = 30;
/// Extensions, modes and ways to authenticate on the page.
const LIST: usize = 40;

/// The view of a card.
pub(crate) struct CardView {
    pub name: String,
    pub version: Option<String>,
    pub description: Option<String>,
    pub provider: Option<LinkView>,
    pub documentation: Option<LinkView>,
    pub icon: Option<LinkView>,
    pub interfaces: Vec<InterfaceView>,
    pub more_interfaces: usize,
    pub capabilities: Vec<&'static str>,
    pub extensions: Vec<ExtensionView>,
    pub more_extensions: usize,
    pub security: Vec<String>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub skills: Vec<SkillView>,
    pub more_skills: usize,
    pub signatures: usize,
}

/// A text, with a link if its URL may be linked.
pub(crate) struct LinkView {
    pub label: String,
    pub address: Option<String>,
}

/// An interface.
pub(crate) struct InterfaceView {
    pub url: String,
    pub binding: String,
    pub version: Option<String>,
    pub tenant: Option<String>,
}

/// A protocol extension.
pub(crate) struct ExtensionView {
    pub uri: LinkView,
    pub description: Option<String>,
    pub required: bool,
}

/// A skill.
pub(crate) struct SkillView {
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    pub tags: Vec<(String, String)>,
    pub examples: Vec<String>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
}

impl CardView {
    /// The view of a card, with its requirements on callers as sentences.
    pub fn new(card: &AgentCard, security: &[String]) -> Self {
        let extensions = &card.capabilities.extensions;
        Self {
            name: text::line(&card.name, LINE),
            version: card
                .version
                .as_deref()
                .map(|version| text::line(version, 40)),
            description: card
                .description
                .as_deref()
                .map(|text| text::block(text, BLOCK)),
            provider: card.provider.as_ref().and_then(provider_link),
            documentation: card
                .documentation_url
                .as_deref()
                .and_then(|url| link(url, url)),
            icon: card.icon_url.as_deref().and_then(|url| link(url, url)),
            interfaces: card
                .interfaces
                .iter()
                .take(INTERFACES)
                .map(InterfaceView::new)
                .collect(),
            more_interfaces: card.interfaces.len().saturating_sub(INTERFACES),
            capabilities: capabilities(&card.capabilities),
            extensions: extensions
                .iter()
                .take(LIST)
                .filter_map(ExtensionView::new)
                .collect(),
            more_extensions: extensions.len().saturating_sub(LIST),
            security: lines(security, LIST, 500),
            input_modes: lines(&card.input_modes, LIST, 80),
            output_modes: lines(&card.output_modes, LIST, 80),
            skills: card
                .skills
                .iter()
                .take(SKILLS)
                .map(SkillView::new)
                .collect(),
            more_skills: card.skills.len().saturating_sub(SKILLS),
            signatures: card.signatures.len(),
        }
    }
}

/// The organization behind an agent, linked to its site.
fn provider_link(provider: &Provider) -> Option<LinkView> {
    let url = provider.url.as_deref().unwrap_or_default();
    let organization = provider.organization.as_deref();
    let label = organization.filter(|name| !name.trim().is_empty());
    link(label.unwrap_or(url), url)
}

/// The capabilities of an agent, as sentences.
fn capabilities(capabilities: &Capabilities) -> Vec<&'static str> {
    let known = [
        (capabilities.streaming, "Streams its answers"),
        (capabilities.push_notifications, "Pushes updates of tasks"),
        (
            capabilities.extended_agent_card,
            "Has a fuller card for callers it knows",
        ),
    ];
    known
        .iter()
        .filter(|(has, _)| *has)
        .map(|(_, what)| *what)
        .collect()
}

impl InterfaceView {
    fn new(interface: &Interface) -> Self {
        Self {
            url: text::line(&interface.url, ADDRESS / 4),
            binding: text::line(&interface.binding, LINE),
            version: interface
                .protocol_version
                .as_deref()
                .map(|version| text::line(version, 20)),
            tenant: interface
                .tenant
                .as_deref()
                .map(|tenant| text::line(tenant, LINE)),
        }
    }
}

impl ExtensionView {
    /// The view of an extension; `None` without a name.
    fn new(extension: &Extension) -> Option<Self> {
        Some(Self {
            uri: link(&extension.uri, &extension.uri)?,
            description: extension
                .description
                .as_deref()
                .map(|text| text::line(text, 300)),
            required: extension.required,
        })
    }
}

impl SkillView {
    fn new(skill: &Skill) -> Self {
        Self {
            id: text::line(&skill.id, LINE),
            name: text::line(&skill.name, LINE),
            description: skill
                .description
                .as_deref()
                .map(|text| text::block(text, BLOCK / 2)),
            tags: skill
                .tags
                .iter()
                .take(FEW)
                .map(|tag| {
                    let link = crate::pages::only("tag", &tag.to_lowercase());
                    (text::line(tag, 60), link)
                })
                .collect(),
            examples: lines(&skill.examples, FEW, 400),
            input_modes: lines(&skill.input_modes, FEW, 80),
            output_modes: lines(&skill.output_modes, FEW, 80),
        }
    }
}

/// A label with its link; `None` without a label.
fn link(label: &str, url: &str) -> Option<LinkView> {
    let label = label.trim();
    (!label.is_empty()).then(|| LinkView {
        label: text::line(label, LINE),
        address: web_address(url),
    })
}

fn lines(texts: &[String], count: usize, limit: usize) -> Vec<String> {
    texts
        .iter()
        .take(count)
        .map(|text| text::line(text, limit))
        .collect()
}
