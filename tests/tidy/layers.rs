//! Layers of the server: the order of its modules, each of which may use only those before it.

use super::assert_tidy;
use super::code::Token;
use super::tree::{Source, sources};

/// The modules directly under `registry/server/src`, lowest layer first: each may use those before it and none after it,
/// so there are no cycles. Add a new module after all that it uses.
const ORDER: [&str; 63] = [
    "config",
    "descriptors",
    "dialects",
    "error",
    "filters",
    "names",
    "metrics",
    "network",
    "providers",
    "data_dir",
    "policy_labels",
    "caller",
    "audience",
    "collection_rows",
    "collection_filters",
    "policy_sets",
    "paging",
    "sealing",
    "visibility",
    "memory",
    "precondition",
    "context",
    "group_selection",
    "database",
    "index_pool",
    "commit",
    "identity",
    "authentication",
    "http",
    "pages",
    "lint",
    "sources",
    "signatures",
    "agent_facts",
    "admission",
    "visits",
    "ownership",
    "crawl",
    "catalog_entry",
    "agents",
    "meaning",
    "search",
    "collections",
    "federation",
    "ard",
    "domains",
    "agent_page",
    "reviews",
    "policies",
    "mcp",
    "a2a_agent",
    "events",
    "accounts",
    "health",
    "about",
    "routes",
    "openapi",
    "plain_routes",
    "application",
    "serve",
    "start",
    "offline",
    "jobs",
];

/// The folder of these modules.
const SERVER: &str = "registry/server/src/";

/// The name for items defined in `lib.rs` itself.
const ROOT: &str = "root";

/// The module path of a file of the server: `["app", "agents"]` for `app/agents.rs`, and nothing for `lib.rs`.
fn module_path(path: &str) -> Option<Vec<&str>> {
    let inner = path.strip_prefix(SERVER)?.strip_suffix(".rs")?;
    let mut parts: Vec<&str> = inner.split('/').collect();
    if matches!(parts.last(), Some(&"mod" | &"lib")) {
        parts.pop();
    }
    Some(parts)
}

/// The next names of a path at `start`: one, or one for each branch of a `{…}`.
fn branches(tokens: &[Token], start: usize) -> Vec<&Token> {
    if tokens.get(start).is_none_or(|token| token.text != "{") {
        return tokens.get(start).into_iter().collect();
    }
    let mut found = Vec::new();
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
                found.push(token);
                branch_begins = false;
            }
            _ => {}
        }
    }
    found
}

/// Every top-level module that a file names through `crate::` or `super::`, with the line.
fn named_modules(tokens: &[Token], module: &[&str]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let continues = index > 0 && tokens[index - 1].text == "::";
        let up = match token.text.as_str() {
            "crate" if !continues => module.len(),
            "super" if !continues => 1,
            _ => continue,
        };
        let mut up = up;
        let mut next = index + 1;
        let text = |at: usize| tokens.get(at).map(|token| token.text.as_str());
        while text(next) == Some("::") && text(next + 1) == Some("super") {
            up += 1;
            next += 2;
        }
        if text(next) != Some("::") || up < module.len() {
            continue;
        }
        for named in branches(tokens, next + 1) {
            let known = ORDER.contains(&named.text.as_str());
            let name = if known {
                named.text.clone()
            } else {
                ROOT.to_owned()
            };
            found.push((name, named.line));
        }
    }
    found
}

fn check(source: &Source) -> Vec<String> {
    let Some(module) = module_path(&source.path) else {
        return Vec::new();
    };
    let Some(own) = module.first() else {
        return Vec::new();
    };
    if source.is_test() {
        return Vec::new();
    }
    let Some(rank) = ORDER.iter().position(|name| name == own) else {
        return vec![format!(
            "{}: the module `{own}` has no place in ORDER of tests/tidy/layers.rs; add it behind all that it uses, or move \
             the file into another module",
            source.path
        )];
    };
    let tokens = source.production_tokens();
    let mut problems = Vec::new();
    for (name, line) in named_modules(&tokens, &module) {
        if name != *own && !ORDER[..rank].contains(&name.as_str()) {
            problems.push(format!(
                "{}:{line}: `{own}` may not use `{name}`, only what comes before it: {:?}; move the code to where both \
                 may use it",
                source.path,
                &ORDER[..rank]
            ));
        }
    }
    problems
}

#[test]
fn layers_use_only_lower_layers() {
    assert_tidy(&sources().iter().flat_map(check).collect::<Vec<_>>());
}

#[test]
fn upward_dependencies_are_found() {
    let problems = |path: &str, text: &str| check(&Source::new(path, text)).len();
    let [ground, below, .., above] = ORDER;
    let file = |module: &str| format!("{SERVER}{module}/agents.rs");
    for (path, text) in [
        (file(below), format!("use crate::{above}::Store;")),
        (
            file(below),
            format!("use crate::{{\n {ground}::{{self, agents}},\n {above}::{{a, b}},\n}};"),
        ),
        (
            file(below),
            format!("fn f() {{ crate::{above}::agents::list() }}"),
        ),
        (file(below), format!("use super::super::{above}::Store;")),
        (
            format!("{SERVER}{below}/mod.rs"),
            format!("use super::{above}::Store;"),
        ),
        (
            format!("{SERVER}{below}.rs"),
            format!("use super::{{{ground}, {above}}};"),
        ),
        (file(above), "use crate::Context;".to_owned()),
        (file("novelty"), String::new()),
    ] {
        assert_eq!(problems(&path, &text), 1, "{path}: {text}");
    }
    for (path, text) in [
        (
            file(above),
            format!("use crate::{below}::agents;\nuse crate::{{{ground}, {above}::error}};"),
        ),
        (file(below), "use super::error::Problem;".to_owned()),
        (
            format!("{SERVER}{below}/pages/agent.rs"),
            "use super::super::error::Problem;".to_owned(),
        ),
        (
            file(below),
            format!("#[cfg(test)]\nmod tests {{\n use crate::{above}::Store;\n}}"),
        ),
        (
            format!("{SERVER}lib.rs"),
            format!("use crate::{above}::Store;\npub(crate) mod store;"),
        ),
        (
            format!("{SERVER}{below}/mod.rs"),
            "pub(crate) fn f() {}\npub(super) fn g() {}".to_owned(),
        ),
        (
            "crawler/src/lib.rs".to_owned(),
            "use crate::guard::Guard;".to_owned(),
        ),
    ] {
        assert_eq!(problems(&path, &text), 0, "{path}: {text}");
    }
}
