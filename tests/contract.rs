//! The HTTP contract, tested from outside: the document, authorisation, problem documents, caching, CORS.

mod authorisation;
mod authorisation_table;
mod conformance;
mod fuzzed;
mod generated;
mod sweep;

use a2a_registry_api::Hit;
use a2a_registry_http::routes::openapi::operations::{
    ApiOperation, all_api_operations as operations,
};
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;

use crate::support::cards::card_json;
use crate::support::http_client;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Program, assert_exit, join_lines, registry_command};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

/// The checked-in document.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi/openapi.json");

/// A registry with one approved agent, and the origin that publishes its card.
async fn with_an_agent() -> (ServingRegistry, Origin, Hit) {
    let served = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    served.register(&origin.url("/a.json")).await;
    let hit = served.wait_for_hit("skill=repeat").await;
    (served, origin, hit)
}

/// The served, the printed and the checked-in document of a build are equal to the byte.
#[tokio::test]
async fn the_served_document_equals_the_checked_in_one() {
    let printed = Program::run(registry_command(["openapi"])).await;
    assert_exit(&printed, 0, "");
    let printed = format!("{}\n", join_lines(&printed.stdout));
    let served = RegistrySetup::new().start().await;
    let answer = served.request(Method::GET, "/openapi.json").send().await;
    assert_eq!(answer.unwrap().text().await.unwrap(), printed);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(DOCUMENT, &printed).unwrap();
    }
    let checked_in = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
    assert!(
        checked_in == printed,
        "the API has changed: check the difference, and run this test with UPDATE_EXPECT=1 to rewrite openapi/openapi.json"
    );
    let document: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let documented: usize = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .map(|path| path.as_object().unwrap().len())
        .sum();
    assert_eq!(documented, operations().len());
}

/// The documentation page loads everything from the registry.
#[tokio::test]
async fn the_documentation_page_loads_nothing_from_elsewhere() {
    let served = RegistrySetup::new().start().await;
    let moved = served.request(Method::GET, "/docs").send().await.unwrap();
    assert_eq!(moved.status(), 308);
    let page = served.request(Method::GET, "/docs/").send().await.unwrap();
    assert_eq!(page.status(), 200);
    let page = page.text().await.unwrap();
    for attribute in ["src=\"", "href=\""] {
        for (_, rest) in page
            .match_indices(attribute)
            .map(|(at, _)| page[at..].split_at(attribute.len()))
        {
            let (address, _) = rest.split_once('"').unwrap();
            assert!(!address.contains("//"), "{address} is on another host");
            let path = match address.starts_with('/') {
                true => address.to_owned(),
                false => format!("/docs/{}", address.trim_start_matches("./")),
            };
            let answer = served.request(Method::GET, &path);
            assert_eq!(answer.send().await.unwrap().status(), 200, "{address}");
        }
    }
}

fn header<'a>(answer: &'a Response, name: &str) -> Option<&'a str> {
    answer
        .headers()
        .get(name)
        .map(|value| value.to_str().unwrap())
}

/// Other sites may read public `GET` responses to anonymous clients, and nothing else.
#[tokio::test]
async fn other_sites_may_read_public_responses_only() {
    let (served, _origin, hit) = with_an_agent().await;
    let id = hit.summary.id;
    let allowed = |answer: &Response| {
        assert_eq!(header(answer, "access-control-allow-credentials"), None);
        header(answer, "access-control-allow-origin").map(str::to_owned)
    };
    let public = [
        "/v1/agents".to_owned(),
        format!("/v1/agents/{id}"),
        format!("/v1/agents/{id}/card"),
        format!("/agents/{id}/.well-known/agent-card.json"),
        "/openapi.json".to_owned(),
        "/v1/agents/01890a5d-ac96-774b-bcce-b302099a8057".to_owned(),
    ];
    for path in &public {
        let get = served
            .request(Method::GET, path)
            .header("origin", "https://a.example");
        assert_eq!(
            allowed(&get.send().await.unwrap()).as_deref(),
            Some("*"),
            "{path}"
        );
        let signed_in = served
            .admin_request(Method::GET, path)
            .send()
            .await
            .unwrap();
        assert_eq!(allowed(&signed_in), None, "{path}");
        let preflight = served
            .request(Method::OPTIONS, path)
            .header("access-control-request-method", "GET");
        let preflight = preflight.send().await.unwrap();
        assert!(preflight.status().is_success(), "{path}");
        assert_eq!(allowed(&preflight).as_deref(), Some("*"), "{path}");
        let sent = header(&preflight, "access-control-allow-headers").unwrap();
        assert!(!sent.to_lowercase().contains("authorization"), "{sent}");
    }
    for path in [
        "/",
        "/register",
        &format!("/agents/{id}/"),
        "/metrics",
        "/readyz",
    ] {
        let answer = served.request(Method::GET, path).send().await.unwrap();
        assert_eq!(allowed(&answer), None, "{path}");
    }
    for (method, path) in [
        (Method::POST, "/v1/domains".to_owned()),
        (Method::POST, format!("/v1/agents/{id}:suspend")),
        (Method::DELETE, format!("/v1/tokens/{id}")),
    ] {
        let write = served.request(method.clone(), &path);
        let write = write.header("origin", "https://a.example").send().await;
        assert_eq!(allowed(&write.unwrap()), None, "{path}");
        let preflight = served
            .request(Method::OPTIONS, &path)
            .header("access-control-request-method", method.as_str());
        assert_eq!(allowed(&preflight.send().await.unwrap()), None, "{path}");
    }
}

