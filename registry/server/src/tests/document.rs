//! Tests of the `OpenAPI` document that is generated from the handlers.

use std::collections::BTreeSet;

use a2a_registry_http::routes::openapi::default_openapi_text;
use a2a_registry_http::routes::openapi::operations::all_api_operations as operations;
use actix_web::test::TestRequest;
use serde_json::{Value, json};

use crate::tests::{ADMIN, Registry, bearer};

#[test]
fn every_operation_is_named_once_and_tagged() {
    let document: serde_json::Value = serde_json::from_str(&default_openapi_text()).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let all = operations();
    for (index, operation) in all.iter().enumerate() {
        assert!(
            all[..index].iter().all(|other| other.id != operation.id),
            "{operation:?}"
        );
        let method = operation.method.to_lowercase();
        let described = &document["paths"][&operation.path][&method];
        assert!(described["tags"][0].is_string(), "{operation:?}");
        assert!(described["summary"].is_string(), "{operation:?}");
        // Every path parameter is described, in order.
        let parts = operation.path.split('{').skip(1);
        let parts: Vec<&str> = parts.map(|rest| rest.split('}').next().unwrap()).collect();
        let parameters = described["parameters"].as_array().into_iter().flatten();
        let in_path = parameters.filter(|one| one["in"] == "path");
        let named: Vec<&str> = in_path.map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(named, parts, "{operation:?}");
        let answers = described["responses"].as_object().unwrap();
        for (status, answer) in answers {
            // Every response has a distinct status, and every error is a problem document.
            let status: u16 = status.parse().unwrap();
            let target = answer["$ref"]
                .as_str()
                .map(|target| target.trim_start_matches('#'));
            let answer = target.map_or(answer, |target| document.pointer(target).unwrap());
            let problem = answer["content"].get("application/problem+json").is_some();
            // ARD has errors of its own.
            let is_ard = operation.path.starts_with("/ard/");
            assert_eq!(problem, status >= 400 && !is_ard, "{operation:?} {status}");
        }
        assert!(
            answers.contains_key("500") && answers.contains_key("503"),
            "{operation:?}"
        );
    }
}

/// Enum values of the document are those of responses, requests and the database.
#[test]
fn enums_are_named_as_on_the_wire() {
    use a2a_registry_api::ard::Federation;
    use a2a_registry_domain::coverage::Coverage;
    use a2a_registry_domain::endpoint::EndpointState;
    use a2a_registry_domain::event::EventKind;
    use a2a_registry_domain::hook::{DeliveryState, HookFormat, HookState, NoticeKind};
    use a2a_registry_domain::lifecycle::{Hold, LivenessState, ShownLifecycle, Visibility};
    use a2a_registry_domain::preview_state::PreviewState;
    use a2a_registry_domain::review::{ChangeClass, ReviewKind, ReviewState, VersionState};
    use a2a_registry_domain::role::{Role, Scope};
    use a2a_registry_domain::signature::SignatureState;
    use a2a_registry_domain::source::CredentialKind;

    let document: serde_json::Value = serde_json::from_str(&default_openapi_text()).unwrap();
    let mut documented = 0;
    macro_rules! same {
        ($($name:ident)+) => {$(
            let names = &document["components"]["schemas"][stringify!($name)]["enum"];
            let wire = serde_json::to_value($name::ALL).unwrap();
            assert_eq!(names, &wire, stringify!($name));
            documented += 1;
        )+};
    }
    same!(ChangeClass Coverage CredentialKind DeliveryState EndpointState EventKind Hold HookFormat HookState LivenessState NoticeKind PreviewState ReviewKind ReviewState Role Scope ShownLifecycle SignatureState VersionState Visibility);
    let modes = [Federation::Auto, Federation::Referrals, Federation::None];
    let names = &document["components"]["schemas"]["ArdFederation"]["enum"];
    assert_eq!(names, &serde_json::to_value(modes).unwrap());
    documented += 1;
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let with_names = schemas
        .values()
        .filter(|schema| schema.get("enum").is_some());
    assert_eq!(
        with_names.count(),
        documented,
        "an enum that is not compared"
    );
}

/// The description of `fields` names every field of a hit that can be requested.
#[test]
fn the_fields_of_hits_are_described() {
    let document: Value = serde_json::from_str(&default_openapi_text()).unwrap();
    let parameters = document["paths"]["/v1/agents"]["get"]["parameters"].as_array();
    let mut parameters = parameters.unwrap().iter();
    let fields = parameters.find(|one| one["name"] == "fields").unwrap();
    let description = fields["description"].as_str().unwrap();
    let (usual, named) = description.split_once("Shown only if named").unwrap();
    for name in a2a_registry_api::HitFields::all_names() {
        let written = format!("`{name}`");
        let is_usual = a2a_registry_api::HitFields::default().includes(name);
        assert_eq!(usual.contains(&written), is_usual, "{name}");
        assert_eq!(named.contains(&written), !is_usual, "{name}");
    }
}

