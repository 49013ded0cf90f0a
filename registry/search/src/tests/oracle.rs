//! Searches against a naive scan over the same documents, for every combination of labels and filters.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::analysis::{IndexedWord, asked_pieces, pieces, query_text};
use crate::collect::{Order, PageCollector};
use crate::facets::{Facets, FrequentValues};
use crate::languages::Languages;
use crate::schema::TELL_NOTHING;

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

pub(super) fn random_agent(dice: &mut Dice, number: u64) -> Document {
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
    Document {
        id: id(number),
        hit: number.to_string().into_bytes(),
        entry: Vec::new(),
        name: dice.words(&WORDS, 2),
        description: dice.words(&WORDS, 5),
        provider: dice.words(&WORDS, 1),
        domain: format!("d{}.example", dice.below(70)),
        skill_ids: skills.iter().map(|skill| skill.id.clone()).collect(),
        skills,
        other_texts: dice.some(&WORDS, 2),
        tags: kept(&dice.some(&TAGS, 3)),
        capabilities: dice.some(&["streaming", "push_notifications"], 2),
        bindings: dice.some(&["JSONRPC", "GRPC"], 2),
        protocol_versions: dice.some(&["0.3", "1.0"], 1),
        auth: dice.some(&["none", "oauth2"], 1),
        input_modes: dice.some(&["text/plain", "image/png"], 2),
        output_modes: dice.some(&["text/plain"], 1),
        labels: dice.some(&["team=a", "team=b"], 1),
        provider_key: dice.pick(&["", "acme", "globex"]).to_owned(),
        lifecycle: dice.pick(&LIFECYCLES).to_owned(),
        liveness: dice.pick(&LIVENESS).to_owned(),
        signature: dice.pick(&SIGNATURES).to_owned(),
        unmanaged: dice.below(4) == 0,
        trust: [None, Some(0), Some(1), Some(2), Some(4)][usize::try_from(dice.below(5)).unwrap()],
        visible_to: dice.some(&LABELS, 2),
        lookups: Vec::new(),
        identifier: format!("urn:air:d{}.example:{number}", dice.below(70)),
        attributes: dice
            .some(&["eu", "us", "e"], 2)
            .into_iter()
            .map(|value| ("metadata.location".to_owned(), value))
            .chain([("metadata.location.of".to_owned(), "eu".to_owned())])
            .collect(),
        group: u128::from(number % 40) << 64,
        preference: u8::try_from(number % 3).unwrap(),
        created_at: i64::try_from(dice.below(20)).unwrap(),
        updated_at: i64::try_from(dice.below(20)).unwrap(),
    }
}

fn random_filters(dice: &mut Dice) -> Filters {
    let mut filters = Filters::default();
    for _ in 0..dice.below(3) {
        match dice.below(15) {
            0 => filters.tag = dice.some(&TAGS, 2),
            1 => filters.capability = dice.some(&["streaming", "push_notifications"], 2),
            2 => filters.binding = dice.some(&["JSONRPC", "GRPC"], 1),
            3 => filters.lifecycle = dice.some(&LIFECYCLES, 2),
            4 => filters.liveness = dice.some(&LIVENESS, 2),
            5 => filters.provider = dice.some(&["ACME", "globex"], 1),
            6 => filters.trust_at_least = Some(u8::try_from(dice.below(6)).unwrap()),
            7 => filters.skill = vec![dice.words(&WORDS, 2)],
            8 => filters.label = dice.some(&["team=a"], 1),
            9 => filters.auth = dice.some(&["none", "oauth2"], 1),
            10 => filters.input_mode = dice.some(&["text/plain"], 1),
            12 => filters.signature = dice.some(&SIGNATURES, 2),
            13 => filters.unmanaged = dice.some(&["true", "false"], 2),
            11 => filters.protocol_version = dice.some(&["0.3", "1.0"], 2),
            _ => filters.domain = vec![format!("d{}.example", dice.below(70))],
        }
    }
    filters
}

pub(super) fn random_request(dice: &mut Dice) -> SearchRequest {
    let mut filters = random_filters(dice);
    if dice.below(4) == 0 {
        let within = 1 + dice.below(2);
        filters.within = (0..within).map(|_| random_filters(dice)).collect();
    }
    let text = (dice.below(3) > 0).then(|| dice.words(&WORDS, 3));
    let labels = dice.some(&LABELS, 2);
    SearchRequest {
        text,
        filters,
        class: labels.clone(),
        visible_to: labels,
        limit: 1_000,
        facets: FacetName::ALL.to_vec(),
        ..SearchRequest::default()
    }
}

