//! The overlay hides changed agents everywhere, for exactly as long as necessary.

use super::*;

fn tagged(number: u64, name: &str) -> AgentDocument {
    AgentDocument {
        lookup_keys: vec!["host:example.com".to_owned()],
        ..with(agent(number, name), Facet::Tag, &["travel"])
    }
}

fn with_facet() -> SearchRequest {
    SearchRequest {
        facets: vec![Facet::Tag],
        ..all()
    }
}

#[test]
fn changed_agents_are_hidden_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![tagged(1, "Alpha"), tagged(2, "Alpine")]);
    let version = index.overlay_version();
    index.record_hidden_agents(&[id(1), id(99)], 2);
    assert!(index.overlay_version() > version);

    let answer = index.search(&with_facet()).unwrap();
    assert_eq!((ids(&answer), answer.total), (vec![id(2)], 1));
    assert_eq!(
        answer.facets[&Facet::Tag].values,
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
            .lookup_agents_by_key("host:example.com", &public(), 5)
            .unwrap()
            .len(),
        1
    );

    // A second change is recorded on top of the first, and looked up in the same searcher.
    index.record_hidden_agents(&[id(2)], 3);
    assert_eq!(index.search(&all()).unwrap().total, 0);
    index
        .apply_changes(vec![tagged(1, "Alpha")], &[], 2)
        .unwrap();
    assert_eq!(names(&index, &all()), [id(1)]);
    index
        .apply_changes(vec![tagged(2, "Alpine")], &[], 3)
        .unwrap();
    assert_eq!(
        (names(&index, &all()), index.overlay_len()),
        (vec![id(2), id(1)], 0)
    );
    // Applied changes need no hiding.
    index.record_hidden_agents(&[id(2)], 3);
    assert_eq!(
        (index.search(&all()).unwrap().total, index.overlay_len()),
        (2, 0)
    );
}

#[test]
fn an_agent_applied_in_between_stays_hidden_until_its_last_change() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), Vec::new());
    index.record_hidden_agents(&[id(1)], 2);
    index.record_hidden_agents(&[id(1)], 3);
    index
        .apply_changes(vec![tagged(1, "Alpha")], &[], 2)
        .unwrap();
    assert_eq!(index.search(&all()).unwrap().total, 0);
    index
        .apply_changes(vec![tagged(1, "Alpha")], &[], 3)
        .unwrap();
    assert_eq!(index.search(&all()).unwrap().total, 1);
}

#[test]
fn a_rebuild_that_ends_older_hides_what_changed_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![tagged(1, "Alpha"), tagged(2, "Beta")]);
    let mut rebuild = index.begin_rebuild().unwrap();
    rebuild
        .add_agents(vec![tagged(1, "Alpha"), tagged(2, "Beta")])
        .unwrap();
    // During the rebuild, agent 1 is removed and the serving index follows.
    index.record_hidden_agents(&[id(1)], 2);
    index.apply_changes(Vec::new(), &[id(1)], 2).unwrap();
    rebuild.finish(1).unwrap();
    assert_eq!(index.applied_seq(), 1);
    assert_eq!(names(&index, &all()), [id(2)]);
    index.apply_changes(Vec::new(), &[id(1)], 2).unwrap();
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
        overlay_limit: 32,
        ..config()
    };
    let (index, _) = Index::open(dir.path(), small).unwrap();
    let others: Vec<Uuid> = (2..34).map(id).collect();
    index.record_hidden_agents(&others, 4);
    assert_eq!(
        (index.overlay_len(), index.search(&all()).unwrap().total),
        (32, 1)
    );
    index.record_hidden_agents(&[id(1)], 5);
    assert_eq!(index.overlay_len(), 32);
    assert!(matches!(
        index.search(&all()),
        Err(IndexError::Behind { waiting: 32 })
    ));
    assert!(matches!(
        index.suggest("a", &public(), 1),
        Err(IndexError::Behind { .. })
    ));
    index.apply_changes(Vec::new(), &[], 4).unwrap();
    assert!(matches!(
        index.search(&all()),
        Err(IndexError::Behind { .. })
    ));
    index.apply_changes(Vec::new(), &[id(1)], 5).unwrap();
    assert_eq!(index.search(&all()).unwrap().total, 0);
}

