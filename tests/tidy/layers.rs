//! The layers inside `registry`: which module may name which.

use super::assert_tidy;
use super::code::Token;
use super::tree::{Source, sources};

/// A module directly under `registry/src`, the other ones it may name, and which of our packages.
type Layer = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

/// The name for what is defined in `lib.rs` itself, where the layers are put together.
const ROOT: &str = "root";

/// Add a row for a new module. A row names what may be used, so what is not there is forbidden:
/// `http` reaches no store, `domain` does no input or output, `talk` stands alone.
const LAYERS: [Layer; 15] = [
    ("domain", &[], &["a2a_card"]),
    ("api", &["domain"], &["a2a_card"]),
    ("config", &["domain"], &["a2a_crawler"]),
    ("talk", &[], &["a2a_card"]),
    ("processor", &[], &[]),
    (
        "embed",
        &["processor", "domain", "config"],
        &["a2a_crawler"],
    ),
    (
        "store",
        &["domain", "api", "config"],
        &["a2a_card", "a2a_crawler", "a2a_migrations"],
    ),
    ("vectors", &["processor"], &[]),
    (
        "index",
        &["vectors", "processor", "domain", "api", "config"],
        &["a2a_card"],
    ),
    (
        "app",
        &[
            "store", "index", "vectors", "embed", "domain", "api", "config",
        ],
        &["a2a_card", "a2a_crawler"],
    ),
    (
        "jobs",
        &["app", "store", "embed", "domain", "api", "config"],
        &["a2a_card", "a2a_crawler"],
    ),
    (
        "http",
        &["app", "metrics", "domain", "api", "config"],
        &["a2a_card"],
    ),
    (
        "demo",
        &["domain", "api", "config"],
        &["a2a_card", "a2a_crawler"],
    ),
    ("metrics", &[], &[]),
    (
        "cli",
        &[
            "http", "jobs", "app", "embed", "demo", "metrics", "talk", "domain", "api", "config",
            ROOT,
        ],
        &["a2a_card", "a2a_crawler"],
    ),
];

const OURS: [&str; 4] = ["a2a_card", "a2a_crawler", "a2a_migrations", "a2a_registry"];

/// The module path of a file under `registry/src`: `["app", "agents"]` for `app/agents.rs`, and
/// nothing for `lib.rs` and `main.rs`.
fn module_path(path: &str) -> Option<Vec<&str>> {
    let inner = path.strip_prefix("registry/src/")?.strip_suffix(".rs")?;
    let mut parts: Vec<&str> = inner.split('/').collect();
    if matches!(parts.last(), Some(&"mod" | &"lib" | &"main")) {
        parts.pop();
    }
    Some(parts)
}

/// The first names after a path's beginning at `start`: one, or one for each branch of a `{…}`.
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

/// Every module of the first level that a file names by `crate::` or `super::`, with the line.
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
            let known = LAYERS.iter().any(|(name, ..)| *name == named.text);
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
    let Some((_, modules, packages)) = LAYERS.iter().find(|(name, ..)| name == own) else {
        return vec![format!(
            "{}: the module `{own}` has no row in LAYERS of tests/tidy/layers.rs; add one that \
             says what it may use, or move the file into a layer",
            source.path
        )];
    };
    let tokens = source.production_tokens();
    let mut problems = Vec::new();
    for (name, line) in named_modules(&tokens, &module) {
        if name != *own && !modules.contains(&name.as_str()) {
            let what = if name == ROOT {
                "what lib.rs defines".to_owned()
            } else {
                format!("`{name}`")
            };
            problems.push(format!(
                "{}:{line}: `{own}` may not use {what}, only {modules:?}; go through a layer between \
                 them, or move the code",
                source.path
            ));
        }
    }
    for (index, token) in tokens.iter().enumerate() {
        let head = index == 0 || tokens[index - 1].text != "::" || tokens[index - 2].text == "use";
        let ours = OURS.contains(&token.text.as_str());
        if head && ours && !packages.contains(&token.text.as_str()) {
            problems.push(format!(
                "{}:{}: `{own}` may not use the package {}, only {packages:?}",
                source.path, token.line, token.text
            ));
        }
    }
    problems
}

#[test]
fn layers_use_only_what_lies_below_them() {
    assert_tidy(&sources().iter().flat_map(check).collect::<Vec<_>>());
}

#[test]
fn short_cuts_between_layers_are_found() {
    let problems = |path: &str, text: &str| check(&Source::new(path, text)).len();
    for (path, text) in [
        ("registry/src/http/agents.rs", "use crate::store::Store;"),
        (
            "registry/src/http/agents.rs",
            "use crate::{\n app::{self, agents},\n store::{a, b},\n};",
        ),
        (
            "registry/src/http/agents.rs",
            "fn f() { crate::store::agents::list() }",
        ),
        (
            "registry/src/http/agents.rs",
            "use super::super::store::Store;",
        ),
        ("registry/src/http/mod.rs", "use super::store::Store;"),
        ("registry/src/store.rs", "use super::{domain, app};"),
        ("registry/src/store/agents.rs", "use crate::app::Error;"),
        ("registry/src/domain/agent.rs", "use a2a_crawler::Clock;"),
        ("registry/src/app/agents.rs", "use crate::App;"),
        ("registry/src/talk/mod.rs", "use crate::domain::DomainName;"),
        ("registry/src/novelty/mod.rs", ""),
    ] {
        assert_eq!(problems(path, text), 1, "{path}: {text}");
    }
    for (path, text) in [
        (
            "registry/src/http/agents.rs",
            "use crate::app::agents;\nuse crate::{api, http::error};",
        ),
        ("registry/src/http/agents.rs", "use super::error::Problem;"),
        (
            "registry/src/http/pages/agent.rs",
            "use super::super::error::Problem;",
        ),
        (
            "registry/src/http/agents.rs",
            "use serde::{Serialize, de::{self, store}};",
        ),
        (
            "registry/src/http/agents.rs",
            "#[cfg(test)]\nmod tests {\n use crate::store::Store;\n}",
        ),
        (
            "registry/src/lib.rs",
            "use crate::store::Store;\npub(crate) mod store;",
        ),
        (
            "registry/src/store/mod.rs",
            "pub(crate) fn f() {}\npub(super) fn g() {}",
        ),
        ("registry/src/cli/serve.rs", "use crate::{App, http};"),
        ("crawler/src/lib.rs", "use crate::guard::Guard;"),
    ] {
        assert_eq!(problems(path, text), 0, "{path}: {text}");
    }
}
