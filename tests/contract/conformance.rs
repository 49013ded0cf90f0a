//! Conformance to the document: its examples, and the requests of the whole run.

use std::collections::BTreeSet;

use a2a_registry_http::routes::openapi::operations::all_api_operations as operations;
use serde_json::Value;

use crate::support::exchange::{ApiDocument, read_run_counts};

fn each<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value[name].as_object().into_iter().flatten()
}

/// Every body, every response with a shape of its own and every identifier has a valid example.
#[test]
fn every_example_is_valid() {
    let document = ApiDocument::current();
    let mut wrong = Vec::new();
    let mut held = |place: &str, schema: &Value, example: &Value| {
        let validator = document.validator(schema);
        for error in validator.iter_errors(example) {
            wrong.push(format!("{place}: {}: {error}", error.instance_path()));
        }
    };
    let (mut named, mut missing) = (0, Vec::new());
    for (path, item) in each(document.json(), "paths") {
        for (method, operation) in item.as_object().unwrap() {
            let place = format!("{method} {path}");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = &parameter["name"];
                match parameter.get("example") {
                    Some(example) => {
                        held(&format!("{place} {name}"), &parameter["schema"], example)
                    }
                    None if parameter["in"] == "path" => missing.push(format!("{place} {name}")),
                    None => {}
                }
            }
            let answers =
                each(operation, "responses").map(|(status, answer)| (status.as_str(), answer));
            let body = operation
                .get("requestBody")
                .map(|body| ("the request", body));
            for (what, message) in answers.chain(body) {
                for (media_type, content) in each(message, "content") {
                    let place = format!("{place} {what} {media_type}");
                    let schema = &content["schema"];
                    match content.get("example") {
                        Some(example) => held(&place, schema, example),
                        None if schema.get("$ref").is_some() => missing.push(place),
                        None => continue,
                    }
                    named += 1;
                }
            }
        }
    }
    assert!(named > 60, "{named}");
    assert!(missing.is_empty(), "no example: {missing:#?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Check at the end of `tests/run`: the tests of the run have requested every operation, and each response was checked.
#[test]
#[ignore = "only a whole run has asked for everything; tests/run asks at its end"]
fn the_run_has_exercised_every_operation() {
    let gathered =
        read_run_counts().expect("A2A_REGISTRY_TEST_EXCHANGES names the folder of a run");
    let checked: u64 = gathered
        .values()
        .flat_map(|statuses| statuses.values())
        .sum();
    println!("{checked} exchanges were checked against the document");
    let requested: BTreeSet<&str> = gathered.keys().map(String::as_str).collect();
    for (id, documented) in ApiDocument::current().operations() {
        let statuses = gathered.get(id);
        let met = |status: &u16| statuses.is_some_and(|statuses| statuses.contains_key(status));
        let unmet: Vec<String> = documented
            .iter()
            .filter(|status| !met(status))
            .map(u16::to_string)
            .collect();
        println!("{id}: {statuses:?}; never returned: {}", unmet.join(" "));
    }
    let never: Vec<&str> = operations()
        .iter()
        .map(|operation| operation.id.as_str())
        .filter(|id| !requested.contains(id))
        .collect();
    assert!(never.is_empty(), "no test requests {never:?}");
    assert!(checked > 1000, "{checked}");
}
