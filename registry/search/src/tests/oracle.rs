//! Searches against a naive scan over the same documents, for every combination of labels and filters.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::analysis::{IndexedWord, analyze_query, indexed_words, split_query_words};
use crate::facets::{PrecomputedFacets, RequestedFacets};
use crate::languages::LanguageSet;
use crate::page_collector::{PageCollector, SortKey};
use crate::schema::{PROTOCOL_FACETS, UNINFORMATIVE_VALUES};

pub(super) const WORDS: [&str; 12] = [
    "flight",
    "flights",
    "hotel",
    "translate",
    "translation",
    "Tokyo",
    "bank",
    "banking",
    "bookFlight",
    "the",
    "naïve",
    "東京旅行",
];
const TAGS: [&str; 5] = ["travel", "finance", "music", "Travel", "a b"];
pub(super) const LABELS: [&str; 3] = ["public", "internal", "group:x"];
const LIFECYCLES: [&str; 5] = ["approved", "approved", "deprecated", "pending", "suspended"];
const LIVENESS: [&str; 4] = ["fresh", "fresh", "stale", "gone"];
const SIGNATURES: [&str; 3] = ["unsigned", "valid", "invalid"];

pub(super) fn random_agent(dice: &mut Dice, number: u64) -> AgentDocument {
    let skills: Vec<SkillText> = (0..dice.below(3))
        .map(|place| SkillText {
            id: format!("{}-{place}", dice.pick(&WORDS)),
            name: dice.words(&WORDS, 2),
            description: dice.words(&WORDS, 3),
            tags: dice.some(&TAGS, 2),
            examples: vec![dice.words(&WORDS, 3)],
            rendered: String::new(),
        })
        .collect();
    AgentDocument {
        id: id(number),
        hit: number.to_string().into_bytes(),
        catalog_entry: Vec::new(),
        name: dice.words(&WORDS, 2),
        description: dice.words(&WORDS, 5),
        provider: dice.words(&WORDS, 1),
        facets: FacetMap::from_fn(|facet| random_values(dice, facet, &skills)),
        skills,
        other_texts: dice.some(&WORDS, 2),
        visible_to: dice.some(&LABELS, 2),
        rule_labels: Vec::new(),
        lookup_keys: Vec::new(),
        identifier: format!("urn:air:d{}.example:{number}", dice.below(70)),
        attributes: dice
            .some(&["eu", "us", "e"], 2)
            .into_iter()
            .map(|value| ("metadata.location".to_owned(), value))
            .chain([("metadata.location.of".to_owned(), "eu".to_owned())])
            .collect(),
        duplicate_key: u128::from(number % 40) << 64,
        preference: u8::try_from(number % 3).unwrap(),
        created_at: i64::try_from(dice.below(20)).unwrap(),
        updated_at: i64::try_from(dice.below(20)).unwrap(),
    }
}

/// Random facet values of an agent with these skills.
fn random_values(dice: &mut Dice, facet: Facet, skills: &[SkillText]) -> Vec<String> {
    let mut one_of = |values: &[&str]| vec![dice.pick(values).to_owned()];
    match facet {
        Facet::Tag => kept(&dice.some(&TAGS, 3)),
        Facet::Skill => skills.iter().map(|skill| skill.id.clone()).collect(),
        Facet::Capability => dice.some(&["streaming", "push_notifications"], 2),
        Facet::Binding => dice.some(&["JSONRPC", "GRPC"], 2),
        Facet::ProtocolVersion => dice.some(&["0.3", "1.0"], 1),
        Facet::Provider => one_of(&["", "acme", "globex"]),
        Facet::Domain => vec![format!("d{}.example", dice.below(70))],
        Facet::Auth => dice.some(&["none", "oauth2"], 1),
        Facet::InputMode => dice.some(&["text/plain", "image/png"], 2),
        Facet::OutputMode => dice.some(&["text/plain"], 1),
        Facet::Trust => one_of(&["none", "L0", "L1", "L2", "L4"]),
        Facet::Lifecycle => one_of(&LIFECYCLES),
        Facet::Liveness => one_of(&LIVENESS),
        Facet::Signature => one_of(&SIGNATURES),
        Facet::Unmanaged => one_of(&["true", "false", "false", "false"]),
        _ => dice.some(&["team=a", "team=b"], 1),
    }
}

