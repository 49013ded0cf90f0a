//! Similar agents, by words and by vectors, for callers who see different agents.

use std::sync::Arc;

use super::*;
use crate::vectors::{AgentVectors, VectorStore};

fn described(number: u64, name: &str, description: &str) -> AgentDocument {
    AgentDocument {
        description: description.to_owned(),
        hit: format!("{{\"n\":{number}}}").into_bytes(),
        ..agent(number, name)
    }
}

/// Three agents about flights, of which two are duplicates, and two about other things.
fn travel() -> Vec<AgentDocument> {
    let mut all = vec![
        described(1, "Wings", "Books flights and hotels for a journey"),
        described(
            2,
            "Journey",
            "Plans a journey with flights, hotels and trains",
        ),
        described(
            3,
            "Journey",
            "Plans a journey with flights, hotels and trains",
        ),
        described(4, "Bard", "Writes poems on request"),
        described(5, "Flyer", "Finds flights"),
    ];
    all[1].duplicate_key = 7;
    all[2].duplicate_key = 7;
    all[1].preference = 1;
    all
}

fn request(number: u64) -> SimilarRequest {
    SimilarRequest {
        id: id(number),
        visible_to: public(),
        class_labels: public(),
        limit: 5,
        vectors: None,
    }
}

fn similar(index: &Index, request: &SimilarRequest) -> Vec<Uuid> {
    let found = index.find_similar_agents(request).unwrap();
    assert_eq!(found.by_vectors, request.vectors.is_some());
    found.hits.iter().map(|hit| hit.id).collect()
}

#[test]
fn agents_that_share_telling_words_are_similar() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), travel());
    assert_eq!(similar(&index, &request(1)), [id(2), id(5)]);
    assert_eq!(similar(&index, &request(5)), [id(2), id(1)]);
    assert_eq!(similar(&index, &request(4)), [] as [Uuid; 0]);
    let first = index.find_similar_agents(&request(1)).unwrap();
    assert_eq!(first.hits[0].hit, b"{\"n\":2}");
    assert!(first.hits.iter().all(|hit| hit.score.is_some()));
    // An agent that is not in the index has no similar ones.
    assert!(
        index
            .find_similar_agents(&request(99))
            .unwrap()
            .hits
            .is_empty()
    );
    let one = SimilarRequest {
        limit: 1,
        ..request(1)
    };
    assert_eq!(similar(&index, &one), [id(2)]);
}

#[test]
fn no_more_similar_agents_are_shown_than_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    let many = (1..=60).map(|number| described(number, "Wings", "Books flights"));
    let index = built(dir.path(), many.collect());
    let asked = |limit| SimilarRequest {
        limit,
        ..request(1)
    };
    assert_eq!(
        similar(&index, &asked(MAX_SIMILAR_AGENTS)).len(),
        MAX_SIMILAR_AGENTS
    );
    let beyond = index.find_similar_agents(&asked(MAX_SIMILAR_AGENTS + 1));
    assert!(matches!(beyond, Err(IndexError::TooMany { .. })));
}

#[test]
fn duplicates_are_shown_as_such_and_not_as_similar() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), travel());
    for (own, other) in [(2, 3), (3, 2)] {
        let found = index.find_similar_agents(&request(own)).unwrap();
        let hits: Vec<Uuid> = found.hits.iter().map(|hit| hit.id).collect();
        assert_eq!(hits, [id(1), id(5)]);
        let duplicates = found.duplicates.unwrap();
        assert_eq!((duplicates.count, duplicates.agents), (1, vec![id(other)]));
    }
    assert_eq!(
        index.find_similar_agents(&request(1)).unwrap().duplicates,
        None
    );
}

