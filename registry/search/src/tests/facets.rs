//! Precomputed facet values, and their reuse while they are valid.

use super::*;
use crate::facets::PrecomputedFacets;

/// Agents with tags: the first half has a tag that the other half lacks.
fn tagged(count: u64) -> Vec<AgentDocument> {
    let agents = (0..count).map(|number| {
        let half = if number < count / 2 { "early" } else { "late" };
        let own = format!("own{number:03}");
        with(agent(number, "Agent"), Facet::Tag, &["all", half, &own])
    });
    agents.collect()
}

fn frequent(index: &Index) -> Arc<PrecomputedFacets> {
    index.0.current_view().unwrap().precomputed_facets
}

fn tags(index: &Index, request: SearchRequest) -> FacetCounts {
    let request = SearchRequest {
        facets: vec![Facet::Tag],
        ..request
    };
    let mut answer = index.search(&request).unwrap();
    answer.facets.remove(&Facet::Tag).unwrap()
}

#[test]
fn what_is_known_stays_while_the_large_segments_do() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config();
    config.facets.min_agents = 50;
    let (index, _) = Index::open(dir.path(), config).unwrap();
    let mut rebuild = index.begin_rebuild().unwrap();
    rebuild.add_agents(tagged(200)).unwrap();
    rebuild.finish(1).unwrap();
    let first = frequent(&index);
    assert!(first.large_segment_count() > 0);
    // A deletion does not rewrite the segment, and a single agent does not make a large segment.
    index.apply_changes(Vec::new(), &[id(3)], 2).unwrap();
    index
        .apply_changes(vec![agent(1_000, "Agent")], &[], 3)
        .unwrap();
    assert!(Arc::ptr_eq(&first, &frequent(&index)));
    let counts = tags(&index, all());
    assert_eq!(counts.values[0], ("all".to_owned(), 199));
    assert_eq!(counts.values[1], ("late".to_owned(), 100));
    assert_eq!(counts.values[2], ("early".to_owned(), 99));
    assert_eq!(counts.values[3], ("own000".to_owned(), 1));
    assert_eq!(counts.values.len(), MAX_FACET_VALUES);
    assert_eq!(counts.other_count, 199 - (MAX_FACET_VALUES as u64 - 3));

    let rebuild = {
        let mut rebuild = index.begin_rebuild().unwrap();
        rebuild.add_agents(tagged(100)).unwrap();
        rebuild
    };
    rebuild.finish(4).unwrap();
    assert!(!Arc::ptr_eq(&first, &frequent(&index)));
    let counts = tags(&index, all());
    assert_eq!(counts.values[0], ("all".to_owned(), 100));
}

#[test]
fn what_is_known_stays_while_few_agents_are_in_other_segments() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config();
    (config.facets.min_agents, config.rebuild_threads) = (50, 1);
    let (index, _) = Index::open(dir.path(), config).unwrap();
    let mut rebuild = index.begin_rebuild().unwrap();
    rebuild.add_agents(tagged(320)).unwrap();
    rebuild.finish(1).unwrap();
    let first = frequent(&index);
    assert_eq!(first.large_segment_count(), 1);
    let new = |from: u64, count: u64| {
        let agents = (from..from + count).map(|number| agent(number, "Agent"));
        let agents = agents.map(|agent| with(agent, Facet::Tag, &["all", "new"]));
        agents.collect::<Vec<_>>()
    };
    index.apply_changes(new(1_000, 15), &[], 2).unwrap();
    assert!(Arc::ptr_eq(&first, &frequent(&index)));
    assert_eq!(tags(&index, all()).values[3], ("new".to_owned(), 15));
    index.apply_changes(new(2_000, 60), &[], 3).unwrap();
    assert!(!Arc::ptr_eq(&first, &frequent(&index)));
    assert_eq!(frequent(&index).large_segment_count(), 2);
    let counts = tags(&index, all());
    assert_eq!(counts.values[0], ("all".to_owned(), 395));
    assert_eq!(counts.values[3], ("new".to_owned(), 75));
    assert_eq!(counts.other_count, 320 - (MAX_FACET_VALUES as u64 - 4));
}

#[test]
fn an_index_that_is_opened_again_knows_as_much() {
    let dir = tempfile::tempdir().unwrap();
    let counts = tags(&built(dir.path(), tagged(60)), all());
    let (index, _) = Index::open(dir.path(), config()).unwrap();
    assert!(frequent(&index).large_segment_count() > 0);
    assert_eq!(tags(&index, all()), counts);
}

#[test]
fn fewer_values_are_known_of_many_segments() {
    let known = |segments: u64| {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config();
        (config.facets.max_values, config.facets.max_postings) = (8, 12);
        let (index, _) = Index::open(dir.path(), config).unwrap();
        index.begin_rebuild().unwrap().finish(1).unwrap();
        for segment in 0..segments {
            let agents = tagged(20).into_iter().map(|agent| AgentDocument {
                id: id(segment * 100 + agent.id.as_u64_pair().1),
                ..agent
            });
            index.apply_changes(agents.collect(), &[], 2).unwrap();
        }
        let frequent = frequent(&index);
        assert_eq!(frequent.large_segment_count() as u64, segments);
        let counts = tags(&index, all());
        assert_eq!(counts.values[0], ("all".to_owned(), segments * 20));
        assert_eq!(counts.values[3], ("own000".to_owned(), segments));
        frequent.facet_values(Facet::Tag).unwrap().ranked.len()
    };
    assert_eq!(known(1), 8);
    assert_eq!(known(2), 6);
    assert_eq!(known(3), 4);
}

#[test]
fn nothing_is_known_of_small_segments() {
    let dir = tempfile::tempdir().unwrap();
    let (index, _) = Index::open(dir.path(), IndexConfig::default()).unwrap();
    let mut rebuild = index.begin_rebuild().unwrap();
    rebuild.add_agents(tagged(60)).unwrap();
    rebuild.finish(1).unwrap();
    assert_eq!(frequent(&index).large_segment_count(), 0);
    assert_eq!(tags(&index, all()).values[0], ("all".to_owned(), 60));
}

#[test]
fn columns_are_kept_while_their_segment_is_searched() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config();
    (config.facets.min_agents, config.rebuild_threads) = (50, 1);
    let (index, _) = Index::open(dir.path(), config).unwrap();
    let mut rebuild = index.begin_rebuild().unwrap();
    rebuild.add_agents(tagged(60)).unwrap();
    rebuild.finish(1).unwrap();
    let late = |number: u64| {
        let own = format!("new{number}");
        with(agent(number, "Agent"), Facet::Tag, &["late", &own])
    };
    index.apply_changes(vec![late(1_000)], &[], 2).unwrap();
    let view = index.0.current_view().unwrap();
    let readers = view.searcher.segment_readers().iter();
    let small = readers.min_by_key(|reader| reader.max_doc()).unwrap();
    let first = Arc::downgrade(&view.precomputed_facets.segment_columns(small));
    drop(view);
    index.apply_changes(vec![late(1_001)], &[], 3).unwrap();
    for _ in 0..2 {
        let counts = tags(&index, all());
        assert_eq!(counts.values[1], ("late".to_owned(), 32));
        assert_eq!(counts.values[2], ("early".to_owned(), 30));
    }
    assert!(first.upgrade().is_some());
    // The segment is dropped when all its agents are deleted.
    index.apply_changes(Vec::new(), &[id(1_000)], 4).unwrap();
    assert!(first.upgrade().is_none());
    assert_eq!(tags(&index, all()).values[1], ("late".to_owned(), 31));
}
