//! Links and mentions of documents: every link, path and section that a text of the repository names exists.

use std::collections::{BTreeMap, BTreeSet};

use super::assert_tidy;
use super::tree::{SourceFile, read, repository_files};

/// Extensions of checked texts. Fixtures of tests are JSON, and may contain anything.
const TEXTS: [&str; 8] = ["rs", "md", "toml", "py", "cjs", "js", "html", "css"];
/// Further checked texts, by path.
const FURTHER: [&str; 3] = ["openapi/openapi.json", "openapi/examples.json", "tests/run"];
/// Extensions that make a word in a document the path of a file.
const PATHS: [&str; 8] = ["rs", "md", "toml", "json", "py", "js", "html", "css"];
/// Words allowed before `section 4`, besides words with a digit such as `RFC 9110` or `1.0`.
const STANDARDS: [&str; 2] = ["ARD", "Context"];
/// The folder of real cards beside the repository, which only tests may name.
const BESIDE: &str = "../shared";
/// The folder of the manual.
const MANUAL: &str = "docs/";
/// This file, which is exempt because its tests name missing files.
const ITSELF: &str = "tests/tidy/documents.rs";

/// Existing targets: the files, and the anchors of headings in Markdown files.
struct LinkTargets {
    files: BTreeSet<String>,
    anchors: BTreeMap<String, BTreeSet<String>>,
}

impl LinkTargets {
    fn new<'a>(files: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let mut tree = Self {
            files: BTreeSet::new(),
            anchors: BTreeMap::new(),
        };
        for (path, text) in files {
            tree.files.insert(path.to_owned());
            if path.ends_with(".md") {
                tree.anchors.insert(path.to_owned(), anchors(&text));
            }
        }
        tree
    }

    /// Whether a path, with or without an anchor, leads to a file or folder, relative to the file that names it.
    fn leads(&self, from: &str, target: &str) -> bool {
        let (_, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = target_path(from, target);
        let inside = format!("{path}/");
        let is_there =
            self.files.contains(&path) || self.files.iter().any(|file| file.starts_with(&inside));
        let anchors = self.anchors.get(&path);
        is_there && (anchor.is_empty() || anchors.is_some_and(|all| all.contains(anchor)))
    }

    /// Whether a path begins with a folder of the repository.
    fn begins_here(&self, path: &str) -> bool {
        let first = path.split_inclusive('/').next().unwrap_or_default();
        self.files.iter().any(|file| file.starts_with(first))
    }
}

/// The path to which a link in this file leads, without the anchor.
fn target_path(from: &str, target: &str) -> String {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    match target.split('#').next().unwrap_or_default() {
        "" => from.to_owned(),
        path => resolved(folder, path),
    }
}

/// The path with `.` and `..` resolved; a path out of the repository matches no file.
fn resolved(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The lines of a Markdown text that are not inside a block of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        (!is_code && !fence).then_some((index + 1, line))
    })
}

/// The anchors of the headings of a Markdown text.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        line.starts_with('#').then(|| title.trim().to_lowercase())
    });
    let anchor = |title: String| {
        let spaced = title.replace(' ', "-");
        let kept = |letter: &char| letter.is_alphanumeric() || "-_".contains(*letter);
        spaced.chars().filter(kept).collect()
    };
    headings.map(anchor).collect()
}

/// Checks the links and paths in a document.
fn check_document(path: &str, text: &str, tree: &LinkTargets) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, line) in prose(text) {
        for link in line.split("](").skip(1) {
            let target = link.split([')', ' ']).next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !tree.leads(path, target) {
                problems.push(format!(
                    "{path}:{number}: the target of the link {target} does not exist"
                ));
            } else if !elsewhere
                && path.starts_with(MANUAL)
                && !target_path(path, target).starts_with(MANUAL)
            {
                problems.push(format!(
                    "{path}:{number}: the program serves only what is below {MANUAL}: write {target} as code"
                ));
            }
        }
        for code in line.split('`').skip(1).step_by(2) {
            if is_file(code, tree) && !tree.leads("", code) {
                problems.push(format!("{path}:{number}: there is no file `{code}`"));
            }
        }
    }
    problems
}

/// Whether a word in a document is meant as the path of a file of the repository, as every path of a Rust file is.
fn is_file(code: &str, tree: &LinkTargets) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_./-".contains(letter);
    let extension = code.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_path = code.chars().all(plain) && code.contains('/') && !code.starts_with(['/', '.']);
    is_path && PATHS.contains(&extension) && (extension == "rs" || tree.begins_here(code))
}

