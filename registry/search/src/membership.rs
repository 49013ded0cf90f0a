//! Whether an agent passes filters, by its document alone: the same answer as the index gives, without one.

use std::collections::HashSet;

use super::analysis::{asked_pieces, indexed_forms};
use super::document::{Document, MAX_SKILLS, MAX_TEXT_BYTES, MAX_VALUE_BYTES};
use super::request::{FacetName, Filters, MAX_QUERY_WORDS};
use super::schema::{trust_value, truth};

impl Filters {
    /// Whether an agent passes what these filters name. A filter without a lifecycle or liveness asks for none.
    pub fn hold(&self, agent: &Document) -> bool {
        let lists = self.lists().into_iter();
        let mut used = lists.filter(|(_, values)| !values.is_empty());
        let by_lists = used.all(|(facet, values)| {
            let mut values = values.iter();
            values.any(|value| has(agent, facet, value))
        });
        let trusted = |least: u8| agent.trust.is_some_and(|level| level.min(4) >= least);
        let exactly = self.exact.iter().all(|one| {
            let mut values = one.values.iter();
            values.any(|value| one.property.is_of(agent, value))
        });
        by_lists && exactly && self.trust_at_least.is_none_or(trusted)
    }
}

/// Whether an agent has this value of a facet, byte by byte.
pub(super) fn has_exactly(agent: &Document, facet: FacetName, value: &str) -> bool {
    let among = |list: &[String]| list.iter().any(|one| one == value && fits(one));
    match facet {
        FacetName::Tag => among(&agent.tags),
        FacetName::Skill => among(&agent.skill_ids),
        FacetName::Provider => agent.provider_key == value && fits(value),
        _ => has(agent, facet, value),
    }
}

/// Whether an agent has this value, as the index compares it.
fn has(agent: &Document, facet: FacetName, value: &str) -> bool {
    let is = |one: &str| one == value && fits(one);
    let among = |list: &[String]| list.iter().any(|one| is(one));
    match facet {
        FacetName::Tag => {
            let value = value.to_lowercase();
            agent.tags.iter().any(|tag| *tag == value && fits(tag))
        }
        FacetName::Skill => among(&agent.skill_ids) || has_words(agent, value),
        FacetName::Capability => among(&agent.capabilities),
        FacetName::Binding => among(&agent.bindings),
        FacetName::ProtocolVersion => among(&agent.protocol_versions),
        FacetName::Provider => {
            let value = value.to_lowercase();
            agent.provider_key == value && fits(&value)
        }
        FacetName::Domain => is(&agent.domain),
        FacetName::Auth => among(&agent.auth),
        FacetName::InputMode => among(&agent.input_modes),
        FacetName::OutputMode => among(&agent.output_modes),
        FacetName::Label => among(&agent.labels),
        FacetName::Trust => is(trust_value(agent.trust)),
        FacetName::Lifecycle => is(&agent.lifecycle),
        FacetName::Liveness => is(&agent.liveness),
        FacetName::Signature => is(&agent.signature),
        FacetName::Unmanaged => is(truth(agent.unmanaged)),
    }
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
