//! Grouped duplicates against a naive scan, page by page, and with hidden agents.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::oracle::{counted, matches, random_agent, random_request};
use super::*;
use crate::vectors::{AgentVectors, VectorChange, VectorStore};

const SORTS: [SortOrder; 4] = [
    SortOrder::Relevance,
    SortOrder::Name,
    SortOrder::Updated,
    SortOrder::Newest,
];

/// Heads of all groups among these agents, each with the other members in their order.
fn folded<'a>(agents: &[&'a AgentDocument]) -> BTreeMap<Uuid, Vec<Uuid>> {
    let mut groups: BTreeMap<(u128, Uuid), Vec<&'a AgentDocument>> = BTreeMap::new();
    for agent in agents {
        let alone = match agent.duplicate_key {
            0 => agent.id,
            _ => Uuid::nil(),
        };
        groups
            .entry((agent.duplicate_key, alone))
            .or_default()
            .push(agent);
    }
    let heads = groups.into_values().map(|mut members| {
        members.sort_by_key(|one| (Reverse(one.preference), one.created_at, one.id));
        let mut ids = members.iter().map(|member| member.id);
        (ids.next().unwrap(), ids.collect())
    });
    heads.collect()
}

fn check_duplicates(hits: &[HitRow], heads: &BTreeMap<Uuid, Vec<Uuid>>, what: &SearchRequest) {
    for hit in hits {
        let others = &heads[&hit.id];
        let expected = (!others.is_empty()).then(|| DuplicateAgents {
            count: others.len() as u64,
            agents: others.iter().copied().take(MAX_DUPLICATES).collect(),
        });
        assert_eq!(hit.duplicates, expected, "{what:?}");
    }
}

/// The hits of all pages of a search, each continued at the position of the last hit.
fn by_position(index: &Index, request: &SearchRequest) -> Vec<HitRow> {
    let mut request = SearchRequest {
        limit: 7,
        ..request.clone()
    };
    let mut visited = Vec::new();
    loop {
        let answer = index.search(&request).unwrap();
        visited.extend(answer.hits);
        assert!(visited.len() <= 1_000, "{request:?} goes round in circles");
        match visited.last() {
            Some(last) if answer.has_more => request.after = Some(last.position.clone()),
            _ => return visited,
        }
    }
}

fn check(index: &Index, expected: &[&AgentDocument], request: &SearchRequest) {
    let request = SearchRequest {
        group_duplicates: true,
        ..request.clone()
    };
    let heads = folded(expected);
    let answer = index.search(&request).unwrap();
    let found: BTreeSet<Uuid> = ids(&answer).into_iter().collect();
    assert_eq!(found, heads.keys().copied().collect(), "{request:?}");
    assert_eq!(answer.hits.len(), heads.len(), "{request:?}");
    assert_eq!(answer.total, expected.len() as u64);
    assert_eq!(answer.groups, Some(heads.len() as u64));
    for &facet in Facet::ALL {
        assert_eq!(answer.facets[&facet], counted(expected, facet));
    }
    check_duplicates(&answer.hits, &heads, &request);
    let pages = by_position(index, &request);
    let order: Vec<Uuid> = pages.iter().map(|hit| hit.id).collect();
    assert_eq!(order, ids(&answer), "{request:?}");
    check_duplicates(&pages, &heads, &request);
    // Heads keep their order among all matches.
    let all = SearchRequest {
        group_duplicates: false,
        ..request.clone()
    };
    let all = index.search(&all).unwrap();
    assert_eq!(all.groups, None);
    assert!(all.hits.iter().all(|hit| hit.duplicates.is_none()));
    let mut order = ids(&all);
    order.retain(|id| heads.contains_key(id));
    assert_eq!(order, ids(&answer), "{request:?}");
}

/// Agents of which most have duplicates.
fn random_agents(dice: &mut Dice, numbers: std::ops::Range<u64>) -> Vec<AgentDocument> {
    let group = |dice: &mut Dice| match dice.below(4) {
        0 => 0,
        // Pairs of groups have the same first half of their keys.
        _ => u128::from(1 + dice.below(12)) << 64 | u128::from(dice.below(2)),
    };
    let agents = numbers.map(|number| AgentDocument {
        duplicate_key: group(dice),
        preference: u8::try_from(dice.below(3)).unwrap(),
        ..random_agent(dice, number)
    });
    agents.collect()
}

