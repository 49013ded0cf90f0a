//! Filter matching on documents: gives the same result as the index, without one.

use std::collections::HashSet;

use a2a_registry_domain::facet::Facet;

use super::agent_property::has_exact_facet_value;
use super::analysis::{MAX_QUERY_WORDS, indexed_forms, split_query_words};
use super::document::{AgentDocument, MAX_SKILLS, MAX_TEXT_BYTES};
use super::filter::indexed_facet_value;
use super::request::Filters;

impl Filters {
    /// Whether an agent passes the explicit conditions of these filters. Without a lifecycle or liveness filter, any
    /// is accepted.
    pub fn matches_document(&self, agent: &AgentDocument) -> bool {
        let values_match = self.used_facets().all(|(facet, values)| {
            let mut values = values.iter();
            values.any(|value| has_facet_value(agent, facet, value))
        });
        let exactly = self.exact.iter().all(|one| {
            let mut values = one.values.iter();
            values.any(|value| one.property.document_has_value(agent, value))
        });
        values_match && exactly
    }
}

/// Whether an agent has this value, compared as in the index.
fn has_facet_value(agent: &AgentDocument, facet: Facet, value: &str) -> bool {
    has_exact_facet_value(agent, facet, &indexed_facet_value(facet, value))
        || facet == Facet::Skill && has_skill_words(agent, value)
}

/// Whether the names of the agent's skills contain all words of a text, compared by their stems.
fn has_skill_words(agent: &AgentDocument, text: &str) -> bool {
    let words: HashSet<String> = split_query_words(text)
        .map(|piece| piece.stem.unwrap_or(piece.exact))
        .collect();
    if words.is_empty() || words.len() > MAX_QUERY_WORDS {
        return false;
    }
    let named = skill_name_forms(agent);
    words.iter().all(|word| named.contains(word))
}

/// The indexed forms of all words in the names of the agent's skills.
fn skill_name_forms(agent: &AgentDocument) -> HashSet<String> {
    let mut forms = HashSet::new();
    let mut left = MAX_TEXT_BYTES;
    let mut take = |text: &str| {
        let kept = &text[..text.floor_char_boundary(left)];
        left -= kept.len();
        kept.to_owned()
    };
    for skill in agent.skills.iter().take(MAX_SKILLS) {
        // Ids, names and tags share one budget of bytes.
        take(&skill.id);
        let name = take(&skill.name);
        skill.tags.iter().for_each(|tag| drop(take(tag)));
        forms.extend(indexed_forms(&name));
    }
    forms
}
