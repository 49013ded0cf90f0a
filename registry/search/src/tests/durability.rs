//! Durability: opening, commits, crashes and rebuilds of the index.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::commits::MAX_UNCOMMITTED_EVENTS;
use crate::index_manifest::MANIFEST_FILE;
use crate::small_commit::MAX_SMALL_COMMIT;

fn reopen(dir: &Path) -> (Index, IndexOpenResult) {
    Index::open(dir, config()).unwrap()
}

fn reason(opened: &IndexOpenResult) -> &str {
    match opened {
        IndexOpenResult::NeedsRebuild { reason } => reason,
        IndexOpenResult::Ready { .. } => panic!("the index opened"),
    }
}

fn generation_folder(dir: &Path) -> PathBuf {
    let mut folders: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    assert_eq!(folders.len(), 1, "one generation: {folders:?}");
    folders.remove(0)
}

#[test]
fn a_missing_index_asks_for_a_rebuild_and_answers_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (index, opened) = reopen(dir.path());
    assert_eq!(reason(&opened), "there is no index yet");
    assert!(index.search(&all()).unwrap_err().needs_rebuild());
    assert!(
        index
            .suggest("a", &public(), 5)
            .unwrap_err()
            .needs_rebuild()
    );
    assert!(
        index
            .lookup_agents_by_key("url:x", &public(), 5)
            .unwrap_err()
            .needs_rebuild()
    );
    assert!(
        index
            .apply_changes(vec![agent(1, "A")], &[], 1)
            .unwrap_err()
            .needs_rebuild()
    );
    assert_eq!((index.applied_seq(), index.num_agents()), (0, 0));
}

#[test]
fn upsert_delete_and_replay() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![agent(1, "One"), agent(2, "Two")]);
    let first = index.generation();
    for _ in 0..2 {
        index
            .apply_changes(
                vec![agent(3, "Old"), agent(3, "Three"), agent(1, "Uno")],
                &[id(2), id(9)],
                5,
            )
            .unwrap();
        let mut request = all();
        request.sort = SortOrder::Name;
        assert_eq!(names(&index, &request), [id(3), id(1)]);
        assert_eq!((index.applied_seq(), index.num_agents()), (5, 2));
    }
    assert!(index.generation() > first);
    assert_eq!(index.search(&text("old one")).unwrap().total, 0);
    // An id in both lists is kept, and an older event does not set the index back.
    index
        .apply_changes(vec![agent(2, "Two")], &[id(2)], 4)
        .unwrap();
    assert_eq!(index.search(&all()).unwrap().total, 3);
    assert_eq!(index.applied_seq(), 5);
}

/// Commits of few and of many agents: the later of two documents counts, an id in both lists is kept, and an agent
/// that is replaced repeatedly while segments are merged exists once.
#[test]
fn commits_of_any_size_replace_what_was_there() {
    let tagged = |number: u64, tag: String| with(agent(number, "Agent"), Facet::Tag, &[&tag]);
    let found = |index: &Index, tag: String| {
        let filters = by(Facet::Tag, &[&tag]);
        names(index, &SearchRequest { filters, ..all() })
    };
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![agent(1, "One"), agent(2, "Two")]);
    let mut seq = 1;
    for agents in [1, MAX_SMALL_COMMIT, MAX_SMALL_COMMIT + 1, 2].repeat(6) {
        seq += 1;
        let last = u64::try_from(agents).unwrap() + 100;
        let upserts = (101..last).map(|number| tagged(number, format!("first{seq}")));
        let upserts = upserts.chain([tagged(101, format!("later{seq}"))]);
        index
            .apply_changes(upserts.collect(), &[id(2), id(101)], seq)
            .unwrap();
        let expected: Vec<Uuid> = (102..last).rev().map(id).collect();
        let first = found(&index, format!("first{seq}"));
        assert_eq!(first, expected, "{agents} documents in commit {seq}");
        assert_eq!(found(&index, format!("later{seq}")), [id(101)]);
        let total = index.search(&all()).unwrap().total;
        assert_eq!(total, index.num_agents());
    }
    // The first agent, and those of the largest commit.
    let left = 1 + MAX_SMALL_COMMIT as u64;
    assert_eq!(index.num_agents(), left);
    drop(index);
    let (index, _) = reopen(dir.path());
    assert_eq!(index.search(&all()).unwrap().total, left);
}

/// An agent deleted from an empty index can be added afterwards, also by a small commit.
#[test]
fn a_deletion_from_an_empty_index_deletes_nothing_later() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![agent(1, "One")]);
    index.apply_changes(Vec::new(), &[id(1)], 2).unwrap();
    assert_eq!(index.search(&all()).unwrap().total, 0);
    drop(index);
    let (index, _) = reopen(dir.path());
    index.apply_changes(Vec::new(), &[id(1)], 2).unwrap();
    index.apply_changes(vec![agent(1, "One")], &[], 3).unwrap();
    assert_eq!(names(&index, &all()), [id(1)]);
}