#[test]
fn folded_searches_equal_a_naive_scan() {
    let mut folds = 0;
    for seed in 1..=4 {
        let dir = tempfile::tempdir().unwrap();
        let mut dice = Dice(seed * 0x51ed_270b);
        let first = random_agents(&mut dice, 0..120);
        let mut agents: BTreeMap<Uuid, AgentDocument> =
            first.iter().map(|one| (one.id, one.clone())).collect();
        let index = built(dir.path(), first);
        let mut hidden: BTreeSet<Uuid> = BTreeSet::new();
        for seq in 2..6 {
            for _ in 0..12 {
                let mut request = random_request(&mut dice);
                request.sort = SORTS[usize::try_from(dice.below(4)).unwrap()];
                let expected: Vec<&AgentDocument> = agents
                    .values()
                    .filter(|agent| !hidden.contains(&agent.id) && matches(agent, &request))
                    .collect();
                folds += expected.len() - folded(&expected).len();
                check(&index, &expected, &request);
            }
            let begin = dice.below(140);
            let changed = random_agents(&mut dice, begin..begin + 12);
            let ids: Vec<Uuid> = changed.iter().map(|one| one.id).collect();
            index.record_hidden_agents(&ids, seq);
            hidden = ids.into_iter().collect();
            if seq % 2 == 0 {
                let (deleted, upserted) = changed.split_at(4);
                let deletes: Vec<Uuid> = deleted.iter().map(|one| one.id).collect();
                deletes.iter().for_each(|id| {
                    agents.remove(id);
                });
                agents.extend(upserted.iter().map(|one| (one.id, one.clone())));
                index
                    .apply_changes(upserted.to_vec(), &deletes, seq)
                    .unwrap();
                hidden.clear();
            }
        }
    }
    assert!(folds > 100, "the searches have to fold something: {folds}");
}

/// The same agent this many times, the first one preferred.
fn copies(count: u64) -> Vec<AgentDocument> {
    let copies = (1..=count).map(|number| AgentDocument {
        duplicate_key: 7,
        preference: u8::from(number == 1),
        description: "books flights".to_owned(),
        ..agent(number, "Flights")
    });
    copies.collect()
}

fn grouped(words: &str) -> SearchRequest {
    SearchRequest {
        group_duplicates: true,
        ..text(words)
    }
}

#[test]
fn no_more_duplicates_are_listed_than_the_bound_and_all_are_counted() {
    for (count, listed) in [(2, 1), (11, 10), (12, 10), (300, 10)] {
        let dir = tempfile::tempdir().unwrap();
        let index = built(dir.path(), copies(count));
        index.apply_changes(copies(count / 2), &[], 2).unwrap();
        let answer = index.search(&grouped("flights")).unwrap();
        assert_eq!((answer.total, answer.groups), (count, Some(1)));
        assert_eq!(ids(&answer), [id(1)]);
        let duplicates = answer.hits[0].duplicates.as_ref().unwrap();
        assert_eq!(duplicates.count, count - 1);
        let expected: Vec<Uuid> = (2..2 + listed).map(id).collect();
        assert_eq!(duplicates.agents, expected);
    }
}

#[test]
fn a_copy_does_not_take_the_place_of_the_first_by_its_words_or_its_age() {
    let dir = tempfile::tempdir().unwrap();
    let mut copy = agent(2, "Flights");
    copy.duplicate_key = 7;
    copy.description = "flights flights flights flights".to_owned();
    copy.created_at = -5;
    let mut all = copies(1);
    all.push(copy);
    let index = built(dir.path(), all);
    let best = index.search(&text("flights")).unwrap();
    assert_eq!(best.hits[0].id, id(2), "alone it is the better match");
    assert_eq!(ids(&index.search(&grouped("flights")).unwrap()), [id(1)]);
    // A query that the first agent does not match finds only the copy.
    let other = index.search(&SearchRequest {
        filters: by(Facet::Lifecycle, &["deprecated"]),
        ..grouped("flights")
    });
    assert_eq!(other.unwrap().groups, Some(0));
}

