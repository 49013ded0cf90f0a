//! Text descriptions of an agent, for people and for language models. Text from cards is in double quotes.

use a2a_registry_api::{Agent, Deprecation, Interface, Summary};

use crate::text::{ADDRESS, LINE, QUOTED_NOTE, TEASER, quoted_line, single_line};

/// Maximum length of an agent's own description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 2_000;
/// Maximum number of skills that are listed.
const MAX_SKILLS: usize = 20;
/// Maximum number of addresses and authentication alternatives that are listed.
const MAX_INTERFACES: usize = 10;

/// Describes an agent.
pub fn describe_agent(agent: &Agent) -> String {
    let summary = &agent.hit.summary;
    let mut lines = vec![
        QUOTED_NOTE.to_owned(),
        format!("Name: {}", quoted_line(&summary.name, LINE)),
    ];
    let description = summary.description.as_deref();
    lines.extend(
        description
            .map(|text| format!("Description: {}", quoted_line(text, MAX_DESCRIPTION_CHARS))),
    );
    lines.extend(registry_fact_lines(summary));
    let reason = quoted_line(&agent.signature_verdict.reason, TEASER);
    lines.push(format!("Signatures: {}, {reason}", summary.trust.signature));
    let notice = summary.deprecation.as_ref().map(Deprecation::sentence);
    lines.extend(notice.map(|notice| {
        format!(
            "Deprecated: {}",
            quoted_line(&notice, MAX_DESCRIPTION_CHARS)
        )
    }));
    let skills = summary.skills.iter().take(MAX_SKILLS).map(|skill| {
        let name = quoted_line(&skill.name, LINE);
        match skill.description.as_deref() {
            Some(description) => format!("Skill: {name}: {}", quoted_line(description, TEASER)),
            None => format!("Skill: {name}"),
        }
    });
    lines.extend(skills);
    lines.extend(
        summary
            .interfaces
            .iter()
            .take(MAX_INTERFACES)
            .map(interface_line),
    );
    let security = agent.security.iter().take(MAX_INTERFACES);
    lines.extend(
        security.map(|sentence| format!("Authentication: {}", quoted_line(sentence, TEASER))),
    );
    for (label, link) in [("Card", &summary.links.card), ("Page", &summary.links.page)] {
        lines.push(format!("{label}: {}", single_line(link, ADDRESS)));
    }
    lines.push(format!("Card digest: {}", summary.card_digest));
    lines.join("\n")
}

/// Lines about what the registry itself knows, and who is responsible for the agent.
fn registry_fact_lines(summary: &Summary) -> Vec<String> {
    let id = summary.id.to_string();
    let identifier = summary.urn.as_deref().unwrap_or(&id);
    let trust = summary.trust.level.as_ref().map(|level| level.as_str());
    let mut lines = vec![
        format!("Identifier: {}", single_line(identifier, ADDRESS)),
        format!("Id in this registry: {id}"),
        format!(
            "Domain: {} ({})",
            single_line(&summary.domain, LINE),
            summary.trust.domain
        ),
        format!("Trust level: {}", trust.unwrap_or("none")),
        format!("State: {}", summary.lifecycle),
        format!("Endpoint: {}", single_line(&summary.endpoint.text(), LINE)),
    ];
    let provider = summary.provider.as_ref();
    let provider = provider.and_then(|provider| provider.organization.as_deref());
    for (label, text) in [
        ("Version", summary.version.as_deref()),
        ("Provider", provider),
    ] {
        lines.extend(text.map(|text| format!("{label}: {}", quoted_line(text, LINE))));
    }
    lines
}

fn interface_line(interface: &Interface) -> String {
    let version = interface.protocol_version.as_deref();
    let version = version.map_or_else(
        || "unknown version".to_owned(),
        |text| quoted_line(text, LINE),
    );
    let url = quoted_line(&interface.url, ADDRESS);
    let binding = quoted_line(&interface.binding, LINE);
    format!("Address: {url} ({binding}, {version})")
}
