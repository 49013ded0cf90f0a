//! Layers: no two modules of a package's root import each other, whether directly or through others.

use std::collections::BTreeMap;

use super::assert_tidy;
use super::tokenizer::Token;
use super::tree::{SourceFile, rust_sources};

/// Which modules a module imports, each with the place of one such import.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

/// The package of a file and its module path in that package: `registry/core` and `["agents", "views"]` for
/// `registry/core/src/agents/views.rs`, and no module for `lib.rs`.
fn module_path(path: &str) -> Option<(&str, Vec<&str>)> {
    let (package, inner) = path.strip_suffix(".rs")?.split_once("/src/")?;
    let mut parts: Vec<&str> = inner.split('/').collect();
    if matches!(parts.last(), Some(&"mod" | &"lib" | &"main")) {
        parts.pop();
    }
    Some((package, parts))
}

/// The next names of a path at `start`: one, or one for each branch of a `{…}`.
fn branches(tokens: &[Token], start: usize) -> Vec<&Token> {
    if tokens.get(start).is_none_or(|token| token.text != "{") {
        return tokens.get(start).into_iter().collect();
    }
    let mut names = Vec::new();
    let mut depth = 0;
    let mut branch_begins = false;
    for token in &tokens[start..] {
        match token.text.as_str() {
            "{" => {
                depth += 1;
                branch_begins = depth == 1;
            }
            "}" if depth == 1 => break,
            "}" => depth -= 1,
            "," => branch_begins = depth == 1,
            _ if branch_begins => {
                names.push(token);
                branch_begins = false;
            }
            _ => {}
        }
    }
    names
}

/// Every name under the root of the package that a file reaches through `crate::` or `super::`, with the line. A module
/// within a file is not counted as a level: what it needs from further up, it names through `crate::`.
fn root_names(tokens: &[Token], depth: usize) -> Vec<(String, usize)> {
    let mut names = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let continues = index > 0 && tokens[index - 1].text == "::";
        let mut up = match token.text.as_str() {
            "crate" if !continues => depth,
            "super" if !continues => 1,
            _ => continue,
        };
        let mut next = index + 1;
        let text = |at: usize| tokens.get(at).map(|token| token.text.as_str());
        while text(next) == Some("::") && text(next + 1) == Some("super") {
            up += 1;
            next += 2;
        }
        if text(next) == Some("::") && up >= depth {
            let reached = branches(tokens, next + 1);
            names.extend(reached.iter().map(|name| (name.text.clone(), name.line)));
        }
    }
    names
}

/// The imports between the root modules of each package.
fn imports(sources: &[SourceFile]) -> BTreeMap<String, Imports> {
    let mut packages: BTreeMap<String, Imports> = BTreeMap::new();
    let production = || sources.iter().filter(|source| !source.is_test());
    for (package, module) in production().filter_map(|source| module_path(&source.path)) {
        if let Some(root) = module.first() {
            let imports = packages.entry(package.to_owned()).or_default();
            imports.entry((*root).to_owned()).or_default();
        }
    }
    for source in production() {
        let Some((package, module)) = module_path(&source.path) else {
            continue;
        };
        let (Some(root), Some(imports)) = (module.first(), packages.get_mut(package)) else {
            continue;
        };
        for (name, line) in root_names(&source.production_tokens(), module.len()) {
            if name != *root && imports.contains_key(&name) {
                let from = imports.entry((*root).to_owned()).or_default();
                from.entry(name)
                    .or_insert_with(|| format!("{}:{line}", source.path));
            }
        }
    }
    packages
}

/// Follows the imports from the end of `path`; returns the places of a circle, if there is one. `done` are modules that lead
/// to none.
fn circle(imports: &Imports, path: &mut Vec<String>, done: &mut Vec<String>) -> Option<String> {
    let last = path.last()?.clone();
    for (next, place) in imports.get(&last)? {
        if let Some(start) = path.iter().position(|module| module == next) {
            let mut modules = path[start..].to_vec();
            modules.push(next.clone());
            return Some(format!("{place}: {}", modules.join(" -> ")));
        }
        if !done.contains(next) {
            path.push(next.clone());
            let found = circle(imports, path, done);
            if found.is_some() {
                return found;
            }
            path.pop();
        }
    }
    done.push(last);
    None
}

fn check(sources: &[SourceFile]) -> Vec<String> {
    let mut problems = Vec::new();
    for imports in imports(sources).values() {
        let mut done = Vec::new();
        for module in imports.keys() {
            if !done.contains(module)
                && let Some(found) = circle(imports, &mut vec![module.clone()], &mut done)
            {
                problems.push(format!(
                    "{found}; move what both use to where both may use it"
                ));
                break;
            }
        }
    }
    problems
}

#[test]
fn root_modules_do_not_import_each_other() {
    assert_tidy(&check(&rust_sources()));
}

#[test]
fn circles_of_imports_are_found() {
    let source = |path: &str, text: &str| SourceFile::new(&format!("card/src/{path}"), text);
    let below = || source("below/mod.rs", "pub fn f() {}");
    for text in [
        "use crate::above::Store;",
        "use crate::{\n below::{self, agents},\n above::{a, b},\n};",
        "fn f() { crate::above::agents::list() }",
        "use super::super::above::Store;",
        "use super::super::middle;",
    ] {
        let sources = [
            below(),
            source("below/agents.rs", text),
            source("middle.rs", "use super::above;"),
            source("above.rs", "use crate::below::agents;"),
        ];
        assert_eq!(check(&sources).len(), 1, "{text}");
    }
    for text in [
        "use crate::Context;",
        "use super::above::Store;",
        "#[cfg(test)]\nmod tests {\n use crate::above::Store;\n}",
        "use other::above;",
    ] {
        let sources = [
            below(),
            source("below/agents.rs", text),
            source("lib.rs", "use crate::above::Store;\npub mod above;"),
            source("above.rs", "use crate::below::agents;"),
        ];
        assert_eq!(check(&sources), Vec::<String>::new(), "{text}");
    }
}
