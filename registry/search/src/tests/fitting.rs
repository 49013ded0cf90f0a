//! Which matches fit: totals, facets, marks and pages are those of a scan, match by match.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::oracle::{WORDS, counted, matches, random_agent};
use super::*;
use crate::agent_id_reader::AgentIdReader;
use crate::vectors::{AgentVectors, VectorChange, VectorStore};

/// All matches of a request, and those that fit by their own score and by these similarities, one after the other.
pub(super) fn scan_matches(
    index: &Index,
    request: &SearchRequest,
    similarities: &BTreeMap<Uuid, f32>,
) -> (BTreeSet<Uuid>, BTreeSet<Uuid>) {
    let compiled = index.compile_query(request).unwrap();
    let scoring = tantivy::query::EnableScoring::enabled_from_searcher(&compiled.searcher);
    let weight = compiled.query.weight(scoring).unwrap();
    let (mut matching, mut fitting) = (BTreeSet::new(), BTreeSet::new());
    for reader in compiled.searcher.segment_readers() {
        let ids = AgentIdReader::open(reader).unwrap();
        let mut scorer = weight.scorer(reader, 1.0).unwrap();
        while scorer.doc() != tantivy::TERMINATED {
            let id = ids.get(scorer.doc());
            let similarity = similarities.get(&id).copied();
            matching.insert(id);
            if compiled
                .fit
                .is_none_or(|fit| fit.fits(scorer.score(), similarity))
            {
                fitting.insert(id);
            }
            scorer.advance();
        }
    }
    (matching, fitting)
}

/// All hits, page by page.
fn paged(index: &Index, request: &SearchRequest, size: usize) -> Vec<Uuid> {
    let mut request = SearchRequest {
        limit: size,
        facets: Vec::new(),
        ..request.clone()
    };
    let mut found = Vec::new();
    loop {
        let answer = index.search(&request).unwrap();
        found.extend(ids(&answer));
        match answer.hits.last().filter(|_| answer.has_more) {
            Some(last) => request.after = Some(last.position.clone()),
            None => return found,
        }
    }
}

/// Checks a request in every order, with all matches and with those that fit. Returns their numbers.
fn check(
    index: &Index,
    agents: &BTreeMap<Uuid, AgentDocument>,
    request: &SearchRequest,
    similarities: &BTreeMap<Uuid, f32>,
) -> (usize, usize) {
    let (matching, fitting) = scan_matches(index, request, similarities);
    for sort in SortOrder::ALL {
        for only_fitting in [false, true] {
            let request = SearchRequest {
                sort,
                only_fitting,
                facets: Facet::ALL.to_vec(),
                limit: 1_000,
                ..request.clone()
            };
            let answer = index.search(&request).unwrap();
            assert_eq!(
                (answer.total, answer.total_fitting),
                (matching.len() as u64, fitting.len() as u64),
                "{request:?}"
            );
            let listed = if only_fitting { &fitting } else { &matching };
            let found: BTreeSet<Uuid> = ids(&answer).into_iter().collect();
            assert_eq!(&found, listed, "{request:?}");
            for hit in &answer.hits {
                assert_eq!(hit.weak, !fitting.contains(&hit.id), "{request:?}");
            }
            if sort == SortOrder::Relevance {
                assert!(answer.hits.is_sorted_by_key(|hit| hit.weak), "{request:?}");
            }
            let expected: Vec<&AgentDocument> = listed.iter().map(|id| &agents[id]).collect();
            for &facet in Facet::ALL {
                let counts = counted(&expected, facet);
                assert_eq!(answer.facets[&facet], counts, "{facet:?} of {request:?}");
            }
            let only_weak = answer
                .hints
                .iter()
                .any(|hint| hint.kind == HintKind::OnlyWeak);
            assert_eq!(only_weak, fitting.is_empty() && !matching.is_empty());
            assert_eq!(paged(index, &request, 37), ids(&answer), "{request:?}");
            // Counts alone are the same ones, and so is the number of groups.
            let counts = index
                .search(&SearchRequest {
                    limit: 0,
                    ..request.clone()
                })
                .unwrap();
            assert_eq!(
                (counts.total, counts.total_fitting, counts.facets),
                (answer.total, answer.total_fitting, answer.facets)
            );
            let grouped = index
                .search(&SearchRequest {
                    group_duplicates: true,
                    ..request
                })
                .unwrap();
            let keys = expected.iter().map(|agent| match agent.duplicate_key {
                0 => (0, agent.id),
                key => (key, Uuid::nil()),
            });
            let groups = keys.collect::<HashSet<_>>().len();
            assert_eq!(grouped.groups, Some(groups as u64));
            assert_eq!(grouped.hits.len(), groups);
        }
    }
    (matching.len(), fitting.len())
}