#[test]
fn agents_that_the_caller_may_not_see_leave_no_trace() {
    let mut all = travel();
    for place in [2, 4] {
        all[place].visible_to = vec!["internal".to_owned()];
    }
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let with = built(dirs[0].path(), all.clone());
    all.retain(|agent| agent.visible_to == public());
    let without = built(dirs[1].path(), all);
    for number in [1, 2, 4] {
        let [with, without] = [&with, &without].map(|index| {
            let found = index.find_similar_agents(&request(number)).unwrap();
            let hits = found.hits.into_iter().map(|hit| (hit.id, hit.score));
            (hits.collect::<Vec<_>>(), found.duplicates)
        });
        assert_eq!(with, without);
        assert_eq!(with.1, None);
    }
    // Agents that were hidden since the last commit, are on hold or are gone are not shown either.
    with.record_hidden_agents(&[id(2)], 2);
    assert_eq!(similar(&with, &request(1)), [] as [Uuid; 0]);
    let mut gone = described(2, "Journey", "Plans a journey with flights");
    gone.facets[Facet::Liveness] = vec!["gone".to_owned()];
    with.apply_changes(vec![gone], &[], 3).unwrap();
    assert_eq!(similar(&with, &request(1)), [] as [Uuid; 0]);
}

/// A unit vector at this angle, in degrees.
fn at(degrees: f32) -> Vec<f32> {
    let (second, first) = degrees.to_radians().sin_cos();
    let mut vector = vec![0.0; 16];
    (vector[0], vector[1]) = (first, second);
    vector
}

#[test]
fn the_nearest_neighbours_of_the_agent_s_vector_are_similar() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(&dir.path().join("index"), travel());
    let vectors = VectorStore::create(&dir.path().join("vectors"), 16).unwrap();
    let changes: Vec<_> = [(1, 0.0), (2, 50.0), (3, 50.0), (4, 20.0)]
        .map(|(number, degrees)| {
            let made = AgentVectors::new(&[at(degrees)]).unwrap();
            (id(number), Some((1, made)))
        })
        .into();
    vectors.replace_agent_vectors(&changes).unwrap();
    let vectors = Arc::new(vectors);
    let by_meaning = |number, cutoff| SimilarRequest {
        vectors: Some((Arc::clone(&vectors), cutoff)),
        ..request(number)
    };
    assert_eq!(similar(&index, &by_meaning(1, 0.1)), [id(4), id(2)]);
    assert_eq!(similar(&index, &by_meaning(1, 0.8)), [id(4)]);
    assert_eq!(similar(&index, &by_meaning(2, 0.1)), [id(4), id(1)]);
    let score = index.find_similar_agents(&by_meaning(1, 0.1)).unwrap().hits[0].score;
    assert!((score.unwrap() - 20.0_f32.to_radians().cos()).abs() < 0.02);
    // For an agent without a vector, words decide.
    let found = index.find_similar_agents(&by_meaning(5, 0.1)).unwrap();
    assert!(!found.by_vectors);
    assert_eq!(found.hits[0].id, id(2));
}

/// An agent is visible to callers with one of its labels, listed or not, in any segment, and to no caller once it is
/// removed or hidden.
#[test]
fn an_agent_is_seen_by_those_who_find_it() {
    let dir = tempfile::tempdir().unwrap();
    let labelled = |number: u64, label: &str, lifecycle: &str| AgentDocument {
        visible_to: vec![label.to_owned()],
        ..with(agent(number, "Agent"), Facet::Lifecycle, &[lifecycle])
    };
    let first = vec![
        labelled(1, "public", "approved"),
        labelled(2, "group:x", "pending"),
        labelled(3, "public", "approved"),
    ];
    let index = built(dir.path(), first);
    let later = vec![
        labelled(4, "public", "suspended"),
        labelled(3, "group:x", "approved"),
    ];
    index.apply_changes(later, &[id(1)], 2).unwrap();
    let members = vec!["group:x".to_owned()];
    let seen = |labels: &[String]| -> Vec<u64> {
        let sees = |number: &u64| index.is_agent_visible(id(*number), labels).unwrap();
        (1..=5).filter(sees).collect()
    };
    assert_eq!(seen(&public()), [4]);
    assert_eq!(seen(&members), [2, 3]);
    assert_eq!(seen(&[]), [] as [u64; 0]);
    index.record_hidden_agents(&[id(3)], 3);
    assert_eq!(seen(&members), [2]);
}