#[test]
fn reopening_goes_on_after_the_last_commit() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![agent(1, "One")]);
    index.apply_changes(vec![agent(2, "Two")], &[], 7).unwrap();
    // State after a crash: documents that were written and never committed.
    {
        let mut live = lock_ignoring_poison(&index.0.writer_state);
        let state = live.as_mut().unwrap();
        let writer = state.writer.take().unwrap();
        index_folder::replace_agents(&writer, &index.0.fields, vec![agent(3, "Three")], &[id(1)])
            .unwrap();
        drop(writer);
    }
    drop(index);
    let (index, opened) = reopen(dir.path());
    assert_eq!(opened, IndexOpenResult::Ready { applied_seq: 7 });
    assert_eq!(names(&index, &all()), [id(2), id(1)]);
    index
        .apply_changes(vec![agent(3, "Three")], &[], 8)
        .unwrap();
    assert_eq!(names(&index, &all()), [id(3), id(2), id(1)]);
}

/// Events without changed agents are applied at once, and committed with the next change, when there are many, or at
/// the end.
#[test]
fn events_without_agents_cost_no_commit_each() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = built(dir.path(), vec![agent(1, "One")]);
    let first = index.generation();
    index.record_hidden_agents(&[id(1)], 8);
    index.apply_changes(Vec::new(), &[], 7).unwrap();
    assert_eq!((index.applied_seq(), index.overlay_len()), (7, 1));
    index.apply_changes(Vec::new(), &[], 9).unwrap();
    assert_eq!((index.applied_seq(), index.overlay_len()), (9, 0));
    assert_eq!(index.generation(), first);
    // Reopen as after a kill.
    let opened = |dir: &Path| reopen(dir).1;
    drop(index);
    assert_eq!(
        opened(dir.path()),
        IndexOpenResult::Ready { applied_seq: 1 }
    );

    index = reopen(dir.path()).0;
    index.apply_changes(Vec::new(), &[], 9).unwrap();
    index.apply_changes(vec![agent(2, "Two")], &[], 10).unwrap();
    index.apply_changes(Vec::new(), &[], 11).unwrap();
    drop(index);
    assert_eq!(
        opened(dir.path()),
        IndexOpenResult::Ready { applied_seq: 10 }
    );

    index = reopen(dir.path()).0;
    let many = 10 + MAX_UNCOMMITTED_EVENTS;
    index.apply_changes(Vec::new(), &[], many).unwrap();
    drop(index);
    assert_eq!(
        opened(dir.path()),
        IndexOpenResult::Ready { applied_seq: many }
    );

    index = reopen(dir.path()).0;
    index.apply_changes(Vec::new(), &[], many + 1).unwrap();
    index.commit_applied_seq().unwrap();
    drop(index);
    let last = many + 1;
    assert_eq!(
        opened(dir.path()),
        IndexOpenResult::Ready { applied_seq: last }
    );
}

#[test]
fn another_schema_is_kept_until_the_rebuild_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    drop(built(dir.path(), vec![agent(1, "One")]));
    let stamp = dir.path().join(MANIFEST_FILE);
    let older = fs::read_to_string(&stamp).unwrap().replace(
        &format!("\"schema\":{SCHEMA_VERSION}"),
        &format!("\"schema\":{}", SCHEMA_VERSION + 1),
    );
    fs::write(&stamp, older).unwrap();
    let old = generation_folder(dir.path());

    let (index, opened) = reopen(dir.path());
    assert!(reason(&opened).contains("schema"), "{opened:?}");
    let mut rebuild = index.begin_rebuild().unwrap();
    rebuild.add_agents(vec![agent(2, "Two")]).unwrap();
    assert!(old.exists());
    rebuild.finish(3).unwrap();
    assert_eq!(names(&index, &all()), [id(2)]);
    drop(index);
    // The old folder is removed at the next start at the latest.
    let (_, opened) = reopen(dir.path());
    assert_eq!(opened, IndexOpenResult::Ready { applied_seq: 3 });
    assert_ne!(generation_folder(dir.path()), old);
}

#[test]
fn damage_asks_for_a_rebuild() {
    type Harm = fn(&Path, &Path);
    let harms: [Harm; 6] = [
        |dir, _| fs::write(dir.join(MANIFEST_FILE), "{").unwrap(),
        |dir, _| {
            fs::write(
                dir.join(MANIFEST_FILE),
                r#"{"schema":1,"tokenizer":1,"folder":"../elsewhere"}"#,
            )
            .unwrap()
        },
        |_, folder| fs::write(folder.join("meta.json"), "nonsense").unwrap(),
        |_, folder| fs::remove_file(folder.join("meta.json")).unwrap(),
        |_, folder| fs::remove_dir_all(folder).unwrap(),
        |_, folder| {
            for file in fs::read_dir(folder).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|ending| ending == "fast") {
                    fs::write(path, "short").unwrap();
                }
            }
        },
    ];
    for harm in harms {
        let dir = tempfile::tempdir().unwrap();
        drop(built(dir.path(), vec![agent(1, "One")]));
        harm(dir.path(), &generation_folder(dir.path()));
        let (index, opened) = reopen(dir.path());
        assert!(!reason(&opened).is_empty());
        let mut rebuild = index.begin_rebuild().unwrap();
        rebuild.add_agents(vec![agent(2, "Two")]).unwrap();
        rebuild.finish(2).unwrap();
        assert_eq!(names(&index, &all()), [id(2)]);
    }
}

