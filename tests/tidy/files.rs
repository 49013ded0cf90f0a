//! Rules for every Rust file: a module doc, a maximum length, a descriptive name, no `unsafe`, no postponed work.

use super::assert_tidy;
use super::tokenizer::lines_with;
use super::tree::{SourceFile, rust_sources};

/// Maximum number of production lines in a file.
const PRODUCTION_LIMIT: usize = 500;
/// Nine of ten production files are shorter than this.
const USUAL_LIMIT: usize = 400;
/// Maximum number of lines in a test file.
const TEST_LIMIT: usize = 800;

/// File names that say nothing.
const EMPTY_NAMES: [&str; 6] = ["utils", "util", "helpers", "helper", "misc", "manager"];

/// Words that postpone work when a comment begins with one. Written in two halves, so that this file passes the check.
const PUT_OFF: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

fn check(source: &SourceFile) -> Vec<String> {
    let mut problems = Vec::new();
    let mut found = |line: usize, problem: &str| {
        problems.push(format!("{}:{line}: {problem}", source.path));
    };
    if source.purpose().is_none() {
        found(
            1,
            "begin the file with a module doc: //! and a sentence about its purpose",
        );
    }
    let (lines, limit) = if source.is_test() {
        (source.text.lines().count(), TEST_LIMIT)
    } else {
        (source.production_lines, PRODUCTION_LIMIT)
    };
    if lines > limit {
        found(
            limit,
            &format!("{lines} lines, {limit} are allowed: give a subject a file of its own"),
        );
    }
    let stem = source.path.rsplit('/').next().unwrap_or_default();
    if EMPTY_NAMES.contains(&stem.trim_end_matches(".rs")) {
        found(1, "name the file after its subject");
    }
    for line in lines_with(&source.tokens(), &["unsafe"]) {
        found(
            line,
            "no unsafe code: use a library that has a safe call for it",
        );
    }
    for (index, line) in source.text.lines().enumerate() {
        let comment = line.split_once("//").map_or("", |(_, comment)| comment);
        let comment = comment.trim_start_matches(['/', '!', ' ']);
        if PUT_OFF.iter().any(|word| comment.starts_with(word)) {
            found(
                index + 1,
                "do it now, or open an issue and leave the file without a note",
            );
        }
    }
    problems
}

/// Checks that at most one of ten files reaches [`USUAL_LIMIT`].
fn check_usual(mut lines: Vec<usize>) -> Vec<String> {
    lines.sort_unstable();
    let ninth = lines.get(lines.len() * 9 / 10).copied().unwrap_or_default();
    let problem = format!(
        "one of ten files has {ninth} lines or more, and fewer than {USUAL_LIMIT} are allowed: split long files by subject"
    );
    (ninth >= USUAL_LIMIT)
        .then_some(problem)
        .into_iter()
        .collect()
}

#[test]
fn files_are_short_documented_and_safe() {
    let sources = rust_sources();
    let mut problems: Vec<_> = sources.iter().flat_map(check).collect();
    let shipped = sources.iter().filter(|source| !source.is_test());
    problems.extend(check_usual(
        shipped.map(|source| source.production_lines).collect(),
    ));
    assert_tidy(&problems);
}

#[test]
fn many_long_files_are_found() {
    let mut lines = vec![100; 91];
    lines.extend([450; 9]);
    assert!(check_usual(lines.clone()).is_empty());
    lines.extend([450; 3]);
    assert_eq!(check_usual(lines).len(), 1);
    assert!(check_usual(Vec::new()).is_empty());
}

#[test]
fn untidy_files_are_found() {
    let problems = |path: &str, text: &str| check(&SourceFile::new(path, text)).len();
    let lines = |count: usize| format!("//! Doc.\n{}", "fn f() {}\n".repeat(count - 1));
    assert_eq!(problems("card/src/a.rs", &lines(500)), 0);
    assert_eq!(problems("card/src/a.rs", &lines(501)), 1);
    assert_eq!(problems("tests/a.rs", &lines(800)), 0);
    assert_eq!(problems("tests/a.rs", &lines(801)), 1);
    let long_tests = format!(
        "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
        lines(500),
        lines(400)
    );
    assert_eq!(problems("card/src/a.rs", &long_tests), 0);

    assert_eq!(problems("card/src/a.rs", "fn f() {}\n"), 1);
    assert_eq!(problems("card/src/a.rs", "//!\nfn f() {}\n"), 1);
    assert_eq!(problems("card/src/utils.rs", "//! Doc.\n"), 1);
    assert_eq!(problems("tests/a.rs", "//! Doc.\nunsafe fn f() {}\n"), 1);
    assert_eq!(
        problems(
            "card/src/a.rs",
            "//! Not unsafe.\n#![forbid(unsafe_code)]\n"
        ),
        0
    );
    let put_off = format!("//! Doc.\n// {}: later\n", PUT_OFF[0]);
    assert_eq!(problems("card/src/a.rs", &put_off), 1);
}