/// Tags as they are indexed: in lower case.
fn kept(tags: &[String]) -> Vec<String> {
    tags.iter().map(|tag| tag.to_lowercase()).collect()
}

fn holds(asked: &[String], has: &[String]) -> bool {
    asked.is_empty() || asked.iter().any(|value| has.contains(value))
}

/// Forms of all words of a text.
fn forms(text: &str) -> BTreeSet<String> {
    pieces(text, Languages::NONE)
        .into_iter()
        .flat_map(IndexedWord::forms)
        .collect()
}

fn texts(agent: &Document) -> BTreeSet<String> {
    let mut all = vec![
        &agent.name,
        &agent.description,
        &agent.provider,
        &agent.domain,
    ];
    for list in [
        &agent.capabilities,
        &agent.bindings,
        &agent.protocol_versions,
        &agent.auth,
        &agent.input_modes,
        &agent.output_modes,
    ] {
        let told = list.iter();
        all.extend(told.filter(|value| !TELL_NOTHING.contains(&value.as_str())));
    }
    for skill in &agent.skills {
        all.extend([&skill.id, &skill.name, &skill.description]);
        all.extend(skill.tags.iter().chain(&skill.examples));
    }
    all.extend(&agent.other_texts);
    all.into_iter().flat_map(|text| forms(text)).collect()
}

fn has_skill(agent: &Document, asked: &[String]) -> bool {
    let names: BTreeSet<String> = agent
        .skills
        .iter()
        .flat_map(|skill| forms(&skill.name))
        .collect();
    asked.is_empty()
        || asked.iter().any(|value| {
            let words: Vec<_> = asked_pieces(value).collect();
            agent.skill_ids.contains(value)
                || !words.is_empty()
                    && words
                        .into_iter()
                        .all(|word| names.contains(&word.stem.unwrap_or(word.exact)))
        })
}

pub(super) fn visible(agent: &Document, labels: &[String]) -> bool {
    agent.visible_to.iter().any(|label| labels.contains(label))
}

pub(super) fn matches(agent: &Document, request: &SearchRequest) -> bool {
    let filters = &request.filters;
    let lifecycle = if filters.lifecycle.is_empty() {
        ["approved", "deprecated"].contains(&agent.lifecycle.as_str())
    } else {
        filters.lifecycle.contains(&agent.lifecycle)
    };
    let liveness = if filters.liveness.is_empty() {
        agent.liveness != "gone"
    } else {
        filters.liveness.contains(&agent.liveness)
    };
    let text = request
        .text
        .as_deref()
        .map(|text| query_text(text).words)
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
        && (filters.within.is_empty() || filters.within.iter().any(|one| passes(agent, one)))
}

/// Whether an agent passes what filters name themselves.
fn passes(agent: &Document, filters: &Filters) -> bool {
    let one = |value: &String| vec![value.clone()];
    has_skill(agent, &filters.skill)
        && holds(&kept(&filters.tag), &agent.tags)
        && holds(&filters.capability, &agent.capabilities)
        && holds(&filters.binding, &agent.bindings)
        && holds(&filters.protocol_version, &agent.protocol_versions)
        && holds(&kept(&filters.provider), &one(&agent.provider_key))
        && holds(&filters.domain, &one(&agent.domain))
        && holds(&filters.auth, &agent.auth)
        && holds(&filters.input_mode, &agent.input_modes)
        && holds(&filters.output_mode, &agent.output_modes)
        && holds(&filters.label, &agent.labels)
        && holds(&filters.lifecycle, &one(&agent.lifecycle))
        && holds(&filters.liveness, &one(&agent.liveness))
        && holds(&filters.signature, &one(&agent.signature))
        && holds(&filters.unmanaged, &one(&agent.unmanaged.to_string()))
        && filters.exact.iter().all(|one| {
            property_values(agent, &one.property)
                .iter()
                .any(|value| one.values.contains(value))
        })
        && filters
            .trust_at_least
            .is_none_or(|least| agent.trust.is_some_and(|level| level >= least))
}

/// What an agent has of a property.
pub(super) fn property_values(agent: &Document, property: &Property) -> Vec<String> {
    match property {
        Property::Facet(facet) => values(agent, *facet),
        Property::Identifier => vec![agent.identifier.clone()],
        Property::Attribute(path) => {
            let held = agent.attributes.iter().filter(|(one, _)| one == path);
            held.map(|(_, value)| value.clone()).collect()
        }
    }
}

