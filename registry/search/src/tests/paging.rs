//! Sort orders and pages.

use std::collections::HashSet;

use super::*;

const SORTS: [SortOrder; 4] = [
    SortOrder::Relevance,
    SortOrder::Name,
    SortOrder::Updated,
    SortOrder::Newest,
];

/// Agents with many equal names, times and scores, in several segments, some without a usable name.
fn crowded(dir: &Path) -> (Index, HashSet<Uuid>) {
    let mut dice = Dice(7);
    let mut agents = (1..=90_u64).map(|number| {
        let name = dice.pick(&[
            "Émile flight",
            "emile Flight",
            "",
            "Zeta flight",
            "b",
            "flight flight",
        ]);
        AgentDocument {
            description: dice.words(&["flight", "hotel", "train"], 4) + " flight",
            updated_at: i64::try_from(dice.below(5)).unwrap() - 2,
            created_at: i64::try_from(dice.below(5)).unwrap(),
            ..agent(number, name)
        }
    });
    let index = built(dir, agents.by_ref().take(30).collect());
    for seq in 2..5 {
        index
            .apply_changes(agents.by_ref().take(20).collect(), &[], seq)
            .unwrap();
    }
    (index, (1..=90).map(id).collect())
}

#[test]
fn pages_visit_every_hit_once_in_every_order() {
    let dir = tempfile::tempdir().unwrap();
    let (index, expected) = crowded(dir.path());
    for words in [None, Some("flight hotel")] {
        for sort in SORTS {
            let mut request = SearchRequest {
                text: words.map(str::to_owned),
                sort,
                limit: 1_000,
                ..all()
            };
            let whole = names(&index, &request);
            assert_eq!(whole.len(), 90);
            request.limit = 7;
            let mut visited = Vec::new();
            loop {
                let answer = index.search(&request).unwrap();
                assert_eq!(answer.total, 90, "the total is that of the whole search");
                visited.extend(ids(&answer));
                assert!(
                    visited.len() <= 90,
                    "{sort:?} {words:?} goes round in circles"
                );
                let Some(last) = answer.hits.last() else {
                    break;
                };
                request.after = Some(last.position.clone());
            }
            assert_eq!(visited, whole, "{sort:?} {words:?}");
            assert_eq!(visited.into_iter().collect::<HashSet<_>>(), expected);
        }
    }
}

#[test]
fn orders_are_what_they_say() {
    let dir = tempfile::tempdir().unwrap();
    let (index, _) = crowded(dir.path());
    for sort in SORTS {
        let request = SearchRequest {
            text: Some("flight hotel".to_owned()),
            sort,
            ..all()
        };
        let hits = index.search(&request).unwrap().hits;
        assert!(
            hits.iter()
                .any(|hit| hit.position.value != hits[0].position.value)
        );
        for pair in hits.windows(2) {
            let [left, right] = [&pair[0].position, &pair[1].position];
            let placed = match (&left.value, &right.value) {
                (SortValue::Score(left), SortValue::Score(right)) => right.total_cmp(left),
                (SortValue::Time(left), SortValue::Time(right)) => right.cmp(left),
                (SortValue::Name(left), SortValue::Name(right)) => left.cmp(right),
                other => panic!("mixed values {other:?}"),
            };
            assert!(
                placed.then(left.id.cmp(&right.id)).is_lt(),
                "{sort:?}: {left:?} before {right:?}"
            );
        }
    }
}

#[test]
fn a_page_goes_on_after_a_value_that_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(
        dir.path(),
        ["a", "c", "e"]
            .iter()
            .zip(1..)
            .map(|(name, number)| agent(number, name))
            .collect(),
    );
    for (after, rest) in [("", 3), ("b", 2), ("c", 1), ("d", 1), ("f", 0), ("0", 3)] {
        let request = SearchRequest {
            sort: SortOrder::Name,
            after: Some(SortPosition {
                weak: false,
                value: SortValue::Name(after.to_owned()),
                tie_rank: 0,
                id: Uuid::max(),
            }),
            ..all()
        };
        assert_eq!(
            index.search(&request).unwrap().hits.len(),
            rest,
            "after {after:?}"
        );
    }
}

