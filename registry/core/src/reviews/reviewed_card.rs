//! The reviewed card in brief, as the queue shows it and is filtered by it.

use a2a_card::{AgentCard, Finding, Severity, auth_labels};
use a2a_registry_api::ReviewedCard;
use a2a_registry_store::entity::version;
use serde_json::{Map, Value};
use url::Url;

use crate::text::{self, TEASER};

/// What a reviewed card must say to be listed. Texts are compared without regard to case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewedCardFilter {
    /// Organization that provides the agent.
    pub provider: Option<String>,
    /// Tag of one of its skills.
    pub tag: Option<String>,
    /// Authentication that it requires, with the values of the `auth` filter of searches.
    pub auth: Option<String>,
    /// Host of one of its interfaces.
    pub endpoint_host: Option<String>,
}

impl ReviewedCardFilter {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn matches(&self, version: &version::Model) -> bool {
        let Ok(card) = serde_json::from_str::<AgentCard>(&version.model) else {
            return false;
        };
        let fits = |wanted: &Option<String>, has: &dyn Fn(&str) -> bool| {
            wanted.as_deref().is_none_or(|wanted| has(wanted.trim()))
        };
        let organization = card
            .provider
            .as_ref()
            .and_then(|one| one.organization.as_deref());
        let host_matches = |url: &str, wanted: &str| {
            Url::parse(url).is_ok_and(|url| {
                url.host_str()
                    .is_some_and(|host| is_same_text(host, wanted))
            })
        };
        fits(&self.provider, &|wanted| {
            organization.is_some_and(|name| is_same_text(name, wanted))
        }) && fits(&self.tag, &|wanted| {
            let mut tags = card.skills.iter().flat_map(|skill| &skill.tags);
            tags.any(|tag| is_same_text(tag, wanted))
        }) && fits(&self.auth, &|wanted| {
            auth_labels(&card)
                .iter()
                .any(|label| is_same_text(label, wanted))
        }) && fits(&self.endpoint_host, &|wanted| {
            let mut interfaces = card.interfaces.iter();
            interfaces.any(|interface| host_matches(&interface.url, wanted))
        })
    }
}

fn is_same_text(one: &str, other: &str) -> bool {
    one.trim().to_lowercase() == other.to_lowercase()
}

/// Describes a reviewed version, and what differs from the one approved before.
pub(super) fn describe_reviewed_card(
    version: &version::Model,
    previous: Option<&version::Model>,
) -> ReviewedCard {
    let card: Map<String, Value> = serde_json::from_str(&version.model).unwrap_or_default();
    let before: Option<Map<String, Value>> =
        previous.map(|row| serde_json::from_str(&row.model).unwrap_or_default());
    let findings: Vec<Finding> = serde_json::from_str(&version.findings).unwrap_or_default();
    let count = |severity: Severity| {
        let found = findings.iter().filter(|one| one.severity == severity);
        u32::try_from(found.count()).unwrap_or(u32::MAX)
    };
    let line = |value: Option<&Value>| {
        let words = value.and_then(Value::as_str).unwrap_or_default();
        text::single_line(words, TEASER)
    };
    ReviewedCard {
        description: line(card.get("description")),
        provider: line(card.get("provider").and_then(|one| one.get("organization"))),
        changed: before.map_or_else(Vec::new, |before| differing_members(&before, &card)),
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
    }
}

/// The members that differ, in the order of their names.
fn differing_members(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<String> {
    let differs = |name: &&String| before.get(*name) != after.get(*name);
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    let mut names: Vec<String> = after
        .keys()
        .chain(removed)
        .filter(differs)
        .cloned()
        .collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_were_added_changed_or_removed_differ() {
        let before = json!({"name": "a", "version": "1", "skills": [1]});
        let after = json!({"name": "a", "skills": [1, 2], "description": "d"});
        let (before, after) = (before.as_object().unwrap(), after.as_object().unwrap());
        let found = differing_members(before, after);
        assert_eq!(found, ["description", "skills", "version"]);
        assert!(differing_members(after, after).is_empty());
    }
}
