//! Libraries and calls that are allowed in certain places only.

use super::assert_tidy;
use super::tokenizer::{Token, lines_with};
use super::tree::{SourceFile, rust_sources};

/// A library, the only places that may name it, and the alternative.
type LibraryRule = (&'static str, &'static [&'static str], &'static str);

/// A place is a file, or a folder with everything in it and the file of the same name beside it.
/// Tests may name anything.
const HOMES: [LibraryRule; 19] = [
    ("sea_orm", &["registry/store/src", "migrations/src"], STORE),
    (
        "sea_orm_migration",
        &["registry/store/src", "migrations/src"],
        STORE,
    ),
    ("sqlx", &["registry/store/src"], STORE),
    (
        "actix_web",
        &[
            "registry/http/src",
            "registry/server/src",
            "registry/demo/src",
        ],
        HTTP,
    ),
    (
        "actix_http",
        &["registry/http/src", "registry/server/src"],
        HTTP,
    ),
    (
        "actix_server",
        &["registry/http/src", "registry/server/src"],
        HTTP,
    ),
    (
        "actix_service",
        &["registry/http/src", "registry/server/src"],
        HTTP,
    ),
    (
        "utoipa_actix_web",
        &["registry/http/src", "registry/server/src"],
        HTTP,
    ),
    (
        "tracing_actix_web",
        &["registry/http/src", "registry/server/src"],
        HTTP,
    ),
    ("askama", &["registry/http/src"], HTTP),
    (
        "tantivy",
        &["registry/search/src"],
        "searching belongs in registry/search/src",
    ),
    (
        "reqwest",
        &[
            "crawler/src/fetch",
            "registry/cli/src/client.rs",
            "registry/cli/src/fetch.rs",
            "registry/cli/src/model/hub.rs",
            "registry/a2a/src",
        ],
        FETCHING,
    ),
    ("hyper", &["crawler/src/fetch"], FETCHING),
    (
        "hickory_resolver",
        &["crawler/src"],
        "names are resolved by the crawler's guard",
    ),
    (
        "opentelemetry_otlp",
        &["registry/server/src/trace_export.rs"],
        "write a span with TRACE_TARGET of a2a_crawler::trace_spans; it is exported by itself",
    ),
    (
        "lettre",
        &[
            "registry/core/src/mailer.rs",
            "registry/core/src/config/mail.rs",
        ],
        "mails are sent by the mailer in registry/core/src/mailer.rs",
    ),
    ("safetensors", &["registry/embed/src"], EMBED),
    ("tokenizers", &["registry/embed/src"], EMBED),
    (
        "rayon",
        &["registry/embed/src"],
        "use tokio's threads; only sentence encoding has threads of its own",
    ),
];

const STORE: &str = "SQL belongs in registry/store/src; add a method there";
const HTTP: &str = "HTTP belongs in registry/http; pass plain values";
const EMBED: &str = "sentence encoding belongs in registry/embed/src";

/// A call, the only places that may make it, and the alternative.
type CallRule = (
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);

const FETCHING: &str = "send requests to other hosts through the crawler's guarded fetcher";
const RESOLVING: &str = "resolve names through the crawler's guard";
const CLOCK: &str = "take `now`, or an a2a_crawler::Clock, so that a test can set the time";

/// Calls that only a few places, or only tests, may make. Calls forbidden everywhere are in `.clippy.toml`, and clippy's
/// own lints forbid `unwrap`, `expect` and `panic!`. `Instant` may measure durations; decisions that depend on the time
/// use the `Clock`.
const CALLS: [CallRule; 11] = [
    (
        &["Uuid", "::", "now_v7"],
        &[],
        "use Uuid::new_v7 with a time from the Clock",
    ),
    (&["Timestamp", "::", "now"], &[], CLOCK),
    (
        &["Instant", "::", "now"],
        &[
            "crawler/src/clock.rs",
            "crawler/src/fetch",
            "crawler/src/worker",
            "registry/http/src/limits/connection.rs",
            "registry/core/src/metrics",
            "registry/a2a/src",
            "registry/cli/src",
        ],
        CLOCK,
    ),
    (&["TcpStream", "::", "connect"], &[], FETCHING),
    (&["TcpStream", "::", "connect_timeout"], &[], FETCHING),
    (&["TcpSocket", "::"], &[], FETCHING),
    (&["UnixStream", "::", "connect"], &[], FETCHING),
    (
        &["Command", "::", "new"],
        &[
            // The user's own browser, which `--browser` asks for.
            "registry/cli/src/credentials/browser.rs",
            // PostgreSQL's own programs, which reach the registry's database alone.
            "registry/server/src/backup/postgres_tools.rs",
        ],
        "start no other program: its requests would bypass the guard",
    ),
    (
        &["UdpSocket", "::", "bind"],
        &["crawler/src/dns", "crawler/src/fetch/local_addresses.rs"],
        RESOLVING,
    ),
    (&["env", "::", "var"], SETTING_PLACES, SETTINGS),
    (&["env", "::", "var_os"], SETTING_PLACES, SETTINGS),
];

/// The only places that may read environment variables themselves: those about the terminal are no settings of the
/// registry, and systemd names the folder of a service's credentials in one.
const SETTING_PLACES: &[&str] = &[
    "registry/cli/src",
    "registry/core/src/config/secret_file.rs",
];
const SETTINGS: &str =
    "take settings from the configuration, which reads file, environment and flags";

/// Whether `path` is in a place.
pub fn lies_in(path: &str, place: &str) -> bool {
    let within = path.strip_prefix(place);
    within.is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
}

/// Whether the token names a crate: at the start of a path, or in `use` and `extern crate`.
fn is_head(tokens: &[Token], index: usize) -> bool {
    let text = |index: Option<usize>| {
        index
            .and_then(|index| tokens.get(index))
            .map(|token| token.text.as_str())
    };
    let before = text(index.checked_sub(1));
    // A leading `::` starts a path too; one after a name does not.
    let leading = || {
        index
            .checked_sub(2)
            .is_none_or(|index| !tokens[index].is_word() || tokens[index].text == "use")
    };
    let head = before != Some(".") && (before != Some("::") || leading());
    head && (text(Some(index + 1)) == Some("::") || matches!(before, Some("use" | "crate")))
}

/// The lines that name a library.
fn lines_naming(tokens: &[Token], library: &str) -> Vec<usize> {
    let names = |&index: &usize| tokens[index].text == library && is_head(tokens, index);
    let hits = (0..tokens.len()).filter(names);
    hits.map(|index| tokens[index].line).collect()
}

fn check(source: &SourceFile) -> Vec<String> {
    let tokens = source.production_tokens();
    let outside = |places: &[&str]| !places.iter().any(|place| lies_in(&source.path, place));
    let mut problems = Vec::new();
    for (library, _, advice) in HOMES.iter().filter(|(_, places, _)| outside(places)) {
        for line in lines_naming(&tokens, library) {
            problems.push(format!(
                "{}:{line}: {library} is not allowed here: {advice}",
                source.path
            ));
        }
    }
    for (call, _, advice) in CALLS.iter().filter(|(_, places, _)| outside(places)) {
        for line in lines_with(&tokens, call) {
            problems.push(format!(
                "{}:{line}: `{}` is not allowed here: {advice}",
                source.path,
                call.concat()
            ));
        }
    }
    problems
}

#[test]
fn libraries_and_calls_stay_in_their_places() {
    assert_tidy(&rust_sources().iter().flat_map(check).collect::<Vec<_>>());
}

#[test]
fn misplaced_libraries_and_calls_are_found() {
    let problems = |path: &str, text: &str| check(&SourceFile::new(path, text)).len();
    for text in [
        "use sea_orm::Value;",
        "use sea_orm as orm;",
        "use ::sea_orm::{A, B};",
        "use {serde, sea_orm::Value};",
        "fn f(v: sea_orm::Value) {}",
        "use reqwest::Client;",
        "async fn f() { tokio::net::TcpStream::connect(to).await; }",
        "fn f() { std::net::TcpStream::connect_timeout(to, limit); }",
        "fn f() { TcpSocket::new_v4(); }",
        "fn f() { Command::new(\"curl\"); }",
        "fn f() { std::env::var(\"HOME\"); }",
        "fn f() { Instant::now(); }",
    ] {
        assert_eq!(problems("registry/search/src/agents.rs", text), 1, "{text}");
    }
    for (path, text) in [
        ("registry/store/src/agents.rs", "use sea_orm::Value;"),
        ("registry/store/src/bulk_rows.rs", "use sea_orm::Value;"),
        ("tests/agents.rs", "use sea_orm::Value;"),
        (
            "registry/cli/src/logging.rs",
            "fn f() { std::env::var_os(\"NO_COLOR\"); }",
        ),
        (
            "registry/core/src/agents/views.rs",
            "// use sea_orm::Value;\nfn f() { \"sea_orm::Value\"; }",
        ),
        (
            "registry/search/src/agents.rs",
            "use crate::store::sea_orm::Value;",
        ),
        (
            "registry/search/src/agents.rs",
            "#[cfg(test)]\nmod tests {\n use sea_orm::Value;\n}",
        ),
    ] {
        assert_eq!(problems(path, text), 0, "{path}: {text}");
    }
    assert_eq!(problems("registry/store/srcs.rs", "use sea_orm::Value;"), 1);
}
