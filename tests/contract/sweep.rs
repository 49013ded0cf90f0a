//! Invalid input for every operation: each error is a problem document.

use std::collections::BTreeSet;

use a2a_registry_http::problems::problem::ProblemDocument;
use a2a_registry_http::routes::openapi::operations::all_api_operations as operations;
use reqwest::{Method, Response};

use super::{filled, method, with_an_agent};
use crate::support::serving_registry::ServingRegistry;

/// Checks a response: an error must be a complete problem document. Returns its slug.
async fn problem_slug(path: &str, answer: Response) -> Option<String> {
    let status = answer.status();
    if !status.is_client_error() && !status.is_server_error() {
        return None;
    }
    assert!(!status.is_server_error(), "{path}: {status}");
    let media_type = answer.headers().get("content-type").cloned();
    let allow = answer.headers().contains_key("allow");
    let body = answer.bytes().await.unwrap();
    let said = String::from_utf8_lossy(&body);
    if path.starts_with("/ard/") {
        // A dialect with errors of its own.
        assert_eq!(media_type.unwrap(), "application/json", "{path}: {said}");
        let error: a2a_registry_api::ard::Error = serde_json::from_slice(&body).unwrap();
        assert!(!error.message.is_empty(), "{path}: {said}");
        let known = matches!(status.as_u16(), 400 | 401 | 404 | 405 | 429);
        assert!(known, "{path}: {status} {said}");
        return (status == 400).then(|| "invalid-request".to_owned());
    }
    assert_eq!(
        media_type.unwrap(),
        "application/problem+json",
        "{path}: {said}"
    );
    let problem: ProblemDocument = serde_json::from_slice(&body).unwrap();
    assert_eq!(problem.status, status.as_u16(), "{path}");
    assert_eq!(
        problem.status == 405,
        allow,
        "{path}: 405 and no other status has Allow"
    );
    assert!(
        !problem.title.is_empty() && !problem.detail.is_empty(),
        "{path}: {said}"
    );
    assert!(path.starts_with(&problem.instance), "{path}: {said}");
    let slug = problem.kind.strip_prefix("/problems/");
    Some(slug.unwrap_or_else(|| panic!("{path}: {said}")).to_owned())
}

const IDS: &[&str] = &[
    "nonsense",
    "01890a5d-ac96-774b-bcce-b302099a8057",
    "urn:air:nobody.example:agents:x",
    "%zz",
    "%",
    "%ff%fe",
    "%00",
    "..%2f..%2fetc",
    "a%3Fb",
    "%F0%9F%8D%8C",
];

const BODIES: &[(&str, &str)] = &[
    ("application/json", ""),
    ("application/json", "{"),
    ("application/json", "[]"),
    ("application/json", "null"),
    ("application/json", "{\"surprise\": 1}"),
    (
        "application/json",
        "{\"reason\": 7, \"domain\": {}, \"digest\": []}",
    ),
    ("text/plain", "{}"),
    ("application/x-www-form-urlencoded", "reason=x"),
];

/// The parameters of paths.
const PARAMETERS: [&str; 18] = [
    "identifier",
    "form",
    "agent",
    "domain",
    "review",
    "token",
    "session",
    "kid",
    "source",
    "account",
    "group",
    "policy",
    "preview",
    "waiver",
    "collection",
    "search",
    "decision",
    "hook",
];