/// A text of words that many agents have and of words that none has.
fn some_text(dice: &mut Dice) -> String {
    let unknown = dice.pick(&[
        "",
        "",
        "zither",
        "zither gamelan",
        "zither gamelan theremin lute",
    ]);
    format!("{} {unknown}", dice.words(&WORDS, 4))
}

/// Agents that are changed and deleted commit by commit, so that there are many small segments with deletions.
fn living_index(dir: &Path, dice: &mut Dice) -> (Index, BTreeMap<Uuid, AgentDocument>) {
    let mut agents: BTreeMap<Uuid, AgentDocument> = (0..250)
        .map(|number| (id(number), random_agent(dice, number)))
        .collect();
    let index = built(dir, agents.values().cloned().collect());
    for seq in 2..30 {
        let deletes: Vec<Uuid> = (0..3).map(|_| id(dice.below(320))).collect();
        let upserts: Vec<AgentDocument> = (0..5)
            .map(|_| dice.below(320))
            .collect::<BTreeSet<u64>>()
            .into_iter()
            .filter(|number| !deletes.contains(&id(*number)))
            .map(|number| random_agent(dice, number))
            .collect();
        for id in &deletes {
            agents.remove(id);
        }
        agents.extend(upserts.iter().map(|agent| (agent.id, agent.clone())));
        index.apply_changes(upserts, &deletes, seq).unwrap();
    }
    let searcher = index.0.current_view().unwrap().searcher;
    // Merges run in the background, so the exact number varies.
    assert!(searcher.segment_readers().len() > 1);
    (index, agents)
}

#[test]
fn words_that_fit_equal_a_scan_of_a_living_index() {
    let (mut weak, mut fitting) = (0, 0);
    for seed in 1..=3 {
        let dir = tempfile::tempdir().unwrap();
        let mut dice = Dice(seed * 0x5bd1_e995);
        let (index, agents) = living_index(dir.path(), &mut dice);
        for _ in 0..15 {
            let request = text(&some_text(&mut dice));
            let expected = agents.values().filter(|agent| matches(agent, &request));
            let (all, fit) = check(&index, &agents, &request, &BTreeMap::new());
            assert_eq!(all, expected.count(), "{request:?}");
            fitting += fit;
            weak += all - fit;
        }
    }
    assert!(weak > 400 && fitting > 400, "{weak} {fitting}");
}

#[test]
fn words_and_meaning_that_fit_equal_a_scan_of_a_living_index() {
    const DIMENSIONS: usize = 8;
    let dir = tempfile::tempdir().unwrap();
    let mut dice = Dice(0x2_7d4e);
    let (index, agents) = living_index(&dir.path().join("index"), &mut dice);
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
    let changes: Vec<VectorChange> = agents
        .keys()
        .map(|id| {
            let vectors = AgentVectors::new(&[vector(&mut dice)]).unwrap();
            (*id, Some((1, vectors)))
        })
        .collect();
    vectors.replace_agent_vectors(&changes).unwrap();
    let vectors = Arc::new(vectors);
    let (mut weak, mut fitting) = (0, 0);
    for round in 0..30 {
        let mut request = text(&some_text(&mut dice));
        request.semantic = Some(SemanticQuery {
            vectors: Arc::clone(&vectors),
            query: vector(&mut dice).into(),
            cutoff: [0.0, 0.2, 0.6][round % 3],
            semantic_only: round % 5 == 0,
        });
        let prepared = index.0.prepare_query(&request).unwrap();
        let mut similarities = BTreeMap::new();
        if let Some(hybrid) = &prepared.hybrid {
            for reader in prepared.view.searcher.segment_readers() {
                let ids = AgentIdReader::open(reader).unwrap();
                let near = hybrid.neighbors.in_segment(reader.segment_id());
                let near = near.iter();
                similarities.extend(
                    near.map(|(document, near)| (ids.get(*document), near.combined_cosine())),
                );
            }
        }
        let (all, fit) = check(&index, &agents, &request, &similarities);
        fitting += fit;
        weak += all - fit;
    }
    assert!(weak > 300 && fitting > 300, "{weak} {fitting}");
}

/// Nobody has all words of a long sentence, and who has four telling ones is meant.
#[test]
fn of_a_long_sentence_the_most_telling_words_count() {
    let dir = tempfile::tempdir().unwrap();
    let mut agents: Vec<AgentDocument> = (10..40)
        .map(|number| agent(number, "Agent for keeping books"))
        .collect();
    agents.push(agent(1, "Penguin census Antarctica drone"));
    agents.push(agent(2, "Drone delivery"));
    let index = built(dir.path(), agents);
    let sentence = "our institute plans a penguin census in Antarctica next winter, flown by drone \
                    over remote colonies, with yearly funding";
    let answer = index.search(&text(sentence)).unwrap();
    let marks: Vec<(Uuid, bool)> = answer.hits.iter().map(|hit| (hit.id, hit.weak)).collect();
    assert_eq!(marks, [(id(1), false), (id(2), true)]);
    assert_eq!((answer.total, answer.total_fitting), (2, 1));
}