fn random_filters(dice: &mut Dice) -> Filters {
    let mut filters = Filters::default();
    for _ in 0..dice.below(3) {
        let place = usize::try_from(dice.below(Facet::ALL.len() as u64)).unwrap();
        let facet = Facet::ALL[place];
        filters.values[facet] = match facet {
            Facet::Tag => dice.some(&TAGS, 2),
            Facet::Skill => vec![dice.words(&WORDS, 2)],
            Facet::Capability => dice.some(&["streaming", "push_notifications"], 2),
            Facet::Binding => dice.some(&["JSONRPC", "GRPC"], 1),
            Facet::ProtocolVersion => dice.some(&["0.3", "1.0"], 2),
            Facet::Provider => dice.some(&["ACME", "globex"], 1),
            Facet::Domain => vec![format!("d{}.example", dice.below(70))],
            Facet::Auth => dice.some(&["none", "oauth2"], 1),
            Facet::InputMode | Facet::OutputMode => dice.some(&["text/plain"], 1),
            Facet::Trust => dice.some(&["L0", "L1", "L2", "L3", "L4"], 4),
            Facet::Lifecycle => dice.some(&LIFECYCLES, 2),
            Facet::Liveness => dice.some(&LIVENESS, 2),
            Facet::Signature => dice.some(&SIGNATURES, 2),
            Facet::Unmanaged => dice.some(&["true", "false"], 2),
            _ => dice.some(&["team=a"], 1),
        };
    }
    filters
}

pub(super) fn random_request(dice: &mut Dice) -> SearchRequest {
    let mut filters = random_filters(dice);
    if dice.below(4) == 0 {
        let within = 1 + dice.below(2);
        filters.any_of = (0..within).map(|_| random_filters(dice)).collect();
    }
    let text = (dice.below(3) > 0).then(|| dice.words(&WORDS, 3));
    let labels = dice.some(&LABELS, 2);
    SearchRequest {
        text,
        filters,
        class_labels: labels.clone(),
        visible_to: labels,
        limit: 1_000,
        facets: Facet::ALL.to_vec(),
        ..SearchRequest::default()
    }
}

/// Indexed tags: in lower case.
fn kept(tags: &[String]) -> Vec<String> {
    tags.iter().map(|tag| tag.to_lowercase()).collect()
}

fn holds(asked: &[String], has: &[String]) -> bool {
    asked.is_empty() || asked.iter().any(|value| has.contains(value))
}

/// Forms of all words of a text.
fn forms(text: &str) -> BTreeSet<String> {
    indexed_words(text, LanguageSet::NONE)
        .into_iter()
        .flat_map(IndexedWord::forms)
        .collect()
}

fn texts(agent: &AgentDocument) -> BTreeSet<String> {
    let mut all = vec![&agent.name, &agent.description, &agent.provider];
    all.extend(&agent.facets[Facet::Domain]);
    for facet in PROTOCOL_FACETS {
        let told = agent.facets[facet].iter();
        all.extend(told.filter(|value| !UNINFORMATIVE_VALUES.contains(&value.as_str())));
    }
    for skill in &agent.skills {
        all.extend([&skill.id, &skill.name, &skill.description]);
        all.extend(skill.tags.iter().chain(&skill.examples));
    }
    all.extend(&agent.other_texts);
    all.into_iter().flat_map(|text| forms(text)).collect()
}

fn has_skill(agent: &AgentDocument, asked: &[String]) -> bool {
    let names: BTreeSet<String> = agent
        .skills
        .iter()
        .flat_map(|skill| forms(&skill.name))
        .collect();
    asked.is_empty()
        || asked.iter().any(|value| {
            let words: Vec<_> = split_query_words(value).collect();
            agent.facets[Facet::Skill].contains(value)
                || !words.is_empty()
                    && words
                        .into_iter()
                        .all(|word| names.contains(&word.stem.unwrap_or(word.exact)))
        })
}

pub(super) fn visible(agent: &AgentDocument, labels: &[String]) -> bool {
    agent.visible_to.iter().any(|label| labels.contains(label))
}

