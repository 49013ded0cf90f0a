//! The code map lists every folder and file that it must list, and no others.

use std::collections::BTreeSet;

use super::assert_tidy;
use super::tree::{SourceFile, read, repository_files};

/// The file with the code map.
const MAP: &str = "docs/develop/code-map.md";

/// Maximum depth of listed folders. Deeper ones are described by module docs, except for the folders under a `src` of
/// `registry`.
const DEPTH: usize = 3;

/// The paths that the map must list: every folder down to [`DEPTH`] except `src` itself, and the Rust files directly under
/// each `src`.
fn expected(files: &[String]) -> BTreeSet<String> {
    let mut listed = BTreeSet::new();
    for path in files {
        let parts: Vec<&str> = path.split('/').collect();
        let (file, folders) = parts.split_last().unwrap();
        for depth in 1..=folders.len().min(DEPTH) {
            if folders[depth - 1] != "src" {
                listed.insert(folders[..depth].join("/"));
            }
        }
        // The folders under `src` of each package of the registry.
        if let ["registry", _, "src", subject, ..] = folders {
            listed.insert(format!("registry/{}/src/{subject}", folders[1]));
        }
        if folders.last() == Some(&"src") && file.ends_with(".rs") {
            listed.insert(path.clone());
        }
    }
    listed
}

/// The paths of lines like ``- `path` - purpose``, and the violations in lines that begin like one.
fn listed(map: &str) -> (BTreeSet<String>, Vec<String>) {
    let mut paths = BTreeSet::new();
    let mut problems = Vec::new();
    for line in map.lines() {
        let entry = line.trim_start().strip_prefix("- `");
        let Some((path, rest)) = entry.and_then(|entry| entry.split_once('`')) else {
            continue;
        };
        let purpose = rest.strip_prefix(" - ").unwrap_or_default();
        if purpose.trim().is_empty() {
            problems.push(format!(
                "{MAP}: `{path}` has no purpose: write - `{path}` - what it is for"
            ));
        }
        if !paths.insert(path.trim_end_matches('/').to_owned()) {
            problems.push(format!("{MAP}: `{path}` is listed twice"));
        }
    }
    (paths, problems)
}

fn check(map: &str, files: &[String]) -> Vec<String> {
    let expected = expected(files);
    let (listed, mut problems) = listed(map);
    for path in expected.difference(&listed) {
        problems.push(format!("{MAP}: the code map lacks `{path}`"));
    }
    for path in listed.difference(&expected) {
        problems.push(format!(
            "{MAP}: the code map lists `{path}`, which does not exist"
        ));
    }
    problems
}

/// A proposal for the list, with the purposes from the files' own module docs.
fn proposal(files: &[String]) -> String {
    let purpose = |path: &String| {
        let inner = [
            format!("{path}/mod.rs"),
            format!("{path}.rs"),
            format!("{path}/src/lib.rs"),
        ];
        let mut candidates = std::iter::once(path).chain(&inner);
        let source = candidates.find(|path| path.ends_with(".rs") && files.contains(path))?;
        SourceFile::new(source, &read(source)).purpose()
    };
    let lines = expected(files).into_iter().map(|path| {
        let purpose = purpose(&path).unwrap_or_else(|| "what it holds".to_owned());
        format!("- `{path}` - {purpose}\n")
    });
    lines.collect()
}

#[test]
fn the_code_map_equals_the_tree() {
    let files = repository_files();
    let mut problems = check(&read(MAP), &files);
    if !problems.is_empty() {
        problems.push(format!(
            "\nThe whole list, to correct and paste:\n\n{}",
            proposal(&files)
        ));
    }
    assert_tidy(&problems);
}

#[test]
fn a_wrong_code_map_is_found() {
    let files = [
        "Cargo.toml",
        "card/src/lib.rs",
        "card/src/wire/a/b.rs",
        "web/x.css",
    ]
    .map(str::to_owned);
    let map = "# Title\n\nWords.\n`not/yet` - x\n\n- `card` - cards\n- `card/src/lib.rs` - x\n\
               - `card/src/wire` - wires\n- `web/` - pages\n";
    assert_eq!(check(map, &files), Vec::<String>::new());
    for (from, to) in [
        ("- `card` - cards\n", ""),
        (
            "- `card` - cards\n",
            "- `card` - cards\n- `crawler` - gone\n",
        ),
        ("- `card` - cards\n", "- `card`\n"),
        ("- `card` - cards\n", "- `card` - cards\n- `card` - again\n"),
    ] {
        assert_eq!(
            check(&map.replace(from, to), &files).len(),
            1,
            "{from:?} -> {to:?}"
        );
    }
    assert_eq!(check("# Title\n", &files).len(), 4);
}