#[test]
fn a_later_page_shows_no_agent_that_was_hidden_since() {
    let dir = tempfile::tempdir().unwrap();
    let agents = (1..=30).map(|number| AgentDocument {
        description: "flight ".repeat(usize::try_from(number % 7).unwrap()),
        ..agent(number, "A flight")
    });
    let index = built(dir.path(), agents.collect());
    let mut request = text("flight");
    let order = names(&index, &request);
    request.limit = 10;
    let first = index.search(&request).unwrap();
    assert_eq!(ids(&first), order[..10]);
    request.after = first.hits.last().map(|hit| hit.position.clone());
    // The change is only in the overlay, so the scores of the other agents stay the same.
    index.record_hidden_agents(&[order[3], order[11]], 9);
    let page = index.search(&request).unwrap();
    assert_eq!(page.total, 28);
    assert_eq!(ids(&page), [&order[10..11], &order[12..21]].concat());
}

/// A change of the index changes all scores, but the next page still continues after the same agent.
#[test]
fn a_page_continues_after_the_same_agent_where_scores_have_moved() {
    let dir = tempfile::tempdir().unwrap();
    let agents = (1..=10).map(|number| agent(number, "A flight"));
    let index = built(dir.path(), agents.collect());
    let mut request = text("flight");
    let order = names(&index, &request);
    request.limit = 3;
    let first = index.search(&request).unwrap();
    assert_eq!(ids(&first), order[..3]);
    let after = first.hits[2].position.clone();
    for (seq, gone) in [(2, order[9]), (3, order[8])] {
        index.apply_changes(Vec::new(), &[gone], seq).unwrap();
    }
    request.limit = 10;
    let now = index.search(&request).unwrap().hits[2].position.clone();
    assert_ne!(now, after, "the scores have moved");
    request.after = Some(after);
    assert_eq!(ids(&index.search(&request).unwrap()), order[3..8]);
}

/// A page token contains the position as text. If a score were read back with a rounding error, the next page would
/// repeat or skip a hit.
#[test]
fn a_position_is_the_same_after_it_was_written() {
    let mut dice = Dice(11);
    let bits = (0..20_000).map(|_| u32::try_from(dice.below(1 << 32)).unwrap());
    let scores = bits.map(f32::from_bits).filter(|score| score.is_finite());
    let values = scores.map(SortValue::Score).chain([
        SortValue::Score(f32::INFINITY),
        SortValue::Name("a\u{0}\"é".to_owned()),
        SortValue::Time(i64::MIN),
    ]);
    for value in values {
        let position = SortPosition {
            weak: true,
            value,
            tie_rank: 1,
            id: id(7),
        };
        let written = serde_json::to_vec(&position).unwrap();
        let read: SortPosition = serde_json::from_slice(&written).unwrap();
        assert_eq!(read, position);
    }
}

#[test]
fn bounds_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![agent(1, "One")]);
    let bad = |change: fn(&mut SearchRequest)| {
        let mut request = all();
        change(&mut request);
        index.search(&request)
    };
    let too_many: [fn(&mut SearchRequest); 3] = [
        |request| request.limit = MAX_HITS + 1,
        |request| request.filters = by(Facet::Tag, &["x"; MAX_FILTER_VALUES + 1]),
        |request| request.visible_to = vec!["x".to_owned(); crate::MAX_LABELS + 1],
    ];
    for change in too_many {
        assert!(matches!(bad(change), Err(IndexError::TooMany { .. })));
    }
    let at_the_bound = bad(|request| {
        request.limit = MAX_HITS;
        request.filters = by(Facet::Label, &["x"; MAX_FILTER_VALUES]);
    });
    assert_eq!(at_the_bound.unwrap().total, 0);
    let foreign = bad(|request| {
        request.sort = SortOrder::Name;
        request.after = Some(SortPosition {
            weak: false,
            value: SortValue::Time(1),
            tie_rank: 0,
            id: Uuid::nil(),
        });
    });
    assert!(matches!(foreign, Err(IndexError::PositionMismatch)));
    assert!(index.suggest("o", &public(), 51).is_err());
    assert!(index.lookup_agents_by_key("x", &public(), 101).is_err());
    assert_eq!(
        index
            .search(&SearchRequest { limit: 0, ..all() })
            .unwrap()
            .total,
        1
    );
}
