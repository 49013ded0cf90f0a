//! The cards of the bench after their changes, and the documents that other engines index for them.

use std::collections::BTreeSet;

use a2a_card::{
    AgentCard, all_input_modes, all_output_modes, auth_labels, capability_labels, skill_tags,
};
use serde_json::{Value, json};

use crate::full_text::fts5::searched_text;
use crate::generator::CardGenerator;

/// Cards per domain: the number that one visit fetches.
pub const CARDS_OF_DOMAIN: usize = a2a_crawler::MAX_SOURCES_PER_VISIT;

/// All facets that a search counts at most.
pub const FACETS: [&str; 12] = [
    "tag",
    "provider",
    "capability",
    "binding",
    "skill",
    "protocol_version",
    "domain",
    "auth",
    "input_mode",
    "output_mode",
    "trust",
    "liveness",
];

/// The card of this number after this number of changes.
pub fn revised(generator: CardGenerator, index: u64, revision: u32) -> Vec<u8> {
    let bytes = generator.card(index);
    if revision == 0 {
        return bytes;
    }
    let mut card: Value = serde_json::from_slice(&bytes).unwrap();
    card["version"] = json!(format!("9.{revision}.0"));
    let text = generator.query(index.wrapping_mul(31) + u64::from(revision), 40);
    card["description"] = json!(text);
    card.to_string().into_bytes()
}

/// The number of the card that change number `change` is about: spread over all, and each twice at most before all were
/// changed.
pub const fn changed_card(change: usize, agents: usize) -> usize {
    (change * 7_919) % agents
}

/// What an engine holds of a card.
pub struct EngineDocument {
    /// The number of the card.
    pub key: usize,
    /// The texts that hits return.
    pub shown: [(&'static str, String); 3],
    /// All searched texts.
    pub body: String,
    /// The values of each facet, in the order of [`FACETS`].
    pub facets: [Vec<String>; 12],
}

impl EngineDocument {
    /// Reads a card.
    pub fn new(key: usize, bytes: &[u8]) -> Self {
        let card = a2a_card::parse_card(bytes).unwrap().card;
        let provider = card.provider.as_ref();
        let provider = provider.and_then(|provider| provider.organization.clone());
        let shown = [
            ("name", card.name.clone()),
            ("description", card.description.clone().unwrap_or_default()),
            ("provider_name", provider.clone().unwrap_or_default()),
        ];
        Self {
            key,
            shown,
            body: searched_text(&card),
            facets: facets(key, &card, provider),
        }
    }
}

fn facets(key: usize, card: &AgentCard, provider: Option<String>) -> [Vec<String>; 12] {
    let interfaces = &card.interfaces;
    let versions = interfaces
        .iter()
        .filter_map(|one| one.protocol_version.clone());
    [
        skill_tags(card),
        provider.into_iter().collect(),
        capability_labels(card),
        distinct(interfaces.iter().map(|one| one.binding.clone())),
        distinct(card.skills.iter().map(|skill| skill.id.clone())),
        distinct(versions),
        vec![format!("d{}.agents.test", key / CARDS_OF_DOMAIN)],
        auth_labels(card),
        all_input_modes(card),
        all_output_modes(card),
        vec!["none".into()],
        vec!["fresh".into()],
    ]
}

fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    let values: BTreeSet<String> = values.collect();
    values.into_iter().collect()
}
