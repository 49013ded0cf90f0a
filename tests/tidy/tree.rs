//! The files of the repository on disk.

use std::fs;
use std::path::{Path, PathBuf};

use super::tokenizer::{Token, blank, tokens};

/// A Rust file.
pub struct SourceFile {
    /// Its path from the root of the repository, with `/` between the parts.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Number of lines before its module of tests; all of them if it has none.
    pub production_lines: usize,
}

impl SourceFile {
    /// Reads the text as the file at `path`.
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            production_lines: production_lines(text),
        }
    }

    /// Whether the whole file is for tests only: in the tests package, in a `tests` or `benches` folder or file, or a fuzz
    /// target.
    pub fn is_test(&self) -> bool {
        let mut folders: Vec<&str> = self.path.split('/').collect();
        let file = folders.pop().unwrap_or_default();
        folders
            .iter()
            .any(|folder| ["tests", "benches", "fuzz"].contains(folder))
            || file == "tests.rs"
            || file.ends_with("_tests.rs")
    }

    /// The tokens of production code: none of a test file, and none of a module of tests.
    pub fn production_tokens(&self) -> Vec<Token> {
        if self.is_test() {
            return Vec::new();
        }
        let mut all = self.tokens();
        all.retain(|token| token.line <= self.production_lines);
        all
    }

    /// The tokens of the whole file, without comments and the contents of strings.
    pub fn tokens(&self) -> Vec<Token> {
        tokens(&blank(&self.text))
    }

    /// The first sentence of the module doc, if there is one.
    pub fn purpose(&self) -> Option<String> {
        let lines = self.text.lines().map_while(|line| line.strip_prefix("//!"));
        let paragraph: Vec<&str> = lines
            .map(str::trim)
            .take_while(|line| !line.is_empty())
            .collect();
        let paragraph = paragraph.join(" ");
        let sentence = paragraph.split(". ").next()?.trim_end_matches('.');
        (!sentence.is_empty()).then(|| sentence.to_owned())
    }
}

/// The number of lines before `#[cfg(test)] mod name {`. A declaration of a sibling file, as in
/// `#[cfg(test)] mod tests;`, does not end the production code.
fn production_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let begins_tests = |from: usize| {
        let mut after = lines[from + 1..].iter();
        let item = after.find(|line| !line.starts_with("#[") && !line.ends_with(")]"));
        item.is_some_and(|item| item.starts_with("mod ") && item.ends_with('{'))
    };
    (0..lines.len())
        .find(|&index| lines[index] == "#[cfg(test)]" && begins_tests(index))
        .unwrap_or(lines.len())
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// The text of a file of the repository.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file of the repository, sorted, except hidden ones and those that `.gitignore` names by a full path or a folder
/// name.
pub fn repository_files() -> Vec<String> {
    let ignored = read(".gitignore");
    let ignored: Vec<&str> = ignored.lines().map(|line| line.trim_matches('/')).collect();
    let mut found = Vec::new();
    walk(&root(), "", &ignored, &mut found);
    found.sort();
    assert!(found.len() > 20, "the tree is nearly empty: {found:?}");
    found
}

fn walk(folder: &Path, prefix: &str, ignored: &[&str], found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{prefix}{name}");
        let generated = ["target", "node_modules", "__pycache__"].contains(&name.as_str());
        if name.starts_with('.') || generated || ignored.contains(&path.as_str()) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), &format!("{path}/"), ignored, found);
        } else {
            found.push(path);
        }
    }
}

/// Every Rust file of the repository.
pub fn rust_sources() -> Vec<SourceFile> {
    let rust = repository_files()
        .into_iter()
        .filter(|path| path.ends_with(".rs"));
    rust.map(|path| SourceFile::new(&path, &read(&path)))
        .collect()
}

#[test]
fn production_code_ends_at_the_test_module() {
    let text = "//! Doc.\n#[cfg(test)]\nmod tests;\nfn a() {}\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n}\n";
    assert_eq!(production_lines(text), 4);
    assert_eq!(production_lines("//! Doc.\nfn a() {}\n"), 2);
    assert_eq!(
        production_lines("//! Doc.\n#[cfg(test)]\nfn only_for_tests() {}\n"),
        3
    );
}

#[test]
fn test_files_are_distinguished_from_production_files() {
    for path in [
        "tests/main.rs",
        "card/tests/corpus.rs",
        "card/src/lint/tests.rs",
        "card/fuzz/a.rs",
    ] {
        assert!(SourceFile::new(path, "").is_test(), "{path}");
    }
    for path in [
        "card/src/lib.rs",
        "registry/core/src/policies/policy_cases.rs",
    ] {
        assert!(!SourceFile::new(path, "").is_test(), "{path}");
    }
}
