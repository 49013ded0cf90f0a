//! Weak hits: what does not fit comes last, and is counted apart.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::vectors::{AgentVectors, VectorChange, VectorStore};

const QUESTION: &str = "find me an agent that can book a flight";

/// Agents that only share common words with [`QUESTION`].
fn keepers(numbers: std::ops::Range<u64>) -> Vec<AgentDocument> {
    numbers
        .map(|number| {
            let keeper = agent(number, "Agent for book keeping");
            with(keeper, Facet::Tag, &["office"])
        })
        .collect()
}

fn kinds(answer: &IndexSearchResponse) -> Vec<HintKind> {
    answer.hints.iter().map(|hint| hint.kind).collect()
}

/// All hits of a search page by page, and whether each is weak.
fn paged(index: &Index, request: &SearchRequest, size: usize) -> Vec<(Uuid, bool)> {
    let mut request = SearchRequest {
        limit: size,
        ..request.clone()
    };
    let mut found = Vec::new();
    loop {
        let answer = index.search(&request).unwrap();
        found.extend(answer.hits.iter().map(|hit| (hit.id, hit.weak)));
        match answer.hits.last().filter(|_| answer.has_more) {
            Some(last) => request.after = Some(last.position.clone()),
            None => return found,
        }
    }
}

#[test]
fn a_hit_with_nothing_but_common_words_of_a_question_is_weak_and_counts() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), keepers(0..30));
    let mut request = text(QUESTION);
    request.facets = vec![Facet::Tag];
    let answer = index.search(&request).unwrap();
    assert_eq!((answer.total, answer.total_fitting), (30, 0));
    assert_eq!(answer.hits.len(), 30);
    assert!(answer.hits.iter().all(|hit| hit.weak));
    assert_eq!(answer.facets[&Facet::Tag].values, [("office".into(), 30)]);
    assert_eq!(kinds(&answer), [HintKind::OnlyWeak]);
    request.only_fitting = true;
    let answer = index.search(&request).unwrap();
    assert_eq!((answer.total, answer.total_fitting), (30, 0));
    assert!(answer.hits.is_empty() && !answer.has_more);
    assert!(answer.facets[&Facet::Tag].values.is_empty());
    assert_eq!(kinds(&answer), [HintKind::OnlyWeak]);
    request.only_fitting = false;

    index
        .apply_changes(vec![agent(70, "Flight desk")], &[], 2)
        .unwrap();
    let answer = index.search(&request).unwrap();
    assert_eq!((answer.total, answer.total_fitting), (31, 1));
    assert_eq!(answer.hits[0].id, id(70));
    assert!(!answer.hits[0].weak && answer.hits[1..].iter().all(|hit| hit.weak));
    assert_eq!(kinds(&answer), []);
    // In another order they keep their marks, and the hint that nothing fits.
    request.sort = SortOrder::Name;
    let answer = index.search(&request).unwrap();
    assert_eq!((answer.total, answer.total_fitting), (31, 1));
    let good = answer.hits.iter().filter(|hit| !hit.weak);
    assert_eq!(good.map(|hit| hit.id).collect::<Vec<_>>(), [id(70)]);
    assert!(answer.hits[0].weak && !answer.hits[0].position.weak);
}

#[test]
fn one_word_a_demand_and_a_filter_have_no_weak_hits() {
    let dir = tempfile::tempdir().unwrap();
    let mut agents = keepers(0..30);
    // One occurrence in a long text has a very low score.
    agents[7].description = "and so on with many more words ".repeat(400) + "journey";
    let index = built(dir.path(), agents);
    for (request, total) in [
        (text("agent"), 30),
        (text("journey"), 1),
        (text("the journey"), 1),
        (text("flight AND book OR keeping"), 30),
        (text("\"book keeping\" flight"), 30),
        (text("tag:office"), 30),
        (all(), 30),
    ] {
        let answer = index.search(&request).unwrap();
        assert_eq!(answer.total, total, "{:?}", request.text);
        assert_eq!(answer.total_fitting, total, "{:?}", request.text);
        let weak = answer.hits.iter().filter(|hit| hit.weak).count();
        assert_eq!((weak, kinds(&answer)), (0, vec![]), "{:?}", request.text);
    }
}

#[test]
fn a_typing_error_and_a_synonym_are_no_weaker_than_the_word() {
    let dir = tempfile::tempdir().unwrap();
    let mut agents = keepers(0..30);
    agents.push(agent(70, "Currency exchange"));
    let index = built(dir.path(), agents);
    for asked in ["curency exchnge", "exchange curency", "forex currency"] {
        let answer = index.search(&text(asked)).unwrap();
        assert_eq!(answer.hits[0].id, id(70), "{asked}");
        assert!(!answer.hits[0].weak, "{asked}");
    }
}

