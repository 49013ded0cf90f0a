//! Searches of a live index: agents are changed and deleted commit by commit, in many small segments.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::oracle::{counted, counts_by, facet_limits, matches, random_agent, random_request};
use super::*;
use crate::text_folding::fold_text;

/// Number of agents at the start.
const AGENTS: u64 = 900;
/// The last event; each one is a commit.
const EVENTS: i64 = 49;
/// Hits of a page.
const PAGE: usize = 40;

/// An agent with more values than a facet shows, most of them nearly equally frequent or rare.
fn living_agent(dice: &mut Dice, number: u64) -> AgentDocument {
    let mut agent = random_agent(dice, number);
    agent.facets[Facet::Tag].push(format!("tag{}", dice.below(160)));
    agent.facets[Facet::Skill].push(format!("skill{}", dice.below(2_000)));
    // Only later agents have some of the providers.
    if number >= AGENTS {
        agent.facets[Facet::Provider] = vec![format!("provider{}", number % 60)];
    }
    agent
}

/// Changes some agents, deletes others, and adds new ones.
fn change(index: &Index, agents: &mut BTreeMap<Uuid, AgentDocument>, seq: i64, dice: &mut Dice) {
    let numbers: BTreeSet<u64> = (0..=dice.below(6))
        .map(|_| dice.below(AGENTS + 300))
        .collect();
    let (mut upserts, mut deletes) = (Vec::new(), Vec::new());
    for number in numbers {
        match dice.below(4) {
            0 => deletes.push(id(number)),
            _ => upserts.push(living_agent(dice, number)),
        }
    }
    for id in &deletes {
        agents.remove(id);
    }
    agents.extend(upserts.iter().map(|agent| (agent.id, agent.clone())));
    index.apply_changes(upserts, &deletes, seq).unwrap();
}

fn some_request(dice: &mut Dice) -> SearchRequest {
    let request = random_request(dice);
    match dice.below(4) {
        0 => request,
        _ => SearchRequest {
            visible_to: public(),
            class_labels: public(),
            ..request
        },
    }
}

/// All hits, page by page, where each page reports this total.
fn page_by_page(index: &Index, request: &SearchRequest, total: usize) -> Vec<Uuid> {
    let mut request = SearchRequest {
        limit: PAGE,
        facets: Vec::new(),
        ..request.clone()
    };
    let mut visited = Vec::new();
    loop {
        let answer = index.search(&request).unwrap();
        assert_eq!(answer.total, total as u64, "{request:?}");
        visited.extend(ids(&answer));
        let last = answer.hits.last().filter(|_| answer.has_more);
        let Some(last) = last else {
            return visited;
        };
        request.after = Some(last.position.clone());
    }
}

/// The ids of these agents in a sort order that does not depend on the query.
fn sorted(agents: &[&AgentDocument], sort: SortOrder) -> Vec<Uuid> {
    let key = |agent: &&&AgentDocument| match sort {
        SortOrder::Name => (fold_text(&agent.name).into_owned(), Reverse(0), agent.id),
        SortOrder::Newest => (String::new(), Reverse(agent.created_at), agent.id),
        SortOrder::Relevance | SortOrder::Updated => {
            (String::new(), Reverse(agent.updated_at), agent.id)
        }
    };
    let mut sorted: Vec<&&AgentDocument> = agents.iter().collect();
    sorted.sort_by_key(key);
    sorted.iter().map(|agent| agent.id).collect()
}

fn check(index: &Index, agents: &BTreeMap<Uuid, AgentDocument>, dice: &mut Dice) {
    let request = some_request(dice);
    let expected: Vec<&AgentDocument> = agents
        .values()
        .filter(|agent| matches(agent, &request))
        .collect();
    let answer = index.search(&request).unwrap();
    assert_eq!(answer.total, expected.len() as u64, "{request:?}");
    let found: BTreeSet<Uuid> = ids(&answer).into_iter().collect();
    assert_eq!(found, expected.iter().map(|agent| agent.id).collect());
    let compiled = index.compile_query(&request).unwrap();
    let small_ones_apart = FacetPrecomputationLimits {
        min_agents: 200,
        nanos_per_value: u64::MAX,
        max_values: 60,
        ..FacetPrecomputationLimits::default()
    };
    for limits in facet_limits().into_iter().chain([small_ones_apart]) {
        let counts = counts_by(index, &compiled, limits);
        for &facet in Facet::ALL {
            let expected = counted(&expected, facet);
            assert_eq!(answer.facets[&facet], expected, "{facet:?} of {request:?}");
            assert_eq!(counts[&facet], expected, "{facet:?} with {limits:?}");
        }
    }
    let whole = page_by_page(index, &request, expected.len());
    assert_eq!(whole, ids(&answer), "pages of {request:?}");
    let sort = [SortOrder::Name, SortOrder::Updated, SortOrder::Newest][dice.below(3) as usize];
    let request = SearchRequest { sort, ..request };
    let whole = page_by_page(index, &request, expected.len());
    assert_eq!(whole, sorted(&expected, sort), "{request:?}");
}

/// The values of large segments are numbered by their dictionaries, and counted by their columns.
fn check_numbers(index: &Index) {
    let view = index.0.current_view().unwrap();
    for reader in view.searcher.segment_readers() {
        let Some(place) = view.precomputed_facets.large_segment_index(reader) else {
            continue;
        };
        let columns = view.precomputed_facets.segment_columns(reader);
        for &facet in Facet::ALL {
            let column = columns.facet_column(reader, facet).unwrap();
            let values = view.precomputed_facets.facet_values(facet).unwrap();
            assert_eq!(
                column.len(),
                values.segment_value_numbers(place).len(),
                "{facet:?}"
            );
        }
    }
}

fn segments(index: &Index) -> usize {
    let searcher = index.0.current_view().unwrap().searcher;
    searcher.segment_readers().len()
}

/// With changed agents in large segments, values that only small segments have, and segments of every size, counts,
/// totals and pages are those of the agents.
#[test]
fn a_living_index_equals_a_naive_scan() {
    for seed in 1..=3 {
        let folder = tempfile::tempdir().unwrap();
        let mut dice = Dice(seed * 0x2_9d35_77b1);
        let mut agents: BTreeMap<Uuid, AgentDocument> = (0..AGENTS)
            .map(|number| (id(number), living_agent(&mut dice, number)))
            .collect();
        let index = built(
            &folder.path().join("living"),
            agents.values().cloned().collect(),
        );
        let mut most_segments = 0;
        for seq in 2..=EVENTS {
            change(&index, &mut agents, seq, &mut dice);
            most_segments = most_segments.max(segments(&index));
            if seq % 6 == 1 {
                check(&index, &agents, &mut dice);
                check(&index, &agents, &mut dice);
                check_numbers(&index);
            }
        }
        assert!(most_segments >= 7, "{most_segments} segments are few");
        // After reopening it, and after rebuilding it from the same agents, the responses are the same.
        drop(index);
        let (index, _) = Index::open(&folder.path().join("living"), config()).unwrap();
        let rebuilt = built(
            &folder.path().join("rebuilt"),
            agents.into_values().collect(),
        );
        for _ in 0..20 {
            let request = some_request(&mut dice);
            let answers = [&index, &rebuilt].map(|index| index.search(&request).unwrap());
            let [one, other] = &answers;
            assert_eq!(ids(one), ids(other), "{request:?}");
            assert_eq!((one.total, &one.facets), (other.total, &other.facets));
        }
    }
}