pub(super) fn matches(agent: &AgentDocument, request: &SearchRequest) -> bool {
    let filters = &request.filters;
    let is_any = |facet: Facet, of: &[&str]| {
        let mut values = agent.facets[facet].iter();
        values.any(|value| of.contains(&value.as_str()))
    };
    let lifecycle = !filters.values[Facet::Lifecycle].is_empty()
        || is_any(Facet::Lifecycle, &["approved", "deprecated"]);
    let liveness =
        !filters.values[Facet::Liveness].is_empty() || !is_any(Facet::Liveness, &["gone"]);
    let text = request
        .text
        .as_deref()
        .map(|text| analyze_query(text).words)
        .unwrap_or_default();
    let found = text.is_empty() || {
        let texts = texts(agent);
        text.iter().any(|word| {
            texts.contains(&word.exact)
                || word.stem.as_ref().is_some_and(|stem| texts.contains(stem))
        })
    };
    visible(agent, &request.visible_to)
        && lifecycle
        && liveness
        && found
        && passes(agent, filters)
        && (filters.any_of.is_empty() || filters.any_of.iter().any(|one| passes(agent, one)))
}

/// Whether an agent passes the explicit conditions of filters.
fn passes(agent: &AgentDocument, filters: &Filters) -> bool {
    let by_facets = Facet::ALL.iter().all(|&facet| {
        let asked = &filters.values[facet];
        match facet {
            Facet::Skill => has_skill(agent, asked),
            Facet::Tag | Facet::Provider => holds(&kept(asked), &agent.facets[facet]),
            _ => holds(asked, &agent.facets[facet]),
        }
    });
    by_facets
        && filters.exact.iter().all(|one| {
            property_values(agent, &one.property)
                .iter()
                .any(|value| one.values.contains(value))
        })
}

/// The values of an agent's property.
pub(super) fn property_values(agent: &AgentDocument, property: &AgentProperty) -> Vec<String> {
    match property {
        AgentProperty::Facet(facet) => values(agent, *facet),
        AgentProperty::Identifier => vec![agent.identifier.clone()],
        AgentProperty::Id => vec![agent.id.to_string()],
        AgentProperty::Attribute(path) => {
            let held = agent.attributes.iter().filter(|(one, _)| one == path);
            held.map(|(_, value)| value.clone()).collect()
        }
    }
}

fn values(agent: &AgentDocument, facet: Facet) -> Vec<String> {
    let mut values = agent.facets[facet].clone();
    values.sort();
    values.dedup();
    values.retain(|value| !value.is_empty());
    values
}

pub(super) fn counted(agents: &[&AgentDocument], facet: Facet) -> FacetCounts {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for value in agents.iter().flat_map(|agent| values(agent, facet)) {
        *counts.entry(value).or_default() += 1;
    }
    let mut values: Vec<(String, u64)> = counts.into_iter().collect();
    values.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    let other = values.split_off(values.len().min(MAX_FACET_VALUES));
    FacetCounts {
        values,
        other_count: other.iter().map(|(_, count)| count).sum(),
    }
}

fn check(
    index: &Index,
    agents: &BTreeMap<Uuid, AgentDocument>,
    hidden: &BTreeSet<Uuid>,
    dice: &mut Dice,
) -> usize {
    let request = random_request(dice);
    let expected: Vec<&AgentDocument> = agents
        .values()
        .filter(|agent| !hidden.contains(&agent.id) && matches(agent, &request))
        .collect();
    // Matching an agent's document gives the same result as the index.
    for agent in agents.values() {
        assert_eq!(
            request.filters.matches_document(agent),
            passes(agent, &request.filters),
            "{agent:?} {request:?}"
        );
    }
    let answer = index.search(&request).unwrap();
    let found: BTreeSet<Uuid> = answer.hits.iter().map(|hit| hit.id).collect();
    assert_eq!(
        found,
        expected.iter().map(|agent| agent.id).collect(),
        "{request:?}"
    );
    assert_eq!(answer.total, expected.len() as u64);
    assert_eq!(answer.hits.len(), expected.len());
    for hit in &answer.hits {
        assert_eq!(hit.hit, agents[&hit.id].hit);
    }
    for &facet in Facet::ALL {
        assert_eq!(
            answer.facets[&facet],
            counted(&expected, facet),
            "{facet:?} of {request:?}"
        );
    }

    let labels = &request.visible_to;
    let prefix = dice.pick(&["t", "tr", "f", "b", "a", "na", "東"]);
    let listed: Vec<&AgentDocument> = agents
        .values()
        .filter(|agent| {
            let plain = SearchRequest {
                visible_to: labels.clone(),
                ..SearchRequest::default()
            };
            !hidden.contains(&agent.id) && matches(agent, &plain)
        })
        .collect();
    for suggestion in index.suggest(prefix, labels, 50).unwrap() {
        let folded = |text: &str| crate::text_folding::fold_text(text).into_owned();
        let count = listed
            .iter()
            .filter(|agent| {
                let of_kind: Vec<&String> = match suggestion.kind {
                    SuggestionKind::Name => vec![&agent.name],
                    SuggestionKind::Skill => agent.skills.iter().map(|skill| &skill.name).collect(),
                    SuggestionKind::Tag => agent.facets[Facet::Tag].iter().collect(),
                };
                of_kind
                    .iter()
                    .any(|text| folded(text.trim()) == folded(&suggestion.text))
            })
            .count();
        assert_eq!(
            (suggestion.count, count > 0),
            (count as u64, true),
            "{suggestion:?} for {labels:?}"
        );
    }
    expected.len()
}

