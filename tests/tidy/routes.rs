//! The table of routes, from which 405 responses and `Allow` are made, has the route of every handler. Operations of the
//! API come from the document; the others are listed by hand, and that list is compared with the handlers here.

use std::collections::BTreeSet;

use serde_json::Value;

use super::assert_tidy;
use super::tree::{Source, root, sources};

/// The file with the list.
const LIST: &str = "registry/server/src/routes.rs";
/// The attributes that make a function a handler.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// A method and a path, such as `GET /docs`.
type Route = String;

/// The routes in the attributes of a file.
fn routed(source: &Source) -> impl Iterator<Item = Route> {
    let lines = source.text.lines().take(source.production_lines);
    lines.filter_map(|line| {
        let (method, rest) = line.trim().strip_prefix("#[")?.split_once("(\"")?;
        let path = rest.strip_suffix("\")]")?;
        METHODS
            .contains(&method)
            .then(|| format!("{} {path}", method.to_uppercase()))
    })
}

/// The routes in the list.
fn listed(list: &str) -> impl Iterator<Item = Route> {
    list.lines().filter_map(|line| {
        let entry = line.trim().strip_prefix("(\"")?.strip_suffix("\"),")?;
        let (path, method) = entry.split_once("\", \"")?;
        Some(format!("{method} {path}"))
    })
}

/// The operations of the API document.
fn operations(document: &Value) -> impl Iterator<Item = Route> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let methods = item.as_object().into_iter().flatten();
        methods.map(move |(method, _)| format!("{} {path}", method.to_uppercase()))
    })
}

/// Compares them: routes that are neither listed nor operations, and listed ones without a handler.
fn compare(
    routed: &BTreeSet<Route>,
    listed: &BTreeSet<Route>,
    operations: &BTreeSet<Route>,
) -> Vec<String> {
    let missing = routed
        .iter()
        .filter(|route| !listed.contains(*route) && !operations.contains(*route))
        .map(|route| format!("{LIST}: PLAIN_ROUTES lacks {route}"));
    let surplus = listed
        .iter()
        .filter(|route| !routed.contains(*route) || operations.contains(*route))
        .map(|route| {
            format!("{LIST}: PLAIN_ROUTES names {route}, which no handler outside of the API has")
        });
    missing.chain(surplus).collect()
}

#[test]
fn every_route_outside_the_api_is_listed() {
    let text = std::fs::read_to_string(root().join("openapi/openapi.json")).unwrap();
    let operations: BTreeSet<Route> = operations(&serde_json::from_str(&text).unwrap()).collect();
    let sources = sources();
    let server = sources
        .iter()
        .filter(|source| source.path.starts_with("registry/server/src/") && !source.is_test());
    let routed: BTreeSet<Route> = server.flat_map(routed).collect();
    assert!(routed.len() > operations.len(), "no handlers were found");
    let list = sources.iter().find(|source| source.path == LIST).unwrap();
    let listed: BTreeSet<Route> = listed(&list.text).collect();
    assert_tidy(&compare(&routed, &listed, &operations));
}

#[test]
fn missing_and_extra_routes_are_found() {
    let file = Source::new(
        "a.rs",
        "#[get(\"/docs\")]\nfn a() {}\n#[post(\"/v1/x\")]\nfn b() {}\n",
    );
    let routed: BTreeSet<Route> = routed(&file).collect();
    let operations = BTreeSet::from(["POST /v1/x".to_owned()]);
    let entries = |text: &str| listed(text).collect::<BTreeSet<Route>>();
    let problems = |list: &str| compare(&routed, &entries(list), &operations).len();
    assert_eq!(problems("    (\"/docs\", \"GET\"),\n"), 0);
    assert_eq!(problems(""), 1);
    assert_eq!(problems("(\"/docs\", \"POST\"),"), 2);
    assert_eq!(problems("(\"/docs\", \"GET\"),\n(\"/v1/x\", \"POST\"),"), 1);
}
