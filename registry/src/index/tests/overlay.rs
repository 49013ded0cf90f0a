//! The overlay hides what changed, everywhere, for exactly as long as needed.

use super::*;

fn tagged(number: u64, name: &str) -> Document {
    Document {
        tags: vec!["travel".to_owned()],
        lookups: vec!["host:example.com".to_owned()],
        ..agent(number, name)
    }
}

fn with_facet() -> SearchRequest {
    SearchRequest {
        facets: vec![FacetName::Tag],
        ..all()
    }
}

#[test]
fn changed_agents_are_hidden_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![tagged(1, "Alpha"), tagged(2, "Alpine")]);
    let version = index.overlay_version();
    index.note_changed(&[id(1), id(99)], 2);
    assert!(index.overlay_version() > version);

    let answer = index.search(&with_facet()).unwrap();
    assert_eq!((ids(&answer), answer.total), (vec![id(2)], 1));
    assert_eq!(
        answer.facets[&FacetName::Tag].values,
        [("travel".to_owned(), 1)]
    );
    assert_eq!(answer.overlay_version, index.overlay_version());
    assert_eq!(index.search(&text("alpha")).unwrap().total, 0);
    let suggested = index.suggest("alp", &public(), 5).unwrap();
    assert_eq!(
        suggested
            .iter()
            .map(|one| one.text.as_str())
            .collect::<Vec<_>>(),
        ["Alpine"]
    );
    assert_eq!(index.suggest("trav", &public(), 5).unwrap()[0].count, 1);
    assert_eq!(
        index
            .lookup("host:example.com", &public(), 5)
            .unwrap()
            .len(),
        1
    );
    let fetched = index.fetch(&[id(1), id(2)].map(place), 0, &all()).unwrap();
    assert_eq!(
        fetched.iter().map(|hit| hit.id).collect::<Vec<_>>(),
        [id(2)]
    );

    // A second change is noted on top of the first, and found in the same searcher.
    index.note_changed(&[id(2)], 3);
    assert_eq!(index.search(&all()).unwrap().total, 0);
    index.apply(vec![tagged(1, "Alpha")], &[], 2).unwrap();
    assert_eq!(names(&index, &all()), [id(1)]);
    index.apply(vec![tagged(2, "Alpine")], &[], 3).unwrap();
    assert_eq!(
        (names(&index, &all()), index.overlay_len()),
        (vec![id(2), id(1)], 0)
    );
    // What is applied already needs no hiding.
    index.note_changed(&[id(2)], 3);
    assert_eq!(
        (index.search(&all()).unwrap().total, index.overlay_len()),
        (2, 0)
    );
}

#[test]
fn an_agent_applied_in_between_stays_hidden_until_its_last_change() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), Vec::new());
    index.note_changed(&[id(1)], 2);
    index.note_changed(&[id(1)], 3);
    index.apply(vec![tagged(1, "Alpha")], &[], 2).unwrap();
    assert_eq!(index.search(&all()).unwrap().total, 0);
    index.apply(vec![tagged(1, "Alpha")], &[], 3).unwrap();
    assert_eq!(index.search(&all()).unwrap().total, 1);
}

#[test]
fn a_rebuild_that_ends_older_hides_what_changed_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![tagged(1, "Alpha"), tagged(2, "Beta")]);
    let mut rebuild = index.begin_rebuild().unwrap();
    rebuild
        .add(vec![tagged(1, "Alpha"), tagged(2, "Beta")])
        .unwrap();
    // While it reads, agent 1 is taken out and the serving index follows.
    index.note_changed(&[id(1)], 2);
    index.apply(Vec::new(), &[id(1)], 2).unwrap();
    rebuild.finish(1).unwrap();
    assert_eq!(index.applied_seq(), 1);
    assert_eq!(names(&index, &all()), [id(2)]);
    index.apply(Vec::new(), &[id(1)], 2).unwrap();
    assert_eq!(
        (names(&index, &all()), index.overlay_len()),
        (vec![id(2)], 0)
    );
}

#[test]
fn beyond_its_bound_the_index_says_so_until_it_has_caught_up() {
    let dir = tempfile::tempdir().unwrap();
    drop(built(dir.path(), vec![tagged(1, "Alpha")]));
    let small = IndexConfig {
        overlay_limit: 2,
        ..config()
    };
    let (index, _) = Index::open(dir.path(), small).unwrap();
    index.note_changed(&[id(2)], 2);
    assert!(!index.overlay_full());
    index.note_changed(&[id(3)], 3);
    assert!(index.overlay_full());
    let rest: Vec<Uuid> = (4..34).map(id).collect();
    index.note_changed(&rest, 4);
    assert_eq!(
        (index.overlay_len(), index.search(&all()).unwrap().total),
        (32, 1)
    );
    index.note_changed(&[id(1)], 5);
    assert_eq!(index.overlay_len(), 32);
    assert!(matches!(
        index.search(&all()),
        Err(IndexError::Behind { waiting: 32 })
    ));
    assert!(matches!(
        index.suggest("a", &public(), 1),
        Err(IndexError::Behind { .. })
    ));
    index.apply(Vec::new(), &[], 4).unwrap();
    assert!(matches!(
        index.search(&all()),
        Err(IndexError::Behind { .. })
    ));
    index.apply(Vec::new(), &[id(1)], 5).unwrap();
    assert_eq!(index.search(&all()).unwrap().total, 0);
}