fn changed(number: u64, visible_to: &[&str], listed: bool) -> ChangedAgent {
    ChangedAgent {
        id: id(number),
        visible_to: visible_to.iter().map(|label| (*label).to_owned()).collect(),
        listed,
    }
}

fn seen(index: &Index, labels: &[&str]) -> Vec<Uuid> {
    let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
    let answer = index.search(&SearchRequest {
        visible_to: labels.clone(),
        facets: vec![Facet::Tag],
        ..all()
    });
    let answer = answer.unwrap();
    let counted = answer.facets[&Facet::Tag].values.first();
    assert_eq!(counted.map_or(0, |(_, count)| *count), answer.total);
    let suggested = index.suggest("trav", &labels, 5).unwrap();
    assert_eq!(suggested.first().map_or(0, |one| one.count), answer.total);
    let looked_up = index
        .lookup_agents_by_key("host:example.com", &labels, 5)
        .unwrap();
    assert_eq!(looked_up.len() as u64, answer.total);
    ids(&answer)
}

#[test]
fn only_what_is_forbidden_is_hidden() {
    let dir = tempfile::tempdir().unwrap();
    let pending = AgentDocument {
        visible_to: vec!["curators".to_owned()],
        // Lookups are compared with the searches below, which exclude unlisted agents.
        lookup_keys: Vec::new(),
        ..with(tagged(3, "Gamma"), Facet::Lifecycle, &["pending"])
    };
    let index = built(
        dir.path(),
        vec![tagged(1, "Alpha"), tagged(2, "Beta"), pending],
    );
    let everybody = ["public", "internal", "curators"];
    // A label, a deprecation, another version: the agent stays visible.
    index.record_pending_changes(&[changed(1, &["public"], true)], 2);
    assert_eq!(seen(&index, &["public"]), [id(2), id(1)]);
    // Fewer callers may see it: the others no longer find it.
    index.record_pending_changes(&[changed(1, &["internal"], true)], 3);
    assert_eq!(seen(&index, &["public"]), [id(2)]);
    assert_eq!(seen(&index, &["public", "internal"]), [id(2), id(1)]);
    // More callers again, before the index has either change; the earlier change, recorded late, has no effect.
    index.record_pending_changes(&[changed(1, &["public"], true)], 5);
    index.record_pending_changes(&[changed(1, &[], false)], 4);
    assert_eq!(seen(&index, &["public"]), [id(2), id(1)]);
    // On hold: no caller finds it among the listed agents, whatever other access they have.
    index.record_pending_changes(&[changed(1, &["curators"], false)], 6);
    assert_eq!(seen(&index, &everybody), [id(2)]);
    // An agent that was never listed stays findable as before.
    let waiting = SearchRequest {
        visible_to: vec!["curators".to_owned()],
        filters: by(Facet::Lifecycle, &["pending"]),
        ..all()
    };
    index.record_pending_changes(&[changed(3, &["curators", "account:1"], false)], 7);
    assert_eq!(names(&index, &waiting), [id(3)]);
    index.record_pending_changes(&[changed(3, &["account:1"], false)], 8);
    assert!(names(&index, &waiting).is_empty());
    // The index catches up, and the overlay is empty.
    index
        .apply_changes(vec![tagged(1, "Alpha")], &[id(3)], 8)
        .unwrap();
    assert_eq!(seen(&index, &["public"]), [id(2), id(1)]);
    assert_eq!(index.overlay_len(), 0);
}

#[test]
fn what_was_hidden_comes_back_where_nothing_changed() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![agent(1, "One"), agent(2, "Two")]);
    // From now on searches of this caller share the set of visible agents.
    assert_eq!(names(&index, &all()), [id(2), id(1)]);
    index.record_hidden_agents(&[id(2)], 2);
    assert_eq!(names(&index, &all()), [id(1)]);
    let internal = SearchRequest {
        visible_to: vec!["internal".to_owned()],
        ..all()
    };
    assert!(names(&index, &internal).is_empty());
    index.apply_changes(Vec::new(), &[], 2).unwrap();
    assert_eq!(names(&index, &all()), [id(2), id(1)]);
    index.apply_changes(Vec::new(), &[id(2)], 3).unwrap();
    assert_eq!(names(&index, &all()), [id(1)]);
}