fn with_vectors(dir: &Path, agents: &[(AgentDocument, [f32; 2])]) -> (Index, Arc<VectorStore>) {
    let documents = agents.iter().map(|(agent, _)| agent.clone());
    let index = built(&dir.join("index"), documents.collect());
    let vectors = VectorStore::create(&dir.join("vectors"), 2).unwrap();
    let changes: Vec<VectorChange> = agents
        .iter()
        .map(|(agent, vector)| {
            let vectors = AgentVectors::new(&[vector.to_vec()]).unwrap();
            (agent.id, Some((1, vectors)))
        })
        .collect();
    vectors.replace_agent_vectors(&changes).unwrap();
    (index, Arc::new(vectors))
}

fn near_first_axis(query: &str, vectors: &Arc<VectorStore>) -> SearchRequest {
    SearchRequest {
        semantic: Some(SemanticQuery {
            vectors: Arc::clone(vectors),
            query: Arc::new([1.0, 0.0]),
            cutoff: 0.5,
            semantic_only: false,
        }),
        ..text(query)
    }
}

#[test]
fn a_single_word_is_ordered_by_meaning_too_and_exact_names_tags_and_ids_come_first() {
    let described = |number, name: &str, description: &str| AgentDocument {
        description: description.to_owned(),
        ..agent(number, name)
    };
    let skilled = |number, id: &str, name: &str, tag: &str| {
        let mut agent = described(
            number,
            "Helper",
            "Does many things for many people every day",
        );
        agent.skills = vec![SkillText {
            id: id.to_owned(),
            name: name.to_owned(),
            tags: vec![tag.to_owned()],
            ..SkillText::default()
        }];
        let agent = with(agent, Facet::Tag, &[&tag.to_lowercase()]);
        with(agent, Facet::Skill, &[id])
    };
    let (near, far) = ([1.0, 0.0], [0.0, 1.0]);
    let dir = tempfile::tempdir().unwrap();
    let (index, vectors) = with_vectors(
        dir.path(),
        &[
            (described(1, "Ledger", "sql sql"), far),
            (described(2, "Ledgers", "sql query"), near),
            (agent(3, "SQL"), far),
            (skilled(4, "q1", "Ask a base", "SQL"), far),
            (skilled(5, "sql", "Ask a table", "tables"), far),
            (skilled(6, "q2", "sql", "rows"), far),
        ],
    );
    let answer = index.search(&near_first_axis("sql", &vectors)).unwrap();
    let order = ids(&answer);
    let exact: BTreeSet<Uuid> = order[..4].iter().copied().collect();
    assert_eq!(exact, [3, 4, 5, 6].map(id).into());
    assert_eq!(order[4..], [id(2), id(1)]);
    assert_eq!(answer.total_fitting, 6, "any match of a single word fits");
    // Full text alone has the other order.
    let lexical = ids(&index.search(&text("sql")).unwrap());
    let place = |wanted| lexical.iter().position(|one| *one == id(wanted));
    assert!(place(1) < place(2), "{lexical:?}");
    // What is required keeps the order by words.
    let quoted = ids(&index.search(&near_first_axis("\"sql\"", &vectors)).unwrap());
    let place = |wanted| quoted.iter().position(|one| *one == id(wanted));
    assert!(place(1) < place(2), "{quoted:?}");
}

/// In the bound of compared spellings of a name.
#[test]
fn so_many_spellings_of_a_name_are_exact() {
    let dir = tempfile::tempdir().unwrap();
    let (index, vectors) = with_vectors(dir.path(), &[]);
    let vowels = ["o", "ò", "ó", "ô", "ö"];
    let spellings = vowels.map(|first| vowels.map(|second| format!("p{first}l{second}")));
    let agents = (0..20).zip(spellings.iter().flatten());
    let agents = agents.map(|(number, name)| agent(number, name));
    // One commit is one segment.
    index.apply_changes(agents.collect(), &[], 2).unwrap();
    let answer = index.search(&near_first_axis("polo", &vectors)).unwrap();
    assert_eq!(answer.total, 20);
    let scores = answer.hits.iter().filter_map(|hit| hit.score);
    assert_eq!(scores.filter(|score| *score >= 1.0).count(), 16);
}