fn values(agent: &Document, facet: FacetName) -> Vec<String> {
    let trust = agent
        .trust
        .map_or("none".to_owned(), |level| format!("L{level}"));
    let mut values = match facet {
        FacetName::Tag => agent.tags.clone(),
        FacetName::Skill => agent.skill_ids.clone(),
        FacetName::Capability => agent.capabilities.clone(),
        FacetName::Binding => agent.bindings.clone(),
        FacetName::ProtocolVersion => agent.protocol_versions.clone(),
        FacetName::Provider => vec![agent.provider_key.clone()],
        FacetName::Domain => vec![agent.domain.clone()],
        FacetName::Auth => agent.auth.clone(),
        FacetName::InputMode => agent.input_modes.clone(),
        FacetName::OutputMode => agent.output_modes.clone(),
        FacetName::Label => agent.labels.clone(),
        FacetName::Trust => vec![trust],
        FacetName::Lifecycle => vec![agent.lifecycle.clone()],
        FacetName::Liveness => vec![agent.liveness.clone()],
        FacetName::Signature => vec![agent.signature.clone()],
        FacetName::Unmanaged => vec![agent.unmanaged.to_string()],
    };
    values.sort();
    values.dedup();
    values.retain(|value| !value.is_empty());
    values
}

pub(super) fn counted(agents: &[&Document], facet: FacetName) -> FacetCounts {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for value in agents.iter().flat_map(|agent| values(agent, facet)) {
        *counts.entry(value).or_default() += 1;
    }
    let mut values: Vec<(String, u64)> = counts.into_iter().collect();
    values.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    let other = values.split_off(values.len().min(FACET_VALUES));
    FacetCounts {
        values,
        other_count: other.iter().map(|(_, count)| count).sum(),
    }
}