/// Checks the mentions of documents in a text: each named document and heading exists, and no section is named by its
/// number alone.
fn check_mentions(path: &str, text: &str, tree: &LinkTargets) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let in_path = |letter: char| letter.is_ascii_alphanumeric() || "_./#:-".contains(letter);
        for word in line.split(|letter| !in_path(letter)) {
            let word = word.trim_end_matches(['.', ':', '#']);
            let file = word.split('#').next().unwrap_or_default();
            let is_document = file.ends_with(".md") && file != ".md" && !word.contains("://");
            if is_document && !tree.leads(path, word) && !tree.leads("", word) {
                problems.push(format!("{path}:{number}: {word} is not in the repository"));
            }
        }
        if line.contains(BESIDE) && path.ends_with(".rs") && !SourceFile::new(path, "").is_test() {
            problems.push(format!(
                "{path}:{number}: only tests may use folders beside the repository"
            ));
        }
    }
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|word| !["//", "///", "//!", "#"].contains(word))
        .collect();
    for three in words.windows(3) {
        let [before, word, after] = [three[0], three[1], three[2]];
        let numbered = after.starts_with(|letter: char| letter.is_ascii_digit());
        let word = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let known = before.contains(|letter: char| letter.is_ascii_digit())
            || STANDARDS.contains(&before.trim_start_matches('('));
        let unknown = match word.to_lowercase().as_str() {
            "section" | "sections" => !known,
            "invariant" | "invariants" => true,
            _ => false,
        };
        if numbered && unknown {
            problems.push(format!(
                "{path}: `{before} {word} {after}`: name the document and its heading, as in docs/develop/model.md#slots"
            ));
        }
    }
    problems
}

fn is_text(path: &str) -> bool {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    TEXTS.contains(&extension) || FURTHER.contains(&path)
}

#[test]
fn everything_named_in_documents_exists() {
    let files = repository_files();
    let text = |path: &String| match path.ends_with(".md") {
        true => read(path),
        false => String::new(),
    };
    let tree = LinkTargets::new(files.iter().map(|path| (path.as_str(), text(path))));
    let mut problems = Vec::new();
    let texts = files.iter().filter(|path| is_text(path) && *path != ITSELF);
    for path in texts {
        let text = read(path);
        if path.ends_with(".md") {
            problems.extend(check_document(path, &text, &tree));
        }
        problems.extend(check_mentions(path, &text, &tree));
    }
    assert_tidy(&problems);
}

/// A repository of a few files.
fn small_tree() -> LinkTargets {
    let model = "# Model\n\n## Two digests\n\n```\n## No heading\n```\n### `code`, and more\n";
    LinkTargets::new([
        ("README.md", "# Title\n".to_owned()),
        ("docs/model.md", model.to_owned()),
        ("docs/how-to.md", String::new()),
        ("card/src/lib.rs", String::new()),
    ])
}

#[test]
fn broken_links_and_paths_are_found() {
    let tree = small_tree();
    let problems = |text: &str| check_document("docs/how-to.md", text, &tree).len();
    for text in [
        "[a](model.md) [b](./model.md) [c](https://a.example/x.md) [d](#) [e](../docs/model.md)",
        "[a](model.md#two-digests) [b](model.md#code-and-more)",
        "`card/src/lib.rs`, `/v1/agents.json`, `1_Pooling/config.json`, `x.rs`, `./a.rs`",
        "```\n[a](gone.md) `card/src/gone.rs`\n```\n",
    ] {
        assert_eq!(problems(text), 0, "{text}");
    }
    for text in [
        "[a](gone.md)",
        "[a](docs/gone.md \"title\")",
        "[a](../README.md)",
        "[a](../card/src)",
        "[a](../../README.md)",
        "[a](model.md#no-heading)",
        "[a](model.md#three-digests)",
        "`card/src/gone.rs`",
        "`elsewhere/lib.rs`",
        "`card/src/data.json`",
    ] {
        assert_eq!(problems(text), 1, "{text}");
    }
}

#[test]
fn mentions_of_missing_documents_are_found() {
    let tree = small_tree();
    let problems = |path: &str, text: &str| check_mentions(path, text, &tree).len();
    let rust = "card/src/lib.rs";
    for text in [
        "//! As docs/model.md#two-digests says; see README.md.",
        "/// (RFC 9110 section 13), 1.0 sections 3.1 and 4, ARD\n/// section 1.4, section by section, invariants",
        "// https://a.example/design.md",
    ] {
        assert_eq!(problems(rust, text), 0, "{text}");
    }
    for text in [
        "//! (design.md)",
        "//! (model.md says)",
        "//! docs/governance.md",
        "//! docs/model.md#sections",
        "//! the contract, section\n//! 2",
        "//! (design invariant 9)",
        BESIDE,
    ] {
        assert_eq!(problems(rust, text), 1, "{text}");
    }
    assert_eq!(problems("card/tests/corpus.rs", BESIDE), 0);
}
