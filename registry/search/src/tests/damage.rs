//! Missing or damaged index files: every unreadable one is detected, and a rebuild repairs the index.

use std::collections::BTreeMap;
use std::fs;

use tantivy::directory::error::OpenReadError;

use super::oracle::random_agent;
use super::replicas::whole;
use super::*;

const ENDINGS: [&str; 7] = ["idx", "pos", "term", "store", "fast", "fieldnorm", "del"];

fn agents() -> Vec<AgentDocument> {
    let mut dice = Dice(0x0d_a8a6);
    (0..150)
        .map(|number| {
            let agent = AgentDocument {
                visible_to: public(),
                ..random_agent(&mut dice, number)
            };
            let agent = with(agent, Facet::Lifecycle, &["approved"]);
            with(agent, Facet::Liveness, &["fresh"])
        })
        .collect()
}

/// An index of two segments, one with deleted agents.
fn damageable(dir: &Path) -> Index {
    let agents = agents();
    let index = built(dir, agents[..100].to_vec());
    index
        .apply_changes(agents[100..].to_vec(), &[id(3)], 2)
        .unwrap();
    index
}

/// The files of the only index folder, by extension.
fn files(dir: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    let generation = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.is_dir())
        .unwrap();
    let mut files: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in fs::read_dir(generation).unwrap() {
        let path = file.unwrap().path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        files
            .entry(ending.unwrap_or_default().to_owned())
            .or_default()
            .push(path);
    }
    files
}

fn questions() -> Vec<SearchRequest> {
    let plain = |query: &str| SearchRequest {
        explain: true,
        facets: Facet::ALL.to_vec(),
        ..text(query)
    };
    let mut asked: Vec<SearchRequest> = [
        "flight hotel",
        "\"flight hotel\"",
        "translaet bank",
        "tra* AND bank",
        "the naïve tokyo",
    ]
    .map(plain)
    .to_vec();
    asked.push(SearchRequest {
        sort: SortOrder::Name,
        ..all()
    });
    asked
}

fn answers(index: &Index) -> Result<Vec<String>, IndexError> {
    let asked = questions();
    let answers = asked.iter().map(|request| {
        Ok(whole(
            &index.run_with_damage_retry(|index| index.search(request))?,
        ))
    });
    answers.collect()
}

/// Rebuilds the index from its known agents.
fn mend(index: &Index) {
    let mut rebuild = index.begin_rebuild().unwrap();
    rebuild
        .add_agents(
            agents()
                .into_iter()
                .filter(|agent| agent.id != id(3))
                .collect(),
        )
        .unwrap();
    rebuild.finish(2).unwrap();
    assert_eq!(index.damage(), None);
    index.check_integrity().unwrap();
    assert!(index.find_damaged_files(|| false).unwrap().is_empty());
}

#[test]
fn a_missing_file_is_noticed_under_way_and_at_the_start() {
    for ending in ENDINGS {
        let dir = tempfile::tempdir().unwrap();
        let index = damageable(dir.path());
        let expected = answers(&index).unwrap();
        index.check_integrity().unwrap();
        let file = files(dir.path())[ending].last().unwrap().clone();
        fs::remove_file(&file).unwrap();
        let error = index.check_integrity().unwrap_err();
        assert!(error.to_string().contains("missing"), "{ending}: {error}");
        assert!(index.damage().is_some(), "{ending}");
        drop(index);
        let (index, opened) = Index::open(dir.path(), config()).unwrap();
        assert!(
            matches!(opened, IndexOpenResult::NeedsRebuild { .. }),
            "{ending}"
        );
        assert!(index.is_missing());
        mend(&index);
        assert_eq!(answers(&index).unwrap(), expected, "{ending}");
    }
}

#[test]
fn what_a_rebuild_has_replaced_meanwhile_is_nobodys_damage() {
    let dir = tempfile::tempdir().unwrap();
    let index = damageable(dir.path());
    let before = index.rebuild_count();
    let failed = index.run_with_damage_retry(|index| {
        mend(index);
        Err::<(), _>(IndexError::Damaged("its files are gone".to_owned()))
    });
    assert!(failed.is_err());
    assert_eq!(index.damage(), None);
    index.record_damage("its files are gone".to_owned(), before);
    assert_eq!(index.damage(), None);
    // A report with the current number of rebuilds concerns the index in use.
    index.record_damage("its files are gone".to_owned(), index.rebuild_count());
    assert!(index.damage().is_some());
}