/// More hits of either kind than one pass reads.
#[test]
fn page_after_page_the_weak_ones_follow_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut agents = keepers(0..300);
    agents.extend((300..560).map(|number| agent(number, "Flight desk, book here")));
    agents.extend((560..800).map(|number| agent(number, "Poems")));
    let index = built(&dir.path().join("index"), agents);
    let vectors = Arc::new(VectorStore::create(&dir.path().join("vectors"), 4).unwrap());
    let axis = |towards: f32| vec![towards, 0.0, 0.0, 0.0];
    // Every tenth agent is close to the query, and the others are far from it.
    let changes: Vec<VectorChange> = (0..800)
        .map(|number| {
            let towards = if number % 10 == 0 { 1.0 } else { -1.0 };
            (
                id(number),
                Some((1, AgentVectors::new(&[axis(towards)]).unwrap())),
            )
        })
        .collect();
    vectors.replace_agent_vectors(&changes).unwrap();
    let meaning = |alone| SemanticQuery {
        vectors: Arc::clone(&vectors),
        query: axis(1.0).into(),
        cutoff: 0.5,
        semantic_only: alone,
    };
    for (meaning, strong, total) in [
        (None, 260, 560),
        // The close agents of the three kinds are not weak either.
        (Some(meaning(false)), 260 + 30 + 24, 560 + 24),
        (Some(meaning(true)), 80, 80),
    ] {
        let mut request = text("book a flight desk");
        request.semantic = meaning;
        request.limit = 1_000;
        let whole = index.search(&request).unwrap();
        assert_eq!(whole.total, total);
        let whole: Vec<(Uuid, bool)> = whole.hits.iter().map(|hit| (hit.id, hit.weak)).collect();
        let weak = whole.iter().position(|(_, weak)| *weak);
        assert_eq!(weak.unwrap_or(whole.len()), strong);
        request.only_fitting = true;
        let fitting = index.search(&request).unwrap();
        assert_eq!(
            (fitting.total, fitting.total_fitting),
            (total, strong as u64)
        );
        let fitting: Vec<(Uuid, bool)> =
            fitting.hits.iter().map(|hit| (hit.id, hit.weak)).collect();
        assert_eq!(fitting, whole[..strong]);
        for size in [7, 60, 250] {
            assert_eq!(paged(&index, &request, size), fitting, "{size} on a page");
        }
        request.only_fitting = false;
        assert!(whole.is_sorted_by_key(|(_, weak)| *weak));
        let different: BTreeSet<Uuid> = whole.iter().map(|(id, _)| *id).collect();
        assert_eq!(different.len() as u64, total);
        for size in [7, 60, 250] {
            assert_eq!(paged(&index, &request, size), whole, "{size} on a page");
        }
    }
}

/// The nearest twenty are visible to the caller and pass the filter: other agents, however near, take no position.
#[test]
fn agents_that_are_not_searched_take_none_of_the_nearest_places() {
    let mut found = Vec::new();
    for hidden in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let mut agents: Vec<AgentDocument> = (0..60).map(|number| agent(number, "Poems")).collect();
        if hidden {
            agents.extend((100..180).map(|number| {
                let mut agent = agent(number, "Poems");
                match number % 2 {
                    0 => agent.visible_to = vec!["internal".into()],
                    _ => agent.facets[Facet::Lifecycle] = vec!["pending".into()],
                }
                agent
            }));
        }
        let changes: Vec<VectorChange> = agents
            .iter()
            .map(|agent| {
                let number = agent.id.as_u64_pair().1 as f32;
                // The hidden agents are the nearest.
                let angle = if number < 100.0 {
                    1.3 + number / 400.0
                } else {
                    1.0
                };
                let vector = vec![f32::cos(angle), f32::sin(angle)];
                (agent.id, Some((1, AgentVectors::new(&[vector]).unwrap())))
            })
            .collect();
        let index = built(&dir.path().join("index"), agents);
        let vectors = Arc::new(VectorStore::create(&dir.path().join("vectors"), 2).unwrap());
        vectors.replace_agent_vectors(&changes).unwrap();
        let mut request = text("somebody who writes verses");
        request.facets = vec![Facet::Lifecycle];
        request.semantic = Some(SemanticQuery {
            vectors,
            query: Arc::new([1.0, 0.0]),
            cutoff: 0.5,
            semantic_only: false,
        });
        let answer = index.search(&request).unwrap();
        assert_eq!(answer.total, 20);
        assert!(answer.hits.iter().all(|hit| hit.weak));
        assert_eq!(kinds(&answer), [HintKind::OnlyWeak]);
        let hits: Vec<(Uuid, Option<f32>)> =
            answer.hits.iter().map(|hit| (hit.id, hit.score)).collect();
        found.push((hits, answer.facets[&Facet::Lifecycle].clone()));
    }
    assert_eq!(found[0], found[1]);
}