/// A client that has the current version gets 304; `HEAD` returns the headers of `GET`, without the body.
#[tokio::test]
async fn unchanged_responses_get_304() {
    let (served, origin, hit) = with_an_agent().await;
    let id = hit.summary.id;
    let domain = origin.address().to_string();
    for path in [
        format!("/v1/agents/{id}"),
        format!("/v1/agents/{id}/card"),
        format!("/v1/agents/{id}/card?version={}", hit.summary.card_digest),
        format!("/agents/{id}/.well-known/agent-card.json"),
        format!("/agents/{id}/.well-known/agent.json"),
        format!("/v1/agents/{id}/findings"),
        format!("/v1/domains/{domain}"),
    ] {
        let first = served.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(first.status(), 200, "{path}");
        let tag = header(&first, "etag").expect(&path).to_owned();
        let body = first.bytes().await.unwrap();

        for known in [tag.clone(), format!("\"other\", {tag}"), "*".to_owned()] {
            let again = served
                .request(Method::GET, &path)
                .header("if-none-match", &known);
            let again = again.send().await.unwrap();
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{path} {known}");
            assert_eq!(header(&again, "etag"), Some(tag.as_str()), "{path}");
            assert!(again.bytes().await.unwrap().is_empty(), "{path}");
        }
        let other = served
            .request(Method::GET, &path)
            .header("if-none-match", "\"x\"");
        assert_eq!(other.send().await.unwrap().status(), 200, "{path}");

        let head = served.request(Method::HEAD, &path).send().await.unwrap();
        assert_eq!(
            (head.status(), header(&head, "etag")),
            (StatusCode::OK, Some(tag.as_str()))
        );
        let length = header(&head, "content-length").unwrap().parse::<usize>();
        assert_eq!(length.unwrap(), body.len(), "{path}");
        assert!(head.bytes().await.unwrap().is_empty(), "{path}");
    }
    // The `ETag` of a card is the digest of its bytes, and compression does not change it.
    let card_path = format!("{}/v1/agents/{id}/card", served.url);
    let plain = http_client()
        .get(&card_path)
        .header("accept-encoding", "gzip, br");
    let plain = plain.send().await.unwrap();
    assert_eq!(
        header(&plain, "etag").unwrap().trim_matches('"'),
        hit.summary.card_digest
    );
    assert_eq!(
        plain.bytes().await.unwrap(),
        card_json("Echo", "repeat").as_bytes()
    );
}

/// An agent that the caller may not see gets the same response as one that never existed.
#[tokio::test]
async fn a_hidden_agent_looks_like_a_missing_one() {
    let served = RegistrySetup::new().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Secret", "hide")));
    let registered = served
        .run_admin_command(&["register", &origin.url("/a.json")])
        .await;
    assert!(
        join_lines(&registered.stdout).contains("pending"),
        "{registered:#?}"
    );
    let domain: Value = served
        .read_as_admin(&format!("/v1/domains/{}", origin.address()))
        .await;
    let hidden = domain["agents"][0].as_str().unwrap().to_owned();
    let missing = "01890a5d-ac96-774b-bcce-b302099a8057";
    let publisher = served.create_token("stranger", "publisher").await;
    for path in ["", "/card", "/versions", "/findings"] {
        for token in [None, Some(&publisher)] {
            let answer = async |id: &str| {
                let mut request = served.request(Method::GET, &format!("/v1/agents/{id}{path}"));
                if let Some(token) = token {
                    request = request.bearer_auth(token);
                }
                let answer = request.send().await.unwrap();
                assert_eq!(answer.status(), 404, "{path}");
                answer.text().await.unwrap().replace(id, "ID")
            };
            assert_eq!(answer(&hidden).await, answer(missing).await, "{path}");
        }
    }
    let url = format!("/v1/agents:lookup?url={}", origin.url("/a.json"));
    assert_eq!(
        served
            .request(Method::GET, &url)
            .send()
            .await
            .unwrap()
            .status(),
        404
    );
    let read = async |path: &str| {
        let answer = served.request(Method::GET, path).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        assert!(!answer.to_string().contains("Secret"), "{path}: {answer}");
        answer
    };
    let listed = read("/v1/agents?q=hide&facets=tag").await;
    assert_eq!(listed["total"], 0);
    assert_eq!(listed["facets"]["tag"]["values"], Value::Array(Vec::new()));
    let suggested = read("/v1/agents:suggest?q=hid").await;
    assert_eq!(suggested["suggestions"], Value::Array(Vec::new()));
    assert_eq!(read("/v1/agents").await["total"], 0);
}

/// The path of an operation with its parameters filled in.
fn filled(operation: &ApiOperation, parameters: &[(&str, &str)]) -> String {
    let mut path = operation.path.clone();
    for (name, value) in parameters {
        path = path.replace(&format!("{{{name}}}"), value);
    }
    path
}

fn method(operation: &ApiOperation) -> Method {
    operation.method.parse().unwrap()
}
