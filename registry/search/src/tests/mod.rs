//! Tests of the index as a whole, on real folders.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod analysis;
mod bits;
mod bounded;
mod damage;
mod durability;
mod facets;
mod fitting;
mod groups;
mod hints;
mod keys;
mod labels;
mod languages;
mod living;
mod meaning;
mod merges;
mod operators;
mod oracle;
mod other_texts;
mod overlay;
mod paging;
mod properties;
mod ranking;
mod reasons;
mod replicas;
mod rule_labels;
mod similar;
mod statistics;
mod text;
mod typing_errors;
mod weak;
mod words;

use std::path::Path;

use a2a_registry_domain::facet::{Facet, FacetMap};
use uuid::Uuid;

use super::*;

/// An id that is easy to read in a failure message.
fn id(number: u64) -> Uuid {
    // Spread over both halves, so that an order by only one of them is detected.
    Uuid::from_u64_pair(number % 3, number)
}

fn agent(number: u64, name: &str) -> AgentDocument {
    AgentDocument {
        id: id(number),
        hit: format!("{{\"n\":{number}}}").into_bytes(),
        name: name.to_owned(),
        facets: FacetMap::from([
            (Facet::Lifecycle, vec!["approved".to_owned()]),
            (Facet::Liveness, vec!["fresh".to_owned()]),
            (Facet::Trust, vec!["none".to_owned()]),
            (Facet::Unmanaged, vec!["false".to_owned()]),
        ]),
        visible_to: vec!["public".to_owned()],
        created_at: i64::try_from(number).unwrap(),
        updated_at: i64::try_from(number).unwrap(),
        ..AgentDocument::default()
    }
}

/// The agent with its values of a facet replaced by these.
fn with(mut agent: AgentDocument, facet: Facet, values: &[&str]) -> AgentDocument {
    agent.facets[facet] = values.iter().map(|value| (*value).to_owned()).collect();
    agent
}

/// Filters by these values of one facet.
fn by(facet: Facet, values: &[&str]) -> Filters {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Filters {
        values: FacetMap::from([(facet, values)]),
        ..Filters::default()
    }
}

fn public() -> Vec<String> {
    vec!["public".to_owned()]
}

fn all() -> SearchRequest {
    SearchRequest {
        visible_to: public(),
        class_labels: public(),
        limit: 100,
        ..SearchRequest::default()
    }
}

fn text(text: &str) -> SearchRequest {
    SearchRequest {
        text: Some(text.to_owned()),
        ..all()
    }
}

/// A configuration that counts facets as sets wherever possible, however few agents there are.
fn config() -> IndexConfig {
    IndexConfig {
        facets: FacetPrecomputationLimits {
            min_agents: 1,
            max_values: 8,
            max_bitset_bytes: 100,
            nanos_per_value: u64::MAX,
            ..FacetPrecomputationLimits::default()
        },
        ..IndexConfig::default()
    }
}

/// An index of these agents, built like the first index of a server.
fn built(dir: &Path, agents: Vec<AgentDocument>) -> Index {
    let (index, _) = Index::open(dir, config()).unwrap();
    let mut rebuild = index.begin_rebuild().unwrap();
    rebuild.add_agents(agents).unwrap();
    rebuild.finish(1).unwrap();
    index
}

fn ids(answer: &IndexSearchResponse) -> Vec<Uuid> {
    answer.hits.iter().map(|hit| hit.id).collect()
}

fn names(index: &Index, request: &SearchRequest) -> Vec<Uuid> {
    ids(&index.search(request).unwrap())
}

/// Pseudo-random numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let at = self.below(from.len() as u64);
        from[usize::try_from(at).unwrap()]
    }

    fn some(&mut self, from: &[&str], most: u64) -> Vec<String> {
        let mut some: Vec<String> = (0..self.below(most + 1))
            .map(|_| self.pick(from).to_owned())
            .collect();
        some.sort();
        some.dedup();
        some
    }

    fn words(&mut self, from: &[&str], most: u64) -> String {
        let count = self.below(most + 1);
        (0..count)
            .map(|_| self.pick(from))
            .collect::<Vec<_>>()
            .join(" ")
    }
}
