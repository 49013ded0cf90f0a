//! Hybrid search against a naive scan over the same documents and vectors.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::fitting::scan_matches;
use super::oracle::{counted, matches, random_agent, random_request};
use super::*;
use crate::analysis::analyze_query;
use crate::vectors::{AgentVectors, MAX_NEAREST, SlotBitSet, VectorChange, VectorStore};

const DIMENSIONS: usize = 32;

fn vector(dice: &mut Dice) -> Vec<f32> {
    let values: Vec<f32> = (0..DIMENSIONS)
        .map(|_| dice.below(2001) as f32 - 1000.0)
        .collect();
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    values.into_iter().map(|value| value / length).collect()
}

fn made(dice: &mut Dice) -> (u64, AgentVectors) {
    let vectors: Vec<Vec<f32>> = (0..=dice.below(6)).map(|_| vector(dice)).collect();
    (1, AgentVectors::new(&vectors).unwrap())
}

/// An index and the vectors of its agents; some agents have none.
struct World {
    _dir: tempfile::TempDir,
    index: Index,
    agents: BTreeMap<Uuid, AgentDocument>,
    vectors: Arc<VectorStore>,
    embedded: BTreeSet<Uuid>,
    hidden: BTreeSet<Uuid>,
}

impl World {
    fn of(agents: u64, dice: &mut Dice) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let agents: BTreeMap<Uuid, AgentDocument> = (0..agents)
            .map(|number| (id(number), random_agent(dice, number)))
            .collect();
        let index = built(
            &dir.path().join("index"),
            agents.values().cloned().collect(),
        );
        let vectors = VectorStore::create(&dir.path().join("vectors"), DIMENSIONS).unwrap();
        let mut world = Self {
            _dir: dir,
            index,
            agents,
            vectors: Arc::new(vectors),
            embedded: BTreeSet::new(),
            hidden: BTreeSet::new(),
        };
        let all: Vec<Uuid> = world.agents.keys().copied().collect();
        let some: Vec<Uuid> = all.into_iter().filter(|_| dice.below(8) > 0).collect();
        world.embed(&some, dice);
        world
    }

    fn embed(&mut self, ids: &[Uuid], dice: &mut Dice) {
        let changes: Vec<VectorChange> = ids.iter().map(|id| (*id, Some(made(dice)))).collect();
        self.vectors.replace_agent_vectors(&changes).unwrap();
        self.embedded.extend(ids);
    }

    fn meaning(&self, dice: &mut Dice, cutoff: f32, alone: bool) -> SemanticQuery {
        SemanticQuery {
            vectors: Arc::clone(&self.vectors),
            query: vector(dice).into(),
            cutoff,
            semantic_only: alone,
        }
    }

    /// Expected hits: all of them, the full-text matches, and the neighbors with their similarities.
    fn expected(
        &self,
        request: &SearchRequest,
    ) -> (Vec<&AgentDocument>, BTreeSet<Uuid>, BTreeMap<Uuid, f32>) {
        let filters = SearchRequest {
            text: None,
            ..request.clone()
        };
        let passing: Vec<&AgentDocument> = self
            .agents
            .values()
            .filter(|agent| !self.hidden.contains(&agent.id) && matches(agent, &filters))
            .collect();
        let text = request
            .text
            .as_deref()
            .map(|text| analyze_query(text).words)
            .unwrap_or_default();
        let meaning = request.semantic.as_ref().filter(|_| !text.is_empty());
        let alone = meaning.is_some_and(|meaning| meaning.semantic_only);
        let by_words = passing
            .iter()
            .filter(|agent| !alone && matches(agent, request));
        let words: BTreeSet<Uuid> = by_words.map(|agent| agent.id).collect();
        let mut near = BTreeMap::new();
        if let Some(meaning) = meaning {
            let slots = self
                .vectors
                .assign_slots(passing.iter().map(|agent| agent.id));
            let snapshot = self.vectors.snapshot();
            let mut bits = SlotBitSet::with_capacity(snapshot.slot_count());
            slots.iter().for_each(|slot| bits.insert(*slot));
            let mut nearest: Vec<(f32, Uuid)> = Vec::new();
            for one in snapshot.find_nearest(&meaning.query, &bits).unwrap() {
                let place = slots.iter().position(|slot| *slot == one.slot).unwrap();
                nearest.push((one.similarity.combined_cosine(), passing[place].id));
            }
            nearest.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
            let nearest = nearest.into_iter().enumerate();
            let kept = nearest
                .filter(|(rank, (similarity, _))| *rank < 20 || *similarity >= meaning.cutoff);
            near.extend(kept.map(|(_, (similarity, id))| (id, similarity)));
        }
        let all = passing
            .into_iter()
            .filter(|agent| words.contains(&agent.id) || near.contains_key(&agent.id));
        (all.collect(), words, near)
    }

    /// tantivy's own collectors, which use other methods of the query, find the same number.
    fn check_other_ways(&self, request: &SearchRequest, expected: usize) {
        let compiled = self.index.compile_query(request).unwrap();
        let (searcher, query) = (&compiled.searcher, &*compiled.query);
        let count = searcher.search(query, &tantivy::collector::Count).unwrap();
        assert_eq!(count, expected, "{request:?}");
        let collector = tantivy::collector::DocSetCollector;
        let found = searcher.search(query, &collector).unwrap();
        assert_eq!(found.len(), expected, "{request:?}");
        let best = tantivy::collector::TopDocs::with_limit(expected + 1).order_by_score();
        let best = searcher.search(query, &best).unwrap();
        assert_eq!(best.len(), expected, "{request:?}");
        let mut one_by_one = 0;
        let weight = tantivy::query::EnableScoring::enabled_from_searcher(searcher);
        let weight = query.weight(weight).unwrap();
        for (ordinal, reader) in (0..).zip(searcher.segment_readers()) {
            let mut scorer = weight.scorer(reader, 1.0).unwrap();
            while scorer.doc() != tantivy::TERMINATED {
                let address = tantivy::DocAddress::new(ordinal, scorer.doc());
                assert!(found.contains(&address), "{request:?}");
                let score = query.explain(searcher, address).unwrap().value();
                assert!((score - scorer.score()).abs() < 1e-3, "{request:?}");
                one_by_one += 1;
                scorer.advance();
            }
        }
        assert_eq!(one_by_one, expected, "{request:?}");
    }

    fn check(&self, request: &SearchRequest) -> usize {
        let (expected, words, near) = self.expected(request);
        let answer = self.index.search(request).unwrap();
        assert_eq!(answer.total, expected.len() as u64, "{request:?}");
        let found: BTreeSet<Uuid> = ids(&answer).into_iter().collect();
        assert_eq!(
            found,
            expected.iter().map(|agent| agent.id).collect(),
            "{request:?}"
        );
        for &facet in Facet::ALL {
            assert_eq!(
                answer.facets[&facet],
                counted(&expected, facet),
                "{facet:?} of {request:?}"
            );
        }
        for hit in &answer.hits {
            assert_eq!(hit.hit, self.agents[&hit.id].hit);
        }
        self.check_other_ways(request, expected.len());
        // Weak hits come last, and both kinds are ordered by their scores.
        let order: Vec<(bool, f32)> = answer
            .hits
            .iter()
            .filter_map(|hit| Some((hit.weak, hit.score?)))
            .collect();
        assert!(
            order.is_sorted_by(|one, next| { (one.0, -one.1) <= (next.0, -next.1) }),
            "{order:?}"
        );
        let (_, fitting) = scan_matches(&self.index, request, &near);
        assert_eq!(answer.total_fitting, fitting.len() as u64, "{request:?}");
        for hit in &answer.hits {
            assert_eq!(hit.weak, !fitting.contains(&hit.id), "{request:?}");
        }
        // Every hit is a neighbor, a full-text match, or both.
        for hit in answer
            .hits
            .iter()
            .take(MAX_EXPLAINED_HITS)
            .filter(|hit| request.explain && hit.score.is_some() && !near.is_empty())
        {
            let told = hit.explain.as_ref().unwrap().to_string();
            assert_eq!(
                told.contains("semantic score, from 0 to 1"),
                near.contains_key(&hit.id),
                "{told}"
            );
            assert_eq!(
                told.contains("text score, divided by"),
                words.contains(&hit.id),
                "{told}"
            );
        }
        // Every page size gives the same order.
        if let Some(first) = answer.hits.first().filter(|_| answer.total > 3) {
            let mut paged = vec![first.id];
            let mut request = SearchRequest {
                limit: 3,
                facets: Vec::new(),
                ..request.clone()
            };
            request.after = Some(first.position.clone());
            while let Some(last) = self.index.search(&request).unwrap().hits.last() {
                let page = self.index.search(&request).unwrap();
                assert_eq!(page.total, answer.total);
                paged.extend(ids(&page));
                request.after = Some(last.position.clone());
                assert!(paged.len() <= answer.hits.len(), "{request:?}");
            }
            assert_eq!(paged, ids(&answer), "{request:?}");
        }
        expected.len()
    }
}

