//! The card on an agent's page: limits of its parts, and texts that the template cannot derive.

use a2a_card::{Capabilities, Extension, Provider};
use a2a_registry_core::text::{self, LINE, safe_web_url};

pub(super) const SKILLS: usize = 60;
/// Maximum number of tags, examples and modes of one skill.
pub(super) const FEW: usize = 20;
pub(super) const INTERFACES: usize = 30;
/// Maximum number of extensions, modes and authentication schemes on the page.
pub(super) const LIST: usize = 40;

/// A text, with a link if the URL is safe to link.
pub(super) struct LinkView {
    pub label: String,
    pub address: Option<String>,
}

pub(super) fn labeled_link(label: &str, url: &str) -> Option<LinkView> {
    let label = label.trim();
    (!label.is_empty()).then(|| LinkView {
        label: text::single_line(label, LINE),
        address: safe_web_url(url),
    })
}

/// Organization that provides an agent, with a link to its site.
pub(super) fn provider_link(provider: &Provider) -> Option<LinkView> {
    let url = provider.url.as_deref().unwrap_or_default();
    let organization = provider.organization.as_deref();
    let label = organization.filter(|name| !name.trim().is_empty());
    labeled_link(label.unwrap_or(url), url)
}

pub(super) fn describe_capabilities(capabilities: &Capabilities) -> Vec<&'static str> {
    let labels = [
        (capabilities.streaming, "Streams responses"),
        (
            capabilities.push_notifications,
            "Sends push notifications for tasks",
        ),
        (
            capabilities.extended_agent_card,
            "Has an extended card for authenticated callers",
        ),
    ];
    labels
        .iter()
        .filter(|(has, _)| *has)
        .map(|(_, what)| *what)
        .collect()
}

/// The first named extensions, each with its link.
pub(super) fn extension_links(capabilities: &Capabilities) -> Vec<(LinkView, &Extension)> {
    let first = capabilities.extensions.iter().take(LIST);
    first
        .filter_map(|one| Some((labeled_link(&one.uri, &one.uri)?, one)))
        .collect()
}

/// Link to the search for agents with a tag.
pub(super) fn tag_link(tag: &str) -> String {
    crate::pages::single_filter_link("tag", &tag.to_lowercase())
}