/// The limits in the document are the enforced ones; a configured limit shows the configured value.
#[test]
fn limits_are_those_of_the_code() {
    use a2a_registry_api::limits::{
        DEFAULT_PAGE_SIZE, DEFAULT_SIMILAR_AGENTS, MAX_PAGE_SIZE, MAX_REASON, MAX_SIMILAR_AGENTS,
    };
    use a2a_registry_core::config::LimitsConfig;

    let document: serde_json::Value = serde_json::from_str(&default_openapi_text()).unwrap();
    let mut page_sizes = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let parameters = item["get"]["parameters"].as_array().into_iter().flatten();
        for parameter in parameters {
            let schema = &parameter["schema"];
            match parameter["name"].as_str().unwrap() {
                "page_size" => {
                    let (most, default) = match path.ends_with("/similar") {
                        true => (MAX_SIMILAR_AGENTS, DEFAULT_SIMILAR_AGENTS),
                        false => (MAX_PAGE_SIZE, DEFAULT_PAGE_SIZE),
                    };
                    assert_eq!(schema["minimum"], 1, "{path}");
                    assert_eq!(schema["maximum"], most, "{path}");
                    assert_eq!(schema["default"], default, "{path}");
                    page_sizes += 1;
                }
                "q" => assert_eq!(schema["maxLength"], LimitsConfig::default().query_chars),
                _ => {}
            }
        }
    }
    assert!(page_sizes >= 6, "{page_sizes}");
    let reason = &document["components"]["schemas"]["Reason"];
    assert_eq!(reason["maxLength"], MAX_REASON);
}

#[actix_web::test]
async fn the_document_served_has_the_limits_of_its_operator() {
    let registry = Registry::with(|config| config.limits.query_chars = 77).await;
    let document = registry.get("/openapi.json").await.json();
    for path in ["/v1/agents", "/v1/agents:suggest"] {
        let parameters = document["paths"][path]["get"]["parameters"].as_array();
        let q = parameters.unwrap().iter().find(|one| one["name"] == "q");
        assert_eq!(q.unwrap()["schema"]["maxLength"], 77, "{path}");
    }
}

/// openapi-generator writes TypeScript that does not compile for a list whose items have alternatives if the list
/// itself is one of several alternatives.
#[test]
fn no_alternative_is_a_list_of_alternatives() {
    fn check(document: &Value, value: &Value, at: &str) {
        for alternatives in ["oneOf", "anyOf"].map(|name| value.get(name)) {
            for one in alternatives.and_then(Value::as_array).into_iter().flatten() {
                let items = one.get("items").map(|items| named(document, items));
                let nested = items.is_some_and(|items| {
                    items.get("oneOf").is_some() || items.get("anyOf").is_some()
                });
                assert!(!nested, "{at}: {one}");
            }
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    check(document, member, &format!("{at}/{name}"));
                }
            }
            Value::Array(items) => items.iter().for_each(|item| check(document, item, at)),
            _ => {}
        }
    }
    let document: Value = serde_json::from_str(&default_openapi_text()).unwrap();
    check(&document, &document, "");
}

#[test]
fn every_reference_leads_somewhere() {
    fn references(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(members) => {
                for (name, member) in members {
                    match member.as_str() {
                        Some(target) if name == "$ref" => found.push(target.to_owned()),
                        _ => references(member, found),
                    }
                }
            }
            serde_json::Value::Array(items) => {
                items.iter().for_each(|item| references(item, found))
            }
            _ => {}
        }
    }
    let document: serde_json::Value = serde_json::from_str(&default_openapi_text()).unwrap();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 20);
    for target in found {
        let pointer = target.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{target}");
    }
}

/// Schema that a member references, also if the member is nullable.
fn named<'a>(document: &'a Value, member: &'a Value) -> &'a Value {
    let schema = member.get("oneOf").map_or(member, |either| &either[0]);
    let Some(name) = schema["$ref"].as_str() else {
        return member;
    };
    let pointer = name.strip_prefix('#').unwrap();
    document.pointer(pointer).unwrap()
}

/// Values just outside of the limits of a schema.
fn outside(schema: &Value) -> Vec<Value> {
    let number = |name: &str| schema[name].as_i64();
    let length = |name: &str| schema[name].as_u64().map(|length| length as usize);
    let mut wrong: Vec<Value> = Vec::new();
    wrong.extend(number("maximum").map(|most| (most + 1).into()));
    wrong.extend(number("minimum").map(|least| (least - 1).into()));
    wrong.extend(length("maxLength").map(|most| "a".repeat(most + 1).into()));
    wrong.extend(length("minLength").map(|least| "a".repeat(least - 1).into()));
    wrong
}

