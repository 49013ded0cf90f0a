//! Answers to read. Texts of cards are hostile: what is hidden in them is made visible, and they are cut.

use a2a_registry_api::{Agent, Interface, PolicyDecision, Summary};
use serde_json::Value;

use super::outcome::{Choice, FoundPage};
use crate::pages::text::{ADDRESS, LINE, TEASER, line};

/// The most skills that a description has.
const MAX_SKILLS: usize = 20;
/// The most addresses that a description has.
const MAX_ADDRESSES: usize = 10;
/// What comes before texts of cards.
const QUOTED: &str = "Names and descriptions are quoted from the agents' own cards.";

/// A page of agents.
pub(super) fn found(page: &FoundPage) -> String {
    let further = page.rest.get("pageToken").is_some();
    if page.results.is_empty() {
        return match further {
            true => "No agents on this page. Say \"more\" for the next page.".to_owned(),
            false => "No agents were found. Try other words. Agents whose domain nobody has proved are not found here."
                .to_owned(),
        };
    }
    let mut text = match page.results.len() {
        1 => "One agent, ".to_owned(),
        count => format!("{count} agents, best first, "),
    };
    text.push_str("as text and as data. ");
    text.push_str(QUOTED);
    for (place, (_, entry)) in page.results.iter().enumerate() {
        let member = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let name = line(member("displayName"), LINE);
        text.push_str(&format!("\n\n{}. {name}", place + 1));
        for (label, shown) in [
            ("", line(member("description"), TEASER)),
            ("Identifier: ", line(member("identifier"), ADDRESS)),
            ("Card: ", line(member("url"), ADDRESS)),
        ] {
            if !shown.is_empty() {
                text.push_str(&format!("\n   {label}{shown}"));
            }
        }
    }
    if further {
        text.push_str("\n\nSay \"more\" in this conversation for the next page.");
    }
    text
}

/// No agent has that name.
pub(super) fn missing(asked: &str) -> String {
    format!(
        "No agent that you may see has the identifier, URN or name \"{}\".",
        line(asked, LINE)
    )
}

/// A question, with the agents that it may mean.
pub(super) fn question(text: &str, choices: &[Choice]) -> String {
    let mut text = text.to_owned();
    for choice in choices {
        text.push_str("\n- ");
        text.push_str(&choice.line);
    }
    text
}

/// An agent that a question may mean: its name, and what it is known by.
pub(super) fn choice(name: &str, domain: &str, known_by: &str) -> String {
    format!(
        "{} of {}: {}",
        line(name, LINE),
        line(domain, LINE),
        line(known_by, ADDRESS)
    )
}

/// What is known about an agent.
pub(super) fn described(agent: &Agent) -> String {
    let one = &agent.hit.summary;
    let mut rows = vec![line(&one.name, LINE)];
    rows.extend(one.description.as_deref().map(|text| line(text, TEASER)));
    rows.extend(known(one));
    let skills = one.skills.iter().take(MAX_SKILLS).map(|skill| {
        let description = skill.description.as_deref().unwrap_or_default();
        let name = line(&skill.name, LINE);
        format!("Skill: {name}: {}", line(description, TEASER))
    });
    rows.extend(skills);
    rows.extend(one.interfaces.iter().take(MAX_ADDRESSES).map(address));
    let security = agent.security.iter().take(MAX_ADDRESSES);
    rows.extend(security.map(|sentence| line(sentence, TEASER)));
    rows.push(format!("Card: {}", line(&one.links.card, ADDRESS)));
    rows.push(format!("Page: {}", line(&one.links.page, ADDRESS)));
    rows.push(QUOTED.to_owned());
    rows.retain(|row| !row.is_empty());
    rows.join("\n")
}

/// What the registry itself knows, and who is behind the agent.
fn known(one: &Summary) -> Vec<String> {
    let identifier = one.urn.as_deref().map(|urn| line(urn, ADDRESS));
    let identifier = identifier.unwrap_or_else(|| one.id.to_string());
    let domain = line(&one.domain, LINE);
    let trust = one.trust.level.as_ref().map(|level| level.as_str());
    let mut rows = vec![
        format!("Identifier: {identifier}"),
        format!("Domain: {domain} ({})", one.trust.domain.as_str()),
        format!("Trust level: {}", trust.unwrap_or("none")),
        format!("State: {}", one.lifecycle.as_str()),
    ];
    let provider = one.provider.as_ref();
    let provider = provider.and_then(|provider| provider.organization.as_deref());
    for (label, text) in [("Version", one.version.as_deref()), ("Provider", provider)] {
        rows.extend(text.map(|text| format!("{label}: {}", line(text, LINE))));
    }
    rows
}

/// An address of an agent.
fn address(one: &Interface) -> String {
    let version = one.protocol_version.as_deref().unwrap_or("unknown version");
    let url = line(&one.url, ADDRESS);
    let (binding, version) = (line(&one.binding, LINE), line(version, LINE));
    format!("Address: {url} ({binding}, {version})")
}

/// Whether an agent is allowed.
pub(super) fn checked(name: &str, discover: &PolicyDecision, invoke: &PolicyDecision) -> String {
    let one = |decision: &PolicyDecision, may: &str| match (&decision.reason, decision.allowed) {
        (_, true) => format!("You may {may} it."),
        (Some(reason), false) => format!("You may not {may} it. {}", line(reason, TEASER)),
        (None, false) => format!("You may not {may} it."),
    };
    format!(
        "{}: {} {}",
        line(name, LINE),
        one(discover, "find"),
        one(invoke, "call")
    )
}
