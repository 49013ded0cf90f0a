//! The routes of the API are in the attributes of its handlers, and the document has exactly these. If a handler has
//! several addresses, the document describes the further ones from a separate list.

use std::collections::BTreeSet;

use serde_json::Value;

use super::assert_tidy;
use super::tree::{SourceFile, root, rust_sources};

/// The file with the list of further addresses.
const LIST: &str = "registry/http/src/routes/openapi/other_addresses.rs";
/// The attributes that make a function a handler.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// A method and a path, such as `GET /v1/agents`.
type Route = String;

/// The routes in the attributes of a file.
fn routed(source: &SourceFile) -> Vec<Route> {
    let lines: Vec<&str> = source.text.lines().take(source.production_lines).collect();
    let text = lines.join("\n");
    let attributes = text.split("#[").skip(1);
    let routes = attributes.filter_map(|attribute| {
        let (method, rest) = attribute.split_once('(')?;
        let (path, _) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
        METHODS
            .contains(&method)
            .then(|| format!("{} {path}", method.to_uppercase()))
    });
    routes.collect()
}

/// The operations of the API document.
fn operations(document: &Value) -> impl Iterator<Item = Route> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let methods = item.as_object().into_iter().flatten();
        methods.map(move |(method, _)| format!("{} {path}", method.to_uppercase()))
    })
}

/// Compares them: routes that the document lacks, and operations that no handler has.
fn compare(routed: &BTreeSet<Route>, operations: &BTreeSet<Route>) -> Vec<String> {
    let missing = routed.difference(operations);
    let missing = missing.map(|route| {
        format!("{LIST}: {route} is in the attributes of a handler, and not in the document")
    });
    let surplus = operations.difference(routed);
    let surplus = surplus.map(|route| {
        format!("{LIST}: {route} is in the document, and in the attributes of no handler")
    });
    missing.chain(surplus).collect()
}

#[test]
fn the_document_has_every_route_of_the_api() {
    let text = std::fs::read_to_string(root().join("openapi/openapi.json")).unwrap();
    let operations: BTreeSet<Route> = operations(&serde_json::from_str(&text).unwrap()).collect();
    let sources = rust_sources();
    let server = sources
        .iter()
        .filter(|source| source.path.starts_with("registry/http/src/") && !source.is_test());
    let routed: BTreeSet<Route> = server.flat_map(routed).collect();
    assert_tidy(&compare(&routed, &operations));
}

#[test]
fn missing_and_extra_routes_are_found() {
    let file = SourceFile::new(
        "a.rs",
        "#[get(\"/v1/x\")]\nfn a() {}\n#[routes]\n#[post(\"/v1/y\")]\n#[post(\n    \"/v1/z\",\n    name = \"z\"\n)]\nfn b() {}\n",
    );
    let routed: BTreeSet<Route> = routed(&file).into_iter().collect();
    let problems = |operations: &[&str]| {
        let operations = operations.iter().map(|route| (*route).to_owned());
        compare(&routed, &operations.collect()).len()
    };
    assert_eq!(problems(&["GET /v1/x", "POST /v1/y", "POST /v1/z"]), 0);
    assert_eq!(problems(&["GET /v1/x", "POST /v1/y"]), 1);
    assert_eq!(
        problems(&["GET /v1/x", "POST /v1/y", "POST /v1/z", "PUT /v1/x"]),
        1
    );
}