/// The limits of parameters in the document are the enforced ones: a value just outside is rejected, and the error
/// names the parameter.
#[actix_web::test]
async fn the_limits_of_parameters_are_those_of_the_code() {
    let registry = Registry::new().await;
    let document: Value = serde_json::from_str(&default_openapi_text()).unwrap();
    let mut seen = BTreeSet::new();
    for operation in operations() {
        let method = operation.method.to_lowercase();
        let described = &document["paths"][&operation.path][&method];
        let parameters = described["parameters"].as_array();
        for parameter in parameters.into_iter().flatten() {
            let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
            let limits = outside(schema);
            if name == "page_size" {
                let most = if operation.id == "agent_similar" {
                    20
                } else {
                    100
                };
                assert_eq!(
                    (&schema["minimum"], &schema["maximum"]),
                    (&json!(1), &json!(most))
                );
            }
            // Parameters of an agent that does not exist are not checked.
            if operation.path.contains('{') || limits.is_empty() {
                continue;
            }
            seen.insert(format!("{} {name}", operation.id));
            for wrong in limits {
                let wrong = wrong
                    .as_str()
                    .map_or_else(|| wrong.to_string(), str::to_owned);
                let other = match operation.id.as_str() {
                    "agent_suggest" if name != "q" => "q=a&",
                    _ => "",
                };
                let path = format!("{}?{other}{name}={wrong}", operation.path);
                let request = bearer(TestRequest::get().uri(&path), ADMIN);
                let answer = registry.ask(request).await;
                if operation.path.starts_with("/ard/") {
                    assert_eq!(answer.json()["errorCode"], "INVALID_ARGUMENT", "{path}");
                    continue;
                }
                let problem = answer.problem(400, "invalid-request");
                assert_eq!(
                    problem["errors"][0]["pointer"],
                    format!("/{name}"),
                    "{path}"
                );
            }
        }
    }
    for known in [
        "agent_search q",
        "agent_suggest q",
        "agent_lookup url",
        "token_list page_size",
        "event_list page_size",
    ] {
        assert!(seen.contains(known), "{known}: {seen:?}");
    }
}

#[actix_web::test]
async fn the_limits_of_a_new_token_are_those_of_the_code() {
    let registry = Registry::new().await;
    let document: Value = serde_json::from_str(&default_openapi_text()).unwrap();
    let schema = &document["components"]["schemas"]["NewToken"];
    let mut tried = 0;
    for (name, member) in schema["properties"].as_object().unwrap() {
        for wrong in outside(named(&document, member)) {
            let mut new = json!({"account": "another", "role": "publisher", "name": "a test"});
            new[name] = wrong;
            let request = bearer(TestRequest::post().uri("/v1/tokens"), ADMIN).set_json(&new);
            let problem = registry.ask(request).await.problem(400, "invalid-request");
            assert_eq!(problem["errors"][0]["pointer"], format!("/{name}"), "{new}");
            tried += 1;
        }
    }
    assert_eq!(tried, 6, "{schema}");
}

#[actix_web::test]
async fn the_document_and_its_page_are_served() {
    let registry = Registry::new().await;
    let document = registry.get("/openapi.json").await;
    assert_eq!(document.body, default_openapi_text());
    let folder = registry.get("/docs").await;
    assert_eq!(
        (folder.status.as_u16(), folder.header("location")),
        (308, "docs/")
    );
    let page = registry.get("/docs/").await;
    assert_eq!(page.status, 200);
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(
        page.header("content-security-policy")
            .contains("script-src 'self';"),
        "{page:?}"
    );
    assert!(
        !text.contains("http://") && !text.contains("https://"),
        "{text}"
    );
    // Everything the page loads exists, and the page itself contains no script.
    let mut loaded = 0;
    for part in text
        .split(['"', '\''])
        .filter(|part| part.ends_with(".js") || part.ends_with(".css"))
    {
        let file = registry
            .get(&format!("/docs/{}", part.trim_start_matches("./")))
            .await;
        assert_eq!(file.status, 200, "{part}");
        loaded += 1;
    }
    assert!(loaded >= 3);
    assert!(
        text.split("<script")
            .skip(1)
            .all(|script| script.contains("src=")),
        "{text}"
    );
    let start = registry.get("/docs/swagger-initializer.js").await;
    assert!(String::from_utf8_lossy(&start.body).contains("../openapi.json"));
    registry
        .get("/docs/../../etc/passwd")
        .await
        .problem(404, "not-found");
}