#[test]
fn words_and_meaning_equal_a_naive_scan() {
    for seed in 1..=3 {
        let mut dice = Dice(seed * 0x51ed_2701);
        let mut world = World::of(130, &mut dice);
        let mut found = 0;
        for seq in 2..7 {
            for _ in 0..25 {
                let mut request = random_request(&mut dice);
                let cutoff = [-1.0, 0.0, 0.1, 0.3][dice.below(4) as usize];
                let alone = dice.below(3) == 0;
                request.semantic = Some(world.meaning(&mut dice, cutoff, alone));
                request.explain = true;
                request.sort = [
                    SortOrder::Relevance,
                    SortOrder::Relevance,
                    SortOrder::Name,
                    SortOrder::Updated,
                ][dice.below(4) as usize];
                found += world.check(&request);
            }
            // Some agents change: first their words, then their vectors, or the reverse.
            let changed: Vec<Uuid> = (0..12).map(|_| id(dice.below(150))).collect();
            world.index.record_hidden_agents(&changed, seq);
            world.hidden = changed.iter().copied().collect();
            let mut request = random_request(&mut dice);
            request.semantic = Some(world.meaning(&mut dice, 0.0, false));
            found += world.check(&request);
            let (gone, renewed) = changed.split_at(3);
            let upserts: Vec<AgentDocument> = renewed
                .iter()
                .filter(|id| !gone.contains(id))
                .map(|id| random_agent(&mut dice, id.as_u64_pair().1))
                .collect();
            for id in gone {
                world.agents.remove(id);
            }
            world
                .agents
                .extend(upserts.iter().map(|agent| (agent.id, agent.clone())));
            let ids: Vec<Uuid> = upserts.iter().map(|agent| agent.id).collect();
            if dice.below(2) == 0 {
                world.embed(&ids, &mut dice);
                world.index.apply_changes(upserts, gone, seq).unwrap();
            } else {
                world.index.apply_changes(upserts, gone, seq).unwrap();
                world.embed(&ids, &mut dice);
            }
            world.hidden.clear();
        }
        assert!(found > 500, "the requests have to find something: {found}");
    }
}