#[tokio::test]
async fn every_refusal_is_a_problem_document_of_a_known_kind() {
    let (registry, _origin, hit) = with_an_agent().await;
    let id = hit.summary.id.to_string();
    let mut slugs = BTreeSet::new();
    for operation in operations() {
        let ids = if operation.path.contains('{') {
            IDS
        } else {
            &IDS[..1]
        };
        for id in ids {
            let names = PARAMETERS.map(|name| (name, *id));
            let path = filled(operation, &names);
            for signed_in in [false, true] {
                let ask = |path: &str| {
                    let request = registry.request(method(operation), path);
                    if signed_in {
                        request.bearer_auth(crate::support::setup::ADMIN_TOKEN)
                    } else {
                        request
                    }
                };
                let bare = ask(&path).send().await.unwrap();
                slugs.extend(problem_slug(&path, bare).await);
                let odd = format!("{path}?page_size=many&surprise=1&q=%ff&page_token=x");
                slugs.extend(problem_slug(&odd, ask(&odd).send().await.unwrap()).await);
            }
        }
        // The target exists, so that the body is what the request is refused for.
        let takes_no_body = ["reindex", "feed_renew"].contains(&operation.id.as_str());
        if operation.method == "POST" && !takes_no_body {
            let names = PARAMETERS.map(|name| (name, id.as_str()));
            let path = filled(operation, &names);
            for (media_type, body) in BODIES {
                let request = registry.admin_request(Method::POST, &path);
                let request = request.header("content-type", *media_type).body(*body);
                let slug = problem_slug(&path, request.send().await.unwrap()).await;
                assert!(
                    slug.is_some() || operation.id == "domain_recrawl",
                    "{path} took {body}"
                );
                slugs.extend(slug);
            }
            let large = format!("{{\"reason\": \"{}\"}}", "a".repeat(64 * 1024));
            let request = registry.admin_request(Method::POST, &path);
            let request = request
                .header("content-type", "application/json")
                .body(large);
            slugs.extend(problem_slug(&path, request.send().await.unwrap()).await);
        }
        for method in ["PUT", "PATCH", "TRACE", "BREW"] {
            let names = PARAMETERS.map(|name| (name, id.as_str()));
            let path = filled(operation, &names);
            let request = registry.admin_request(method.parse().unwrap(), &path);
            let slug = problem_slug(&path, request.send().await.unwrap()).await;
            slugs.extend(slug);
        }
    }
    for path in [
        "/nowhere",
        "/v1",
        "/v1/",
        "/v1/agents/",
        "/v2/agents",
        "/problems/none",
        "/manual/none",
        "/docs/none",
        "/%",
        "//",
    ] {
        let request = registry.request(Method::GET, path);
        slugs.extend(problem_slug(path, request.send().await.unwrap()).await);
    }
    // A minute allows thirty writes, and every two seconds returns one: a flood is refused in the end.
    let flood = "/v1/domains/nobody.example:recrawl";
    let mut last = None;
    for _ in 0..1_000 {
        let answer = registry.request(Method::POST, flood).send().await.unwrap();
        let wait = answer.headers().get("retry-after").cloned();
        let limited = answer.status() == 429;
        assert_eq!(
            limited,
            wait.is_some(),
            "429 and no other status has Retry-After"
        );
        last = problem_slug(flood, answer).await;
        if limited {
            break;
        }
    }
    assert_eq!(last.as_deref(), Some("too-many-requests"));
    slugs.extend(last);

    for expected in [
        "invalid-request",
        "broken-path",
        "unauthenticated",
        "not-found",
        "wrong-method",
        "too-large",
        "wrong-media-type",
        "too-many-requests",
    ] {
        assert!(
            slugs.contains(expected),
            "no request of the sweep was refused with {expected}: {slugs:?}"
        );
    }
    assert_explained(&registry, &slugs).await;
}

/// Checks that the address of every kind of problem leads to its explanation.
async fn assert_explained(registry: &ServingRegistry, slugs: &BTreeSet<String>) {
    for slug in slugs {
        let path = format!("/problems/{slug}");
        let redirect = registry.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(redirect.status(), 308, "{path}");
        let location = redirect.headers()["location"].to_str().unwrap();
        let page = location.trim_start_matches("..");
        let page = registry.request(Method::GET, page).send().await.unwrap();
        assert_eq!(page.status(), 200, "{location}");
        let text = page.text().await.unwrap();
        assert!(text.contains(&format!("id=\"{slug}\"")), "{slug}: {text}");
    }
}
