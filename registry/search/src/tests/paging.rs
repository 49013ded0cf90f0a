//! Sort orders and pages.

use std::collections::HashSet;

use super::*;

const SORTS: [Sort; 4] = [Sort::Relevance, Sort::Name, Sort::Updated, Sort::Newest];

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
        Document {
            description: dice.words(&["flight", "hotel", "train"], 4) + " flight",
            updated_at: i64::try_from(dice.below(5)).unwrap() - 2,
            created_at: i64::try_from(dice.below(5)).unwrap(),
            ..agent(number, name)
        }
    });
    let index = built(dir, agents.by_ref().take(30).collect());
    for seq in 2..5 {
        index
            .apply(agents.by_ref().take(20).collect(), &[], seq)
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
            sort: Sort::Name,
            after: Some(SortPosition {
                weak: false,
                value: SortValue::Name(after.to_owned()),
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
fn a_frozen_order_is_fetched_page_by_page() {
    let dir = tempfile::tempdir().unwrap();
    let (index, _) = crowded(dir.path());
    let mut request = text("flight hotel");
    request.limit = 10;
    request.freeze = true;
    let first = index.search(&request).unwrap();
    let frozen = first.frozen.as_ref().unwrap();
    let places = frozen.places(50).unwrap();
    let order: Vec<Uuid> = places.iter().map(|place| place.id).collect();
    assert_eq!(order.len(), 50);
    assert_eq!(order[..10], ids(&first));
    let again = index.fetch(&places[..10], 0, &request).unwrap().hits;
    for (one, other) in first.hits.iter().zip(&again) {
        assert_eq!(
            (one.id, &one.hit, &one.highlights, &one.position),
            (other.id, &other.hit, &other.highlights, &other.position)
        );
    }
    // An id that is repeated, unknown or no longer allowed gives no hit.
    let [kept, hidden] = [order[10], order[11]];
    let mut narrowed = agent(999, "narrowed");
    narrowed.id = hidden;
    narrowed.visible_to = vec!["group:x".to_owned()];
    index.apply(vec![narrowed], &[], 9).unwrap();
    // Later changes leave the order as the first page had it.
    assert_eq!(frozen.places(50).unwrap(), places);
    assert!(frozen.places(MAX_ORDER).unwrap().starts_with(&places));
    assert!(frozen.places(MAX_ORDER + 1).is_err());
    let rest = index
        .fetch(&[kept, hidden, kept, id(5_000)].map(place), 0, &request)
        .unwrap()
        .hits;
    assert_eq!(rest.iter().map(|hit| hit.id).collect::<Vec<_>>(), [kept]);
    assert_eq!(
        rest[0].hit,
        index.fetch(&[place(kept)], 0, &all()).unwrap().hits[0].hit
    );
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
        |request| request.limit = MAX_LIMIT + 1,
        |request| request.filters = by(Facet::Tag, &["x"; MAX_FILTER_VALUES + 1]),
        |request| request.visible_to = vec!["x".to_owned(); crate::MAX_LABELS + 1],
    ];
    for change in too_many {
        assert!(matches!(bad(change), Err(IndexError::TooMany { .. })));
    }
    let at_the_bound = bad(|request| {
        request.limit = MAX_LIMIT;
        request.filters = by(Facet::Label, &["x"; MAX_FILTER_VALUES]);
    });
    assert_eq!(at_the_bound.unwrap().total, 0);
    let foreign = bad(|request| {
        request.sort = Sort::Name;
        request.after = Some(SortPosition {
            weak: false,
            value: SortValue::Time(1),
            id: Uuid::nil(),
        });
    });
    assert!(matches!(foreign, Err(IndexError::Position)));
    assert!(index.suggest("o", &public(), 51).is_err());
    assert!(index.lookup("x", &public(), 101).is_err());
    assert!(
        index
            .fetch(&vec![place(Uuid::nil()); 1_001], 0, &all())
            .is_err()
    );
    assert_eq!(
        index
            .search(&SearchRequest { limit: 0, ..all() })
            .unwrap()
            .total,
        1
    );
}