/// With more agents than one search compares by vectors, only the nearest match.
#[test]
fn of_many_agents_only_the_nearest_match() {
    let mut dice = Dice(4711);
    let world = World::of(6_000, &mut dice);
    for _ in 0..3 {
        let mut request = random_request(&mut dice);
        request.text = Some("flight banking zither".into());
        request.filters = by(Facet::Lifecycle, &["approved", "pending"]);
        request.visible_to = super::oracle::LABELS.map(str::to_owned).to_vec();
        request.limit = 1_000;
        request.semantic = Some(world.meaning(&mut dice, -1.0, true));
        assert_eq!(world.check(&request), MAX_NEAREST);
    }
}

#[test]
fn without_a_word_in_common_the_nearest_is_found_and_with_words_both_count() {
    let dir = tempfile::tempdir().unwrap();
    let agents = vec![
        agent(1, "Currency exchange"),
        agent(2, "Poems"),
        agent(3, "Money market news today"),
    ];
    let index = built(&dir.path().join("index"), agents);
    let vectors = Arc::new(VectorStore::create(&dir.path().join("vectors"), 4).unwrap());
    let axis = |place: usize| {
        (0..4)
            .map(|at| f32::from(at == place))
            .collect::<Vec<f32>>()
    };
    let of = |place| Some((1, AgentVectors::new(&[axis(place)]).unwrap()));
    vectors
        .replace_agent_vectors(&[(id(1), of(0)), (id(2), of(1)), (id(3), of(2))])
        .unwrap();
    let mut request = text("swap my money abroad today");
    request.semantic = Some(SemanticQuery {
        vectors,
        query: axis(0).into(),
        cutoff: 0.5,
        semantic_only: false,
    });
    let answer = index.search(&request).unwrap();
    // Two words of five weigh less than the semantic score, and are not enough to fit. The nearest few are found however
    // far away they are.
    assert_eq!(ids(&answer), [id(1), id(3), id(2)]);
    let weak: Vec<bool> = answer.hits.iter().map(|hit| hit.weak).collect();
    assert_eq!(weak, [false, true, true]);
    let [meaning, words] = [0, 1].map(|place| answer.hits[place].score.unwrap());
    assert!((meaning + words - 1.0).abs() < 0.01, "{meaning} {words}");
    assert!(words > 0.1 && words < 0.4, "{words}");
    // If one agent contains all words, full text has its highest weight.
    request.text = Some("the money market news of today".into());
    let answer = index.search(&request).unwrap();
    assert_eq!(ids(&answer), [id(3), id(1), id(2)]);
    assert!((answer.hits[0].score.unwrap() - 0.7).abs() < 0.01);
    let meaning = answer.hits[1].score.unwrap();
    assert!((meaning - 0.3).abs() < 1e-6, "{meaning}");
    // The same holds for two words.
    request.text = Some("money market".into());
    assert_eq!(ids(&index.search(&request).unwrap()), [id(3), id(1), id(2)]);
    // If text matches cover little of the query, agents close in meaning come first.
    request.text = Some("money abroad".into());
    assert_eq!(ids(&index.search(&request).unwrap()), [id(1), id(3), id(2)]);
    // The same holds for a query with required parts, and agents that do not match them are not hits at all.
    request.text = Some("swap my \"money market\" abroad tag:x".into());
    assert_eq!(index.search(&request).unwrap().total, 0);
    request.text = Some("swap my money abroad -exchange".into());
    assert_eq!(ids(&index.search(&request).unwrap()), [id(3), id(2)]);
    // Without words in the query the semantic part has no effect.
    request.text = None;
    assert_eq!(index.search(&request).unwrap().total, 3);
}

