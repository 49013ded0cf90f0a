//! An agent in words, for whoever reads and for models. What comes from cards stands in double quotes.

use a2a_registry_api::{Agent, Deprecation, Interface, Summary};

use crate::text::{ADDRESS, LINE, QUOTED, TEASER, line, quoted};

/// Characters of what an agent says of itself.
const DESCRIPTION: usize = 2_000;
/// The most skills that are named.
const MAX_SKILLS: usize = 20;
/// The most addresses and alternatives of authentication that are named.
const MAX_ADDRESSES: usize = 10;

/// What is known about an agent.
pub fn agent_description(agent: &Agent) -> String {
    let one = &agent.hit.summary;
    let mut rows = vec![
        QUOTED.to_owned(),
        format!("Name: {}", quoted(&one.name, LINE)),
    ];
    let description = one.description.as_deref();
    rows.extend(description.map(|text| format!("Description: {}", quoted(text, DESCRIPTION))));
    rows.extend(known(one));
    let reason = quoted(&agent.signature_verdict.reason, TEASER);
    rows.push(format!("Signatures: {}, {reason}", one.trust.signature));
    let notice = one.deprecation.as_ref().map(Deprecation::sentence);
    rows.extend(notice.map(|notice| format!("Deprecated: {}", quoted(&notice, DESCRIPTION))));
    let skills = one.skills.iter().take(MAX_SKILLS).map(|skill| {
        let name = quoted(&skill.name, LINE);
        match skill.description.as_deref() {
            Some(description) => format!("Skill: {name}: {}", quoted(description, TEASER)),
            None => format!("Skill: {name}"),
        }
    });
    rows.extend(skills);
    rows.extend(one.interfaces.iter().take(MAX_ADDRESSES).map(address));
    let security = agent.security.iter().take(MAX_ADDRESSES);
    rows.extend(security.map(|sentence| format!("Authentication: {}", quoted(sentence, TEASER))));
    for (label, link) in [("Card", &one.links.card), ("Page", &one.links.page)] {
        rows.push(format!("{label}: {}", line(link, ADDRESS)));
    }
    rows.push(format!("Card digest: {}", one.card_digest));
    rows.join("\n")
}

/// What the registry itself knows, and who is behind the agent.
fn known(one: &Summary) -> Vec<String> {
    let id = one.id.to_string();
    let identifier = one.urn.as_deref().unwrap_or(&id);
    let trust = one.trust.level.as_ref().map(|level| level.as_str());
    let mut rows = vec![
        format!("Identifier: {}", line(identifier, ADDRESS)),
        format!("Id in this registry: {id}"),
        format!("Domain: {} ({})", line(&one.domain, LINE), one.trust.domain),
        format!("Trust level: {}", trust.unwrap_or("none")),
        format!("State: {}", one.lifecycle),
    ];
    let provider = one.provider.as_ref();
    let provider = provider.and_then(|provider| provider.organization.as_deref());
    for (label, text) in [("Version", one.version.as_deref()), ("Provider", provider)] {
        rows.extend(text.map(|text| format!("{label}: {}", quoted(text, LINE))));
    }
    rows
}

fn address(one: &Interface) -> String {
    let version = one.protocol_version.as_deref();
    let version = version.map_or_else(|| "unknown version".to_owned(), |text| quoted(text, LINE));
    let url = quoted(&one.url, ADDRESS);
    let binding = quoted(&one.binding, LINE);
    format!("Address: {url} ({binding}, {version})")
}
