//! Request bodies are read in one place only, which limits their size and duration.

use std::collections::BTreeSet;

use super::assert_tidy;
use super::imports::lies_in;
use super::tokenizer::{Token, lines_with};
use super::tree::{SourceFile, read, rust_sources};

/// The only file that reads request bodies.
const READER: &str = "registry/http/src/requests/body.rs";
/// The sample agents, which are exempt: they serve only on loopback, and only during a demonstration.
const SAMPLES: &str = "registry/demo/src";

/// Tokens that read a body wherever they occur.
const READING: [&[&str]; 11] = [
    &["web", "::", "Payload"],
    &["web", "::", "Json"],
    &["web", "::", "Form"],
    &["web", "::", "Either"],
    &["web", "::", "PayloadConfig"],
    &["web", "::", "JsonConfig"],
    &["web", "::", "FormConfig"],
    &["take_payload", "("],
    &["to_bytes_limited", "("],
    &["to_bytes", "("],
    &["payload", ".", "take", "("],
];

/// Types that read the body as a parameter of a handler.
const EXTRACTORS: [&str; 8] = [
    "Bytes",
    "BytesMut",
    "Either",
    "Form",
    "Json",
    "Multipart",
    "Payload",
    "String",
];

/// The attributes that make a function a handler.
const ROUTES: [&str; 8] = [
    "get", "post", "put", "patch", "delete", "head", "options", "route",
];

/// The file that names the handlers without such an attribute, in rows such as `GET "/about" => about::show;`.
const PLAIN: &str = "registry/http/src/routes/plain.rs";

/// The names of the handlers in such rows.
fn in_rows(list: &str) -> BTreeSet<&str> {
    let rows = list.lines().filter_map(|line| {
        let (_, handler) = line.trim().strip_suffix(';')?.split_once(" => ")?;
        handler.rsplit("::").next()
    });
    rows.collect()
}

/// The lines on which a handler, by its attribute or among these names, has a parameter that reads its body.
fn greedy_parameters(tokens: &[Token], handlers: &BTreeSet<&str>) -> Vec<usize> {
    let text = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    let mut found = Vec::new();
    for start in 0..tokens.len() {
        let is_route = text(start) == "#"
            && text(start + 1) == "["
            && ROUTES.contains(&text(start + 2))
            && text(start + 3) == "(";
        let is_named =
            text(start) == "async" && text(start + 1) == "fn" && handlers.contains(text(start + 2));
        if !is_route && !is_named {
            continue;
        }
        let Some(function) = (start..tokens.len()).find(|&index| text(index) == "fn") else {
            continue;
        };
        // Types between angle brackets belong to another extractor, such as that of the path or the query.
        let (mut depth, mut within, mut index) = (0_usize, 0_usize, function);
        loop {
            match text(index) {
                "(" => depth += 1,
                ")" if depth == 1 => break,
                ")" => depth -= 1,
                "<" => within += 1,
                ">" => within = within.saturating_sub(1),
                "" if index >= tokens.len() => break,
                word if depth > 0 && within == 0 && EXTRACTORS.contains(&word) => {
                    found.push(tokens[index].line);
                }
                _ => {}
            }
            index += 1;
        }
    }
    found
}

fn check(source: &SourceFile, handlers: &BTreeSet<&str>) -> Vec<String> {
    let elsewhere = source.path == READER || lies_in(&source.path, SAMPLES);
    if elsewhere || !lies_in(&source.path, "registry") {
        return Vec::new();
    }
    let tokens = source.production_tokens();
    let mut lines: Vec<usize> = READING
        .iter()
        .flat_map(|pattern| lines_with(&tokens, pattern))
        .chain(greedy_parameters(&tokens, handlers))
        .collect();
    lines.sort_unstable();
    lines.dedup();
    let problem = |line| {
        format!(
            "{}:{line}: read the body through {READER}, which limits its size and duration",
            source.path
        )
    };
    lines.into_iter().map(problem).collect()
}

#[test]
fn request_bodies_pass_one_reader() {
    let list = read(PLAIN);
    let handlers = in_rows(&list);
    assert!(handlers.len() > 20, "{PLAIN} names no handlers");
    let sources = rust_sources();
    let problems = sources.iter().flat_map(|source| check(source, &handlers));
    assert_tidy(&problems.collect::<Vec<_>>());
}

#[test]
fn other_readers_are_found() {
    let handlers = in_rows("    pages {\n        GET \"/x\" => a::show;\n    }\n");
    let problems = |path: &str, text: &str| check(&SourceFile::new(path, text), &handlers).len();
    let page = "registry/http/src/pages/domains/register.rs";
    for text in [
        "async fn f(body: web::Payload) {}",
        "async fn f(body: web::Json<T>) {}",
        "async fn f(body: actix_web::web::Form<T>) {}",
        "#[post(\"/x\")]\npub async fn f(request: HttpRequest, body: String) -> X {}",
        "#[post(\"/x\")]\nasync fn f(a: Query<(u8, u8)>, body: Bytes) -> X {}",
        "#[route(\"/x\", method = \"PUT\")] async fn f(body: web::Bytes) {}",
        "pub(crate) async fn show(visitor: Visitor, body: Bytes) -> X {}",
        "fn f() { body.to_bytes_limited(9); }",
        "fn f() { let body = request.take_payload(); }",
    ] {
        assert_eq!(problems(page, text), 1, "{text}");
    }
    for (path, text) in [
        (READER, "fn f() { payload.take(); }"),
        (
            page,
            "#[get(\"/x\")]\nasync fn f(a: Slug) -> String { g(String::new()) }",
        ),
        (page, "#[get(\"/x\")]\nasync fn f(a: web::Path<String>) {}"),
        (
            page,
            "pub(crate) async fn show(a: Query<String>) -> String {}",
        ),
        (page, "fn f(text: String) -> Bytes {}"),
        (page, "// web::Payload\nfn f() { g(\"web::Json\"); }"),
        ("tests/pressure.rs", "async fn f(body: web::Payload) {}"),
        (
            "registry/demo/src/card.rs",
            "async fn f(body: web::Bytes) {}",
        ),
    ] {
        assert_eq!(problems(path, text), 0, "{path}: {text}");
    }
}