/// With more agents of equal full-text score than one pass reads, the pages beyond the first pass neither end early
/// nor repeat an agent.
#[test]
fn deep_pages_go_through_agents_of_equal_words() {
    let mut dice = Dice(5);
    let dir = tempfile::tempdir().unwrap();
    let agents = 1_400;
    let all: Vec<AgentDocument> = (0..agents)
        .map(|number| agent(number, "flight to somewhere"))
        .collect();
    let index = built(&dir.path().join("index"), all);
    let vectors = Arc::new(VectorStore::create(&dir.path().join("vectors"), DIMENSIONS).unwrap());
    let near: Vec<VectorChange> = (0..40)
        .map(|number| (id(number * 7), Some(made(&mut dice))))
        .collect();
    vectors.replace_agent_vectors(&near).unwrap();
    for asked in ["book flight somewhere soon", "flight"] {
        let mut request = SearchRequest {
            limit: 60,
            ..text(asked)
        };
        let query: Arc<[f32]> = vector(&mut dice).into();
        request.semantic = Some(SemanticQuery {
            vectors: Arc::clone(&vectors),
            query,
            cutoff: -1.0,
            semantic_only: false,
        });
        let mut found = Vec::new();
        loop {
            let answer = index.search(&request).unwrap();
            assert_eq!(answer.total, agents);
            found.extend(ids(&answer));
            assert_eq!(
                answer.has_more,
                (found.len() as u64) < agents,
                "after {}",
                found.len()
            );
            let Some(last) = answer.hits.last().filter(|_| answer.has_more) else {
                break;
            };
            request.after = Some(last.position.clone());
        }
        let different: BTreeSet<Uuid> = found.iter().copied().collect();
        assert_eq!(
            (found.len() as u64, different.len() as u64),
            (agents, agents),
            "{asked}"
        );
    }
}
