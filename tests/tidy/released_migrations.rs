//! Released migrations: their files stay as they were released, and keep their order.

use std::fs;

use a2a_migrations::Migrator;
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use sea_orm_migration::MigratorTrait as _;

use super::assert_tidy;
use super::tree::{read, root};

/// The released files with their digests, in the form of `sha256sum`, relative to the folder of the list.
const LIST: &str = "released.sha256";
const FOLDER: &str = "migrations";

/// The files in the list, each with its digest.
fn listed_files(list: &str) -> Vec<(&str, &str)> {
    let lines = list.lines().filter_map(|line| line.split_once("  "));
    lines.map(|(digest, path)| (path, digest)).collect()
}

/// Checks the listed files against their digests, and the listed migrations against the names of all.
fn check(list: &str, names: &[String], content: impl Fn(&str) -> Option<Vec<u8>>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut released = Vec::new();
    for (path, expected) in listed_files(list) {
        let bytes = content(path).unwrap_or_default();
        if HEXLOWER.encode(digest(&SHA256, &bytes).as_ref()) != expected {
            problems.push(format!(
                "{FOLDER}/{path}: it is released, so databases have its result: restore it, and make the change in a \
                 new migration"
            ));
        }
        let stem = path
            .strip_prefix("src/")
            .and_then(|path| path.strip_suffix(".rs"));
        let is_migration = |stem: &&str| stem.starts_with("m0");
        released.extend(stem.filter(is_migration).map(str::to_owned));
    }
    if !names.starts_with(&released) {
        problems.push(format!(
            "{FOLDER}/src/lib.rs: the released migrations come first, in the order of {LIST}: {released:?}"
        ));
    }
    problems
}

#[test]
fn released_migrations_stay_as_they_are() {
    let steps = Migrator::migrations();
    let names: Vec<String> = steps.iter().map(|step| step.name().to_owned()).collect();
    let list = read(&format!("{FOLDER}/{LIST}"));
    assert!(listed_files(&list).len() >= 13, "{list}");
    let content = |path: &str| fs::read(root().join(FOLDER).join(path)).ok();
    assert_tidy(&check(&list, &names, content));
}

#[test]
fn changed_migrations_are_found() {
    let encoded = |text: &str| HEXLOWER.encode(digest(&SHA256, text.as_bytes()).as_ref());
    let list = format!(
        "{}  src/m0001_a.rs\n{}  src/m0002_b.rs\n{}  src/shared.rs\n",
        encoded("a"),
        encoded("b"),
        encoded("shared")
    );
    let problems = |names: &[&str], a: Option<&str>, shared: &str| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let content = |path: &str| {
            let text = match path {
                "src/m0001_a.rs" => a?,
                "src/m0002_b.rs" => "b",
                _ => shared,
            };
            Some(text.as_bytes().to_vec())
        };
        check(&list, &names, content).len()
    };
    let all = ["m0001_a", "m0002_b", "m0003_c"];
    assert_eq!(problems(&all, Some("a"), "shared"), 0);
    assert_eq!(problems(&all[..2], Some("a"), "shared"), 0);
    assert_eq!(problems(&all, Some("A"), "shared"), 1);
    assert_eq!(problems(&all, None, "shared"), 1);
    assert_eq!(problems(&all, Some("a"), "other"), 1);
    assert_eq!(problems(&all[..1], Some("a"), "shared"), 1);
    let inserted = ["m0001_a", "m0001_c", "m0002_b"];
    assert_eq!(problems(&inserted, Some("a"), "shared"), 1);
}