#[test]
fn searches_equal_a_naive_scan() {
    for seed in 1..=4 {
        let dir = tempfile::tempdir().unwrap();
        let mut dice = Dice(seed * 0x9e37_79b9);
        let mut agents: BTreeMap<Uuid, AgentDocument> = (0..120)
            .map(|number| (id(number), random_agent(&mut dice, number)))
            .collect();
        let index = built(dir.path(), agents.values().cloned().collect());
        let mut hidden = BTreeSet::new();
        let mut found = 0;
        for seq in 2..8 {
            for _ in 0..25 {
                found += check(&index, &agents, &hidden, &mut dice);
            }
            // Changes arrive: first hidden by the overlay, then applied, except for the last ones, which stay hidden.
            let changed: Vec<u64> = (0..10).map(|_| dice.below(140)).collect();
            let ids: Vec<Uuid> = changed.iter().map(|number| id(*number)).collect();
            index.record_hidden_agents(&ids, seq);
            hidden = ids.iter().copied().collect();
            found += check(&index, &agents, &hidden, &mut dice);
            if seq < 7 {
                let (deleted, upserted) = changed.split_at(3);
                let upserts: Vec<AgentDocument> = upserted
                    .iter()
                    .map(|number| random_agent(&mut dice, *number))
                    .collect();
                let deletes: Vec<Uuid> = deleted.iter().map(|number| id(*number)).collect();
                for id in &deletes {
                    agents.remove(id);
                }
                agents.extend(upserts.iter().map(|agent| (agent.id, agent.clone())));
                index.apply_changes(upserts, &deletes, seq).unwrap();
                hidden.clear();
            }
        }
        assert!(found > 500, "the requests have to find something: {found}");
    }
}

/// Limits for all methods of facet counting: all or some segments as sets, with all or a few values precomputed, with
/// and without memory for sets, and stopped at once or on the way; and match by match, with and without large
/// segments.
pub(super) fn facet_limits() -> [FacetPrecomputationLimits; 8] {
    let by_sets = FacetPrecomputationLimits {
        min_agents: 1,
        nanos_per_value: u64::MAX,
        ..FacetPrecomputationLimits::default()
    };
    [
        by_sets,
        FacetPrecomputationLimits {
            max_values: 60,
            max_bitset_bytes: 0,
            ..by_sets
        },
        FacetPrecomputationLimits {
            max_values: 700,
            max_postings: 500,
            max_bitset_bytes: 4_096,
            ..by_sets
        },
        FacetPrecomputationLimits {
            min_agents: 1_500,
            max_values: 300,
            ..by_sets
        },
        FacetPrecomputationLimits {
            max_values: 0,
            ..by_sets
        },
        FacetPrecomputationLimits {
            nanos_per_value: 0,
            ..by_sets
        },
        FacetPrecomputationLimits {
            nanos_per_value: 1,
            max_values: 100,
            ..by_sets
        },
        FacetPrecomputationLimits {
            min_agents: u32::MAX,
            ..by_sets
        },
    ]
}

