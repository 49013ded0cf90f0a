//! Whether an agent passes filters, by its document alone: the same answer as the index gives, without one.

use std::collections::HashSet;

use a2a_registry_domain::facet::Facet;

use super::analysis::{asked_pieces, indexed_forms};
use super::document::{Document, MAX_SKILLS, MAX_TEXT_BYTES, MAX_VALUE_BYTES};
use super::filter::indexed_form;
use super::request::{Filters, MAX_QUERY_WORDS};

impl Filters {
    /// Whether an agent passes what these filters name. A filter without a lifecycle or liveness asks for none.
    pub fn hold(&self, agent: &Document) -> bool {
        let by_values = self.used().all(|(facet, values)| {
            let mut values = values.iter();
            values.any(|value| has(agent, facet, value))
        });
        let exactly = self.exact.iter().all(|one| {
            let mut values = one.values.iter();
            values.any(|value| one.property.is_of(agent, value))
        });
        by_values && exactly
    }
}

/// Whether an agent has this value of a facet, byte by byte.
pub(super) fn has_exactly(agent: &Document, facet: Facet, value: &str) -> bool {
    fits(value) && agent.facets[facet].iter().any(|one| one == value)
}

/// Whether an agent has this value, as the index compares it.
fn has(agent: &Document, facet: Facet, value: &str) -> bool {
    has_exactly(agent, facet, &indexed_form(facet, value))
        || facet == Facet::Skill && has_words(agent, value)
}

/// Whether the index has this value: it leaves out empty and long ones.
fn fits(value: &str) -> bool {
    !value.is_empty() && value.len() <= MAX_VALUE_BYTES
}

/// Whether all words of a text, in their stems, are in the names of the agent's skills.
fn has_words(agent: &Document, text: &str) -> bool {
    let words: HashSet<String> = asked_pieces(text)
        .map(|piece| piece.stem.unwrap_or(piece.exact))
        .collect();
    if words.is_empty() || words.len() > MAX_QUERY_WORDS {
        return false;
    }
    let named = names(agent);
    words.iter().all(|word| named.contains(word))
}

/// The forms of all words in the names of the agent's skills, as far as they are indexed.
fn names(agent: &Document) -> HashSet<String> {
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