#[test]
fn hidden_duplicates_neither_count_nor_lead() {
    let dir = tempfile::tempdir().unwrap();
    let mut all = copies(4);
    for place in [0, 2] {
        all[place].visible_to = vec!["internal".to_owned()];
    }
    let index = built(dir.path(), all);
    let seen = |index: &Index| {
        let answer = index.search(&grouped("flights")).unwrap();
        let duplicates = answer.hits[0].duplicates.clone();
        (ids(&answer), answer.total, answer.groups, duplicates)
    };
    let one = |number| {
        Some(DuplicateAgents {
            count: 1,
            agents: vec![id(number)],
        })
    };
    assert_eq!(seen(&index), (vec![id(2)], 2, Some(1), one(4)));
    index.record_hidden_agents(&[id(2)], 2);
    assert_eq!(seen(&index), (vec![id(4)], 1, Some(1), None));
}

#[test]
fn a_later_page_shows_no_duplicate_that_was_hidden_since() {
    let dir = tempfile::tempdir().unwrap();
    let mut all = copies(4);
    all.push(AgentDocument {
        description: "flights flights flights flights".to_owned(),
        ..agent(9, "Flights")
    });
    let index = built(dir.path(), all);
    let mut request = SearchRequest {
        limit: 1,
        ..grouped("flights")
    };
    let first = index.search(&request).unwrap();
    assert_eq!(ids(&first), [id(9)]);
    request.after = Some(first.hits[0].position.clone());
    let leads = |index: &Index| {
        let led = index.search(&request).unwrap().hits.remove(0);
        (led.id, led.duplicates)
    };
    let others = |numbers: &[u64]| {
        Some(DuplicateAgents {
            count: numbers.len() as u64,
            agents: numbers.iter().copied().map(id).collect(),
        })
    };
    assert_eq!(leads(&index), (id(1), others(&[2, 3, 4])));
    index.record_hidden_agents(&[id(3)], 2);
    assert_eq!(leads(&index), (id(1), others(&[2, 4])));
    // The next member represents the group when the first is hidden.
    index.record_hidden_agents(&[id(1)], 3);
    assert_eq!(leads(&index), (id(2), others(&[4])));
    index.record_hidden_agents(&[id(2)], 4);
    assert_eq!(leads(&index), (id(4), None));
}

#[test]
fn nearest_neighbours_are_folded_like_other_matches() {
    const DIMENSIONS: usize = 16;
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(77);
    let agents = random_agents(&mut dice, 0..300);
    let index = built(&dir.path().join("index"), agents.clone());
    let vectors = VectorStore::create(&dir.path().join("vectors"), DIMENSIONS).unwrap();
    let vector = |dice: &mut Dice| {
        let values = (0..DIMENSIONS).map(|_| dice.below(2001) as f32 - 1000.0);
        let values: Vec<f32> = values.collect();
        let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
        values
            .into_iter()
            .map(|value| value / length)
            .collect::<Vec<f32>>()
    };
    let changes = agents.iter().map(|agent| -> VectorChange {
        let vectors = AgentVectors::new(&[vector(&mut dice)]).unwrap();
        (agent.id, Some((1, vectors)))
    });
    vectors
        .replace_agent_vectors(&changes.collect::<Vec<_>>())
        .unwrap();
    let vectors = Arc::new(vectors);
    for round in 0..40 {
        let mut request = random_request(&mut dice);
        request.text = Some("flight to a bank".to_owned());
        request.sort = SortOrder::Relevance;
        request.semantic = Some(SemanticQuery {
            vectors: Arc::clone(&vectors),
            query: vector(&mut dice).into(),
            cutoff: 0.2,
            semantic_only: round % 2 == 0,
        });
        let all = index.search(&request).unwrap();
        let expected: Vec<&AgentDocument> = agents
            .iter()
            .filter(|agent| ids(&all).contains(&agent.id))
            .collect();
        request.group_duplicates = true;
        let heads = folded(&expected);
        let answer = index.search(&request).unwrap();
        let found: BTreeSet<Uuid> = ids(&answer).into_iter().collect();
        assert_eq!(found, heads.keys().copied().collect(), "{request:?}");
        assert_eq!(answer.groups, Some(heads.len() as u64));
        check_duplicates(&answer.hits, &heads, &request);
        let pages = by_position(&index, &request);
        check_duplicates(&pages, &heads, &request);
        let order: Vec<Uuid> = pages.iter().map(|hit| hit.id).collect();
        assert_eq!(order, ids(&answer), "{request:?}");
    }
}