#[test]
fn a_folder_deleted_under_way_is_told_and_mended() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("index");
    let index = built(&home, vec![agent(1, "One")]);
    index.apply_changes(vec![agent(2, "Two")], &[], 2).unwrap();
    fs::remove_dir_all(&home).unwrap();
    for _ in 0..2 {
        let error = index
            .apply_changes(vec![agent(3, "Three")], &[], 3)
            .unwrap_err();
        assert!(error.needs_rebuild(), "{error}");
    }
    assert_eq!(index.applied_seq(), 2);
    let mut rebuild = index.begin_rebuild().unwrap();
    rebuild
        .add_agents(vec![agent(1, "One"), agent(3, "Three")])
        .unwrap();
    rebuild.finish(3).unwrap();
    index.apply_changes(vec![agent(4, "Four")], &[], 4).unwrap();
    assert_eq!(names(&index, &all()), [id(4), id(3), id(1)]);
}

#[test]
fn a_rebuild_given_up_leaves_the_old_index() {
    let dir = tempfile::tempdir().unwrap();
    let index = built(dir.path(), vec![agent(1, "One")]);
    let mut rebuild = index.begin_rebuild().unwrap();
    assert!(matches!(
        index.begin_rebuild(),
        Err(IndexError::RebuildRunning)
    ));
    rebuild.add_agents(vec![agent(2, "Two")]).unwrap();
    index
        .apply_changes(vec![agent(3, "Three")], &[], 2)
        .unwrap();
    drop(rebuild);
    generation_folder(dir.path());
    assert_eq!(names(&index, &all()), [id(3), id(1)]);
    drop(index.begin_rebuild().unwrap());

    // A crash during the rebuild leaves the half-built folder too; the next start removes it.
    let rebuild = index.begin_rebuild().unwrap();
    std::mem::forget(rebuild);
    drop(index);
    let (index, opened) = reopen(dir.path());
    assert_eq!(opened, IndexOpenResult::Ready { applied_seq: 2 });
    generation_folder(dir.path());
    assert_eq!(names(&index, &all()), [id(3), id(1)]);
}

#[test]
fn searches_go_on_through_rebuilds() {
    let dir = tempfile::tempdir().unwrap();
    let agents = || {
        (1..=200)
            .map(|number| agent(number, "Flight booker"))
            .collect::<Vec<_>>()
    };
    let index = built(dir.path(), agents());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let searchers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut searched = 0_u64;
                    while !done.load(Ordering::Acquire) || searched == 0 {
                        let answer = index.search(&text("flight")).unwrap();
                        assert_eq!((answer.total, answer.hits.len()), (200, 100));
                        searched += 1;
                    }
                })
            })
            .collect();
        for seq in 2..5 {
            let mut rebuild = index.begin_rebuild().unwrap();
            rebuild.add_agents(agents()).unwrap();
            rebuild.finish(seq).unwrap();
            index
                .apply_changes(vec![agent(1, "Flight booker")], &[], seq)
                .unwrap();
        }
        done.store(true, Ordering::Release);
        for searcher in searchers {
            searcher.join().unwrap();
        }
    });
    assert_eq!(index.applied_seq(), 4);
    generation_folder(dir.path());
}

/// Many deletions at once remove exactly these agents, from the large segment and from small ones; an agent replaced
/// in the same commit stays.
#[test]
fn many_deletions_at_once_take_out_exactly_these() {
    let dir = tempfile::tempdir().unwrap();
    let many = |from, to| (from..=to).map(|number| agent(number, "Many")).collect();
    let index = built(dir.path(), many(1, 1_500));
    index.apply_changes(many(1_501, 1_600), &[], 2).unwrap();
    let leaves = |number: &u64| *number <= 1_550 && !number.is_multiple_of(3);
    let unknown = id(9_999);
    let deletes: Vec<Uuid> = (1..=1_600)
        .filter(leaves)
        .map(id)
        .chain([unknown])
        .collect();
    assert!(deletes.len() > 1_000, "{}", deletes.len());
    index
        .apply_changes(vec![agent(1, "Back")], &deletes, 3)
        .unwrap();

    let left: Vec<u64> = (1..=1_600)
        .filter(|number| *number == 1 || !leaves(number))
        .collect();
    assert_eq!(index.num_agents(), left.len() as u64);
    assert_eq!(index.search(&all()).unwrap().total, left.len() as u64);
    assert_eq!(names(&index, &text("back")), [id(1)]);
    let request = SearchRequest {
        limit: MAX_HITS,
        ..all()
    };
    let mut found = names(&index, &request);
    found.sort_unstable();
    let mut expected: Vec<Uuid> = left.into_iter().map(id).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}
