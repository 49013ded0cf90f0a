//! Tests of the checks: exchanges that are as documented, and others that are not.

use std::panic::AssertUnwindSafe;

use serde_json::{Value, json};

use super::{ApiDocument, ObservedRequest, ObservedResponse, ValidatingProxy};
use crate::support::http_client;
use crate::support::origin::{Origin, OriginReply};

#[test]
fn undocumented_exchanges_are_found() {
    let document = ApiDocument::current();
    let ask = |method: &str, target: &str, body: &str| ObservedRequest {
        method: method.to_owned(),
        target: target.to_owned(),
        headers: Vec::new(),
        body: Some(body.as_bytes().to_vec()),
    };
    let answer = |status: u16, media_type: &str, body: &Value| ObservedResponse {
        status,
        headers: vec![("content-type".to_owned(), media_type.to_owned())],
        body: Some(body.to_string().into_bytes()),
    };
    let json = "application/json";
    let problem = |status: u16, pointer: &str| {
        let body = json!({"type": "/problems/invalid-request", "title": "t", "status": status, "detail": "d",
            "instance": "/", "errors": [{"pointer": pointer, "detail": "d"}]});
        answer(status, "application/problem+json", &body)
    };
    let list = json!({"agents": [], "total": 0, "total_fitting": 0, "facets": {}, "facets_count": "total",
        "order": "updated", "mode": "lexical", "hints": [], "next_page_token": null});
    let with = |name: &str, value: Value| {
        let mut list = list.clone();
        list[name] = value;
        answer(200, json, &list)
    };
    let search = ask("GET", "/v1/agents?q=a&tag=b&tag=c&page_size=5", "");
    for (request, answer, expected) in [
        (search.clone(), answer(200, json, &list), None),
        (search.clone(), with("total", json!("0")), Some("/total")),
        (search.clone(), with("surprise", json!(1)), Some("surprise")),
        (
            search.clone(),
            with("agents", json!([{"id": 1}])),
            Some("/agents/0"),
        ),
        (
            search.clone(),
            answer(200, "text/html", &list),
            Some("text/html is not documented"),
        ),
        (
            search.clone(),
            answer(203, json, &list),
            Some("no such status"),
        ),
        (
            search.clone(),
            problem(400, "/tag"),
            Some("refused at [\"/tag\"]"),
        ),
        (search.clone(), problem(400, "/facets"), None),
        (
            search,
            problem(401, ""),
            Some("WWW-Authenticate is missing"),
        ),
        (
            ask("GET", "/v1/agents?surprise=1", ""),
            answer(200, json, &list),
            Some("no parameter surprise"),
        ),
        (
            ask("GET", "/v1/agents?page_size=500", ""),
            problem(400, "/page_size"),
            None,
        ),
        (
            ask("GET", "/v1/agents?page_size=500", ""),
            answer(200, json, &list),
            Some("page_size: "),
        ),
        (
            ask("POST", "/v1/tokens", "{\"name\": 7}"),
            answer(201, json, &json!({})),
            Some("forbidden by the document"),
        ),
        (
            ask(
                "POST",
                "/v1/tokens",
                "{\"name\": \"a\", \"role\": \"curator\"}",
            ),
            problem(400, "/name"),
            Some("refused at"),
        ),
        (
            ask("GET", "/v1/nothing", ""),
            answer(200, json, &json!({})),
            Some("no such path"),
        ),
        (
            ask("PUT", "/v1/agents", ""),
            answer(200, json, &json!({})),
            Some("no such method"),
        ),
    ] {
        let wrong = document
            .check_exchange(&request, &answer)
            .violations
            .join("\n");
        match expected {
            None => assert_eq!(wrong, "", "{request:?}"),
            Some(expected) => assert!(wrong.contains(expected), "{expected}: {request:?}: {wrong}"),
        }
    }
}

/// An undocumented response fails the test that owns its registry.
#[tokio::test]
async fn an_undocumented_response_fails_the_test_of_its_registry() {
    for (path, body, kept) in [
        ("/v1/agents:suggest", "{\"suggestions\": []}", true),
        ("/v1/agents:suggest", "{\"suggestions\": 7}", false),
        ("/v1/surprises", "{}", false),
        ("/crawler", "{}", true),
    ] {
        let origin = Origin::start();
        origin.set_reply(path, OriginReply::json(body));
        let proxy = ValidatingProxy::new().await;
        assert!(proxy.forward_to(&origin.url("")));
        let asked = http_client().get(format!("{}{path}?q=a", proxy.url()));
        let answer = asked.send().await.unwrap();
        assert_eq!(
            answer.text().await.unwrap(),
            body,
            "the response is forwarded"
        );
        let checked: u64 = proxy.counts().values().flat_map(|one| one.values()).sum();
        assert_eq!(checked, u64::from(path == "/v1/agents:suggest"), "{path}");
        let dropped = std::panic::catch_unwind(AssertUnwindSafe(|| drop(proxy)));
        assert_eq!(dropped.is_ok(), kept, "{path}: {body}");
    }
}