/// A changed file causes an error or another response, and is detected; or it changes no response at all.
#[test]
fn whatever_is_changed_in_a_file_is_noticed() {
    let mut dice = Dice(0xc044);
    let (mut failed, mut unreadable) = (0, 0);
    for round in 0..28_u64 {
        let dir = tempfile::tempdir().unwrap();
        let index = damageable(dir.path());
        let expected = answers(&index).unwrap();
        let ending = ENDINGS[usize::try_from(round).unwrap() % ENDINGS.len()];
        let all = &files(dir.path())[ending];
        let file = &all[usize::try_from(dice.below(all.len() as u64)).unwrap()];
        let mut bytes = fs::read(file).unwrap();
        let count = if round % 2 == 0 {
            1
        } else {
            bytes.len() as u64 / 2
        };
        for _ in 0..count.max(1) {
            let at = usize::try_from(dice.below(bytes.len() as u64)).unwrap();
            bytes[at] ^= 1 << dice.below(8);
        }
        let intact = fs::read(file).unwrap() == bytes;
        // A restarted process finds the file changed.
        drop(index);
        fs::write(file, &bytes).unwrap();
        let (index, opened) = Index::open(dir.path(), config()).unwrap();
        if matches!(opened, IndexOpenResult::Ready { .. }) {
            if let Err(error) = answers(&index) {
                assert!(index.damage().is_some(), "{error}");
                failed += 1;
            }
            let _ = index.check_integrity();
            let damaged = index.find_damaged_files(|| false);
            // A file that the index no longer needs may change, and so may the note of the version that wrote it: the
            // responses stay the same.
            assert!(
                intact || index.damage().is_some() || answers(&index).unwrap() == expected,
                "{ending} {round}: {damaged:?}"
            );
        } else {
            unreadable += 1;
        }
        mend(&index);
        assert_eq!(answers(&index).unwrap(), expected, "{ending} {round}");
    }
    // Segments have random names, so the changed file differs from run to run.
    assert!(failed + unreadable > 0, "{failed} {unreadable}");
}

/// The same holds for a process that has the files open: the index stays in use until it is rebuilt.
#[test]
fn what_is_changed_under_way_is_noticed() {
    for ending in ENDINGS {
        let dir = tempfile::tempdir().unwrap();
        let index = damageable(dir.path());
        let expected = answers(&index).unwrap();
        for file in &files(dir.path())[ending] {
            use std::io::{Seek as _, Write as _};
            let length = fs::metadata(file).unwrap().len();
            let mut file = fs::OpenOptions::new().write(true).open(file).unwrap();
            // Change all bytes but the footer; the length stays, because the file is mapped into memory.
            file.rewind().unwrap();
            let body = usize::try_from(length.saturating_sub(140).max(8)).unwrap();
            file.write_all(&vec![0xa5; body]).unwrap();
        }
        let _ = index.check_integrity();
        assert!(index.damage().is_some(), "{ending}");
        let _ = answers(&index);
        mend(&index);
        assert_eq!(answers(&index).unwrap(), expected, "{ending}");
    }
}

/// Temporary errors and invalid requests are not damage.
#[test]
fn what_passes_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let index = damageable(dir.path());
    let failing = std::cell::Cell::new(true);
    let answer = index.run_with_damage_retry(|index| match failing.replace(false) {
        true => Err(IndexError::Damaged("for once".to_owned())),
        false => index.search(&all()),
    });
    assert_eq!(answer.unwrap().total, 149);
    let too_many = SearchRequest {
        limit: MAX_HITS + 1,
        ..all()
    };
    assert!(
        index
            .run_with_damage_retry(|index| index.search(&too_many))
            .is_err()
    );
    assert_eq!(index.damage(), None);
    let broken: Result<(), IndexError> =
        index.run_with_damage_retry(|_| panic!("as the search library does"));
    assert!(matches!(broken, Err(IndexError::Damaged(_))));
    assert!(index.damage().is_some());
}

/// A process without file descriptors cannot commit, and cannot read files that it has not opened. A rebuild would not
/// help, and the index continues once descriptors are available.
#[test]
fn a_shortage_of_descriptors_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let index = damageable(dir.path());
    let error = |way: usize, code: i32| {
        let system = std::io::Error::from_raw_os_error(code);
        match way {
            0 => IndexError::Io {
                path: dir.path().to_owned(),
                source: system,
            },
            1 => IndexError::from(system),
            _ => {
                let of_file = OpenReadError::wrap_io_error(system, "meta.json".into());
                IndexError::from(tantivy::TantivyError::from(of_file))
            }
        }
    };
    for way in 0..3 {
        for (code, is_damage) in [(23, false), (24, false), (5, true)] {
            let told = format!("{way} {code}");
            for _ in 0..10 {
                index.record_commit_result(&Err(error(way, code)), index.rebuild_count());
            }
            assert_eq!(index.damage().is_some(), is_damage, "commits {told}");
            if !is_damage {
                let asked = index.run_with_damage_retry(|_| Err::<(), _>(error(way, code)));
                assert!(asked.is_err());
                assert_eq!(index.damage(), None, "a search {told}");
            }
        }
        mend(&index);
    }
    index.apply_changes(Vec::new(), &[id(4)], 3).unwrap();
    assert_eq!(index.search(&all()).unwrap().total, 148);
}
