//! Runs the properties of the fuzzers on the fixtures and on arbitrary data.
//!
//! `FUZZ_CASES` (160000) is the number of cases per test: about a minute of one core for the slowest test with
//! optimised dependencies. The fuzzers of `card/fuzz` run the same properties without end.
#![allow(clippy::unwrap_used)]

mod any_bytes;

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// The fixtures of every family, including the rejected ones.
fn seeds() -> Vec<Vec<u8>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut paths = Vec::new();
    for folder in std::fs::read_dir(data).unwrap() {
        let files = std::fs::read_dir(folder.unwrap().path()).unwrap();
        paths.extend(files.map(|file| file.unwrap().path()));
    }
    paths.retain(|path| !path.to_string_lossy().ends_with(".expected.json"));
    paths.sort();
    assert!(paths.len() > 20, "{paths:?}");
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// Tests `FUZZ_CASES` values of a strategy.
fn drive<S>(strategy: S, trial: fn(&[u8]) -> Result<(), any_bytes::BrokenProperty>)
where
    S::Value: AsRef<[u8]>,
    S: Strategy + Sync,
{
    let cases: u32 = std::env::var("FUZZ_CASES").map_or(160_000, |text| text.parse().unwrap());
    // The cases of the slowest test would keep one core busy long after the others have ended.
    let threads = std::thread::available_parallelism().unwrap().get();
    let threads = u32::try_from(threads).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let config = Config {
                    cases: cases.div_ceil(threads),
                    failure_persistence: None,
                    ..Config::default()
                };
                let mut runner = TestRunner::new(config);
                let result = runner.run(&strategy, |data| {
                    trial(data.as_ref()).map_err(|broken| TestCaseError::fail(broken.to_string()))
                });
                result.unwrap();
            });
        }
    });
}

#[test]
fn every_property_holds_for_the_fixtures() {
    for seed in seeds() {
        assert_eq!(any_bytes::bytes(&seed), Ok(()));
        assert_eq!(any_bytes::mutated(&seed), Ok(()));
    }
}

#[test]
fn every_property_holds_for_any_bytes() {
    drive(
        proptest::collection::vec(any::<u8>(), 0..400),
        any_bytes::bytes,
    );
}

#[test]
fn every_property_holds_for_fixtures_with_changed_bytes() {
    let change = (any::<proptest::sample::Index>(), any::<u8>(), 0..4_usize);
    let changes = proptest::collection::vec(change, 1..8);
    let changed = (proptest::sample::select(seeds()), changes).prop_map(|(mut card, changes)| {
        for (place, byte, cut) in changes {
            // From that place on, one byte is replaced, or some bytes are removed or doubled.
            let place = place.index(card.len().max(1));
            let end = (place + cut).min(card.len());
            let doubled: Vec<u8> = card[place.min(end)..end].to_vec();
            match byte % 3 {
                0 => drop(card.splice(place.min(end)..end, [])),
                1 => drop(card.splice(end..end, doubled)),
                _ => drop(card.splice(place.min(end)..end, [byte])),
            }
        }
        card
    });
    drive(changed, any_bytes::bytes);
}

#[test]
fn every_property_holds_for_cards_built_by_any_instructions() {
    drive(
        proptest::collection::vec(any::<u8>(), 0..600),
        any_bytes::mutated,
    );
}

#[test]
fn a_property_can_fail() {
    let broken = any_bytes::PROPERTIES.iter().map(|property| {
        let card = br#"{"name": "A", "url": "http://a.agents.dev/"}"#;
        let mut parsed = a2a_card::parse_card(card).unwrap();
        parsed.card.name.clear();
        (property.holds)(card, Ok(&parsed)).is_err()
    });
    assert_eq!(broken.filter(|broken| *broken).count(), 1);
}
