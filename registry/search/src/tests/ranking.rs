//! Ranking by relevance: words near each other, and the pages beyond the rescored candidates.

use std::collections::HashSet;

use super::*;
use crate::page_entry::compare_sort_positions;
use crate::rescore::RESCORED_COUNT;

/// Number of matches: far more than are rescored, in several segments, with many equal scores.
const MATCHES: u64 = 650;

fn crowd(dir: &Path) -> Index {
    let mut dice = Dice(0x51_0a2d);
    let words = ["flight", "hotel", "train", "cheap", "tokyo"];
    let mut agents = (1..=MATCHES).map(|number| AgentDocument {
        description: format!("{} flight {}", dice.words(&words, 6), dice.words(&words, 3)),
        ..agent(
            number,
            dice.pick(&["Agent", "Flight agent", "Cheap flight"]),
        )
    });
    let index = built(dir, agents.by_ref().take(300).collect());
    for seq in 2..6 {
        index
            .apply_changes(agents.by_ref().take(100).collect(), &[], seq)
            .unwrap();
    }
    index
}

#[test]
fn pages_behind_the_rescored_candidates_go_on_in_one_order() {
    let dir = tempfile::tempdir().unwrap();
    let index = crowd(dir.path());
    let mut request = SearchRequest {
        limit: 1_000,
        facets: vec![Facet::Lifecycle],
        ..text("cheap flight to tokyo")
    };
    let whole = names(&index, &request);
    assert_eq!(whole.len() as u64, MATCHES);
    // No page ends at the last rescored candidate.
    request.limit = 45;
    let mut visited = Vec::new();
    let mut positions: Vec<SortPosition> = Vec::new();
    loop {
        let answer = index.search(&request).unwrap();
        assert_eq!(answer.total, MATCHES);
        let counts = &answer.facets[&Facet::Lifecycle].values;
        assert_eq!(*counts, [("approved".to_owned(), MATCHES)]);
        visited.extend(ids(&answer));
        positions.extend(answer.hits.iter().map(|hit| hit.position.clone()));
        assert_eq!(answer.has_more, (visited.len() as u64) < MATCHES);
        if !answer.has_more {
            break;
        }
        request.after = positions.last().cloned();
    }
    assert!(visited.len() > RESCORED_COUNT);
    assert_eq!(visited, whole);
    assert_eq!(visited.iter().collect::<HashSet<_>>().len(), whole.len());
    let ordered = positions.is_sorted_by(|one, next| compare_sort_positions(one, next).is_lt());
    assert!(ordered, "{positions:?}");
}

#[test]
fn of_equally_relevant_agents_those_that_answer_come_first() {
    let dir = tempfile::tempdir().unwrap();
    let states = [
        "does_not_answer",
        "not_checked",
        "answers",
        "unclear",
        "needs_credentials",
        "not_a2a",
    ];
    let agents = states
        .iter()
        .zip(1..)
        .map(|(state, number)| with(agent(number, "Cheap flight"), Facet::Endpoint, &[*state]));
    let index = built(dir.path(), agents.collect());
    let mut request = text("cheap flight");
    let mut whole = ids(&index.search(&request).unwrap());
    let rank = |id: &Uuid| (1..=6).position(|number| *id == self::id(number)).unwrap();
    let order: Vec<&str> = whole.iter().map(|id| states[rank(id)]).collect();
    let responding = ["answers", "needs_credentials"];
    let unknown = ["not_checked", "unclear"];
    assert!(
        order[..2].iter().all(|state| responding.contains(state)),
        "{order:?}"
    );
    assert!(
        order[2..4].iter().all(|state| unknown.contains(state)),
        "{order:?}"
    );
    // Pages go on in the same order.
    request.limit = 1;
    let mut paged = Vec::new();
    while let Some(hit) = index.search(&request).unwrap().hits.pop() {
        paged.push(hit.id);
        request.after = Some(hit.position);
    }
    assert_eq!(paged, whole);
    // The order by name does not regard it.
    request.sort = SortOrder::Name;
    request.after = None;
    request.limit = 10;
    whole.sort_unstable();
    assert_eq!(ids(&index.search(&request).unwrap()), whole);
}

#[test]
fn words_near_each_other_are_worth_more_than_words_far_apart() {
    let dir = tempfile::tempdir().unwrap();
    let described = |number, description: &str| AgentDocument {
        description: description.to_owned(),
        ..agent(number, "Agent")
    };
    // All agents have the same words; with equal scores the smaller id would come first.
    let index = built(
        dir.path(),
        vec![
            described(1, "flights one two three four five six seven tokyo"),
            described(4, "flights one two tokyo three four five six seven"),
            described(7, "tokyo flights one two three four five six seven"),
            described(10, "flights tokyo one two three four five six seven"),
        ],
    );
    let request = SearchRequest {
        explain: true,
        ..text("flights tokyo")
    };
    let hits = index.search(&request).unwrap().hits;
    let found: Vec<Uuid> = hits.iter().map(|hit| hit.id).collect();
    assert_eq!(found, [10, 7, 4, 1].map(id));
    let part = |hit: &HitRow, what: &str| {
        let explanation = hit.explain.as_ref().unwrap();
        let details = explanation["details"].as_array().unwrap();
        let part = details.iter().find(|part| part["description"] == what);
        part.map_or(0.0, |part| part["value"].as_f64().unwrap())
    };
    let near: Vec<f64> = hits
        .iter()
        .map(|hit| part(hit, "words near each other"))
        .collect();
    assert!(
        near[0] == 0.0 && near[1] > near[2] && near[2] > 0.0 && near[3] == 0.0,
        "{near:?}"
    );
    assert!(part(&hits[0], "words in the order of the query") > near[1]);
    for hit in &hits {
        let whole = hit.explain.as_ref().unwrap()["value"].as_f64().unwrap();
        let score = f64::from(hit.score.unwrap());
        assert!((whole - score).abs() < 1e-3, "{whole} {score}");
    }
}

/// A synonym replaces its word in a phrase too, in every segment.
#[test]
fn a_phrase_is_worth_the_same_in_every_segment() {
    let dir = tempfile::tempdir().unwrap();
    let named = |number: u64| agent(number, "Lodging search");
    // The second segment contains no agent with the word of the query.
    let index = built(dir.path(), vec![agent(1, "Hotel"), named(4)]);
    index.apply_changes(vec![named(7)], &[], 2).unwrap();
    let hits = index.search(&text("hotel search")).unwrap().hits;
    let score = |number| {
        let hit = hits.iter().find(|hit| hit.id == id(number));
        hit.and_then(|hit| hit.score).unwrap()
    };
    assert!(
        (score(4) - score(7)).abs() < 1e-6,
        "{} {}",
        score(4),
        score(7)
    );
}