/// Counts all facets over the matches of a search, by the method that these limits choose.
pub(super) fn counts_by(
    index: &Index,
    compiled: &CompiledQuery,
    limits: FacetPrecomputationLimits,
) -> BTreeMap<Facet, FacetCounts> {
    let CompiledQuery {
        searcher, query, ..
    } = compiled;
    let frequent = PrecomputedFacets::build(searcher, &index.0.fields, limits, None).unwrap();
    let page = PageCollector {
        facets: RequestedFacets::new(Facet::ALL.to_vec(), frequent),
        ..PageCollector::new(SortKey::Updated, 0)
    };
    let matches = searcher.search(&**query, &page).unwrap().matches;
    assert!(matches.len() > 1);
    let counts = page
        .facets
        .count_facet_values(searcher, &index.0.fields, matches);
    counts.unwrap()
}

/// Large enough for shared sets, candidate-driven queries, and facets whose most frequent values do not suffice.
#[test]
fn large_segments_equal_a_naive_scan() {
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(99);
    let mut agents: BTreeMap<Uuid, AgentDocument> = BTreeMap::new();
    for number in 0..6_000 {
        let mut agent = random_agent(&mut dice, number);
        // Far more values than are shown, with nearly equal counts in every segment.
        agent.facets[Facet::Tag].push(format!("tag{}", dice.below(700)));
        // Add as many values that only one agent has.
        agent.facets[Facet::Skill].push(format!("skill{}", number * 7_919 % 6_000));
        agent.facets[Facet::Label] = match dice.below(200) {
            0 => vec!["team=a".to_owned()],
            _ => Vec::new(),
        };
        agents.insert(agent.id, agent);
    }
    let all: Vec<AgentDocument> = agents.values().cloned().collect();
    let index = built(dir.path(), all[..5_000].to_vec());
    index.apply_changes(all[5_000..].to_vec(), &[], 2).unwrap();
    let gone: Vec<Uuid> = all.iter().step_by(17).map(|agent| agent.id).collect();
    for id in &gone {
        agents.remove(id);
    }
    index.apply_changes(Vec::new(), &gone, 3).unwrap();
    let hidden: BTreeSet<Uuid> = agents.keys().step_by(13).copied().collect();
    index.record_hidden_agents(&hidden.iter().copied().collect::<Vec<_>>(), 4);
    for _ in 0..40 {
        let mut request = random_request(&mut dice);
        if dice.below(3) == 0 {
            request.filters = by(Facet::Label, &["team=a"]);
        }
        request.visible_to = public();
        request.class_labels = public();
        let expected: Vec<&AgentDocument> = agents
            .values()
            .filter(|agent| !hidden.contains(&agent.id) && matches(agent, &request))
            .collect();
        let answer = index.search(&request).unwrap();
        assert_eq!(answer.total, expected.len() as u64, "{request:?}");
        for &facet in Facet::ALL {
            assert_eq!(
                answer.facets[&facet],
                counted(&expected, facet),
                "{facet:?} of {request:?}"
            );
        }
        let compiled = index.compile_query(&request).unwrap();
        for limits in facet_limits() {
            let counts = counts_by(&index, &compiled, limits);
            for &facet in Facet::ALL {
                assert_eq!(
                    counts[&facet],
                    counted(&expected, facet),
                    "{facet:?} of {request:?} with {limits:?}"
                );
            }
        }
        // tantivy's own collectors use other methods of the query.
        let count = compiled
            .searcher
            .search(&*compiled.query, &tantivy::collector::Count)
            .unwrap();
        assert_eq!(count, expected.len());
        let documents = compiled
            .searcher
            .search(&*compiled.query, &tantivy::collector::DocSetCollector)
            .unwrap();
        assert_eq!(documents.len(), expected.len());
        let best = tantivy::collector::TopDocs::with_limit(20).order_by_score();
        let best = compiled.searcher.search(&*compiled.query, &best).unwrap();
        if answer.hits.first().is_some_and(|hit| hit.score.is_some()) {
            let scores: Vec<f32> = answer
                .hits
                .iter()
                .take(20)
                .take_while(|hit| !hit.weak)
                .filter_map(|hit| hit.score)
                .collect();
            let bare: Vec<f32> = best.iter().map(|(score, _)| *score).collect();
            for (score, bare) in scores.iter().zip(&bare) {
                // Rescoring only adds to a score.
                assert!(*score >= bare * (1.0 - 1e-4), "{scores:?} {bare:?}");
            }
            assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
        }
    }
}