fn check(
    index: &Index,
    agents: &BTreeMap<Uuid, Document>,
    hidden: &BTreeSet<Uuid>,
    dice: &mut Dice,
) -> usize {
    let request = random_request(dice);
    let expected: Vec<&Document> = agents
        .values()
        .filter(|agent| !hidden.contains(&agent.id) && matches(agent, &request))
        .collect();
    // What an agent's document says, and what the index says, is one.
    for agent in agents.values() {
        assert_eq!(
            request.filters.hold(agent),
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
    for facet in FacetName::ALL {
        assert_eq!(
            answer.facets[&facet],
            counted(&expected, facet),
            "{facet:?} of {request:?}"
        );
    }

    let labels = &request.visible_to;
    let prefix = dice.pick(&["t", "tr", "f", "b", "a", "na", "東"]);
    let listed: Vec<&Document> = agents
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
        let folded = |text: &str| crate::folding::fold(text).into_owned();
        let count = listed
            .iter()
            .filter(|agent| {
                let of_kind: Vec<&String> = match suggestion.kind {
                    SuggestionKind::Name => vec![&agent.name],
                    SuggestionKind::Skill => agent.skills.iter().map(|skill| &skill.name).collect(),
                    SuggestionKind::Tag => agent.tags.iter().collect(),
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
        let mut agents: BTreeMap<Uuid, Document> = (0..120)
            .map(|number| (id(number), random_agent(&mut dice, number)))
            .collect();
        let index = built(dir.path(), agents.values().cloned().collect());
        let mut hidden = BTreeSet::new();
        let mut found = 0;
        for seq in 2..8 {
            for _ in 0..25 {
                found += check(&index, &agents, &hidden, &mut dice);
            }
            // Changes arrive: hidden at once, then applied, except the last ones, which stay hidden.
            let changed: Vec<u64> = (0..10).map(|_| dice.below(140)).collect();
            let ids: Vec<Uuid> = changed.iter().map(|number| id(*number)).collect();
            index.note_forbidden(&ids, seq);
            hidden = ids.iter().copied().collect();
            found += check(&index, &agents, &hidden, &mut dice);
            if seq < 7 {
                let (deleted, upserted) = changed.split_at(3);
                let upserts: Vec<Document> = upserted
                    .iter()
                    .map(|number| random_agent(&mut dice, *number))
                    .collect();
                let deletes: Vec<Uuid> = deleted.iter().map(|number| id(*number)).collect();
                for id in &deletes {
                    agents.remove(id);
                }
                agents.extend(upserts.iter().map(|agent| (agent.id, agent.clone())));
                index.apply(upserts, &deletes, seq).unwrap();
                hidden.clear();
            }
        }
        assert!(found > 500, "the requests have to find something: {found}");
    }
}

/// All methods of facet counting: all or some segments as sets, with all or a few values precomputed, with and without
/// memory for sets, and given up at once or on the way; and all match by match, with and without large segments.
pub(super) fn facet_limits() -> [FacetLimits; 8] {
    let by_sets = FacetLimits {
        least_agents: 1,
        nanos: u64::MAX,
        ..FacetLimits::default()
    };
    [
        by_sets,
        FacetLimits {
            values: 60,
            memory: 0,
            ..by_sets
        },
        FacetLimits {
            values: 700,
            holders: 500,
            memory: 4_096,
            ..by_sets
        },
        FacetLimits {
            least_agents: 1_500,
            values: 300,
            ..by_sets
        },
        FacetLimits {
            values: 0,
            ..by_sets
        },
        FacetLimits {
            nanos: 0,
            ..by_sets
        },
        FacetLimits {
            nanos: 1,
            values: 100,
            ..by_sets
        },
        FacetLimits {
            least_agents: u32::MAX,
            ..by_sets
        },
    ]
}

/// Counts all facets over the matches of a search, by the method that these limits choose.
pub(super) fn counts_by(
    index: &Index,
    compiled: &CompiledQuery,
    limits: FacetLimits,
) -> BTreeMap<FacetName, FacetCounts> {
    let CompiledQuery {
        searcher, query, ..
    } = compiled;
    let frequent = FrequentValues::of(searcher, &index.0.fields, limits, None).unwrap();
    let page = PageCollector {
        order: Order::Updated,
        top: 0,
        after: None,
        facets: Facets::new(FacetName::ALL.to_vec(), frequent),
        apart: None,
        groups: None,
    };
    let matches = searcher.search(&**query, &page).unwrap().matches;
    assert!(matches.len() > 1);
    let counts = page.facets.counts(searcher, &index.0.fields, matches);
    counts.unwrap()
}

/// Large enough for shared sets, candidate-driven queries, and facets whose most frequent values do not suffice.
#[test]
fn large_segments_equal_a_naive_scan() {
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(99);
    let mut agents: BTreeMap<Uuid, Document> = BTreeMap::new();
    for number in 0..6_000 {
        let mut agent = random_agent(&mut dice, number);
        // Far more values than are shown, with nearly equal counts in every segment.
        agent.tags.push(format!("tag{}", dice.below(700)));
        // And as many values that only one agent has.
        agent
            .skill_ids
            .push(format!("skill{}", number * 7_919 % 6_000));
        if dice.below(200) == 0 {
            agent.labels = vec!["team=a".to_owned()];
        } else {
            agent.labels.clear();
        }
        agents.insert(agent.id, agent);
    }
    let all: Vec<Document> = agents.values().cloned().collect();
    let index = built(dir.path(), all[..5_000].to_vec());
    index.apply(all[5_000..].to_vec(), &[], 2).unwrap();
    let gone: Vec<Uuid> = all.iter().step_by(17).map(|agent| agent.id).collect();
    for id in &gone {
        agents.remove(id);
    }
    index.apply(Vec::new(), &gone, 3).unwrap();
    let hidden: BTreeSet<Uuid> = agents.keys().step_by(13).copied().collect();
    index.note_forbidden(&hidden.iter().copied().collect::<Vec<_>>(), 4);
    for _ in 0..40 {
        let mut request = random_request(&mut dice);
        if dice.below(3) == 0 {
            request.filters = Filters {
                label: vec!["team=a".to_owned()],
                ..Filters::default()
            };
        }
        request.visible_to = public();
        request.class = public();
        let expected: Vec<&Document> = agents
            .values()
            .filter(|agent| !hidden.contains(&agent.id) && matches(agent, &request))
            .collect();
        let answer = index.search(&request).unwrap();
        assert_eq!(answer.total, expected.len() as u64, "{request:?}");
        for facet in FacetName::ALL {
            assert_eq!(
                answer.facets[&facet],
                counted(&expected, facet),
                "{facet:?} of {request:?}"
            );
        }
        let compiled = index.compiled_query(&request).unwrap();
        for limits in facet_limits() {
            let counts = counts_by(&index, &compiled, limits);
            for facet in FacetName::ALL {
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
                .filter_map(|hit| hit.score)
                .collect();
            let bare: Vec<f32> = best.iter().map(|(score, _)| *score).collect();
            assert_eq!(scores.len(), bare.len());
            for (score, bare) in scores.iter().zip(&bare) {
                // Rescoring only adds to a score.
                assert!(*score >= bare * (1.0 - 1e-4), "{scores:?} {bare:?}");
            }
            assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
        }
    }
}
