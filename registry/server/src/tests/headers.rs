//! Tests of headers that every response must or must not have.

use a2a_registry_core::domains::register::register_domain;
use a2a_registry_domain::role::{Role, Scope};
use actix_web::http::Method;
use actix_web::test::TestRequest;
use serde_json::json;

use crate::tests::{ADMIN, Registry, bearer};

const ORIGIN: (&str, &str) = ("origin", "https://elsewhere.example");

#[actix_web::test]
async fn every_answer_is_marked() {
    let registry = Registry::new().await;
    for path in [
        "/v1/agents",
        "/livez",
        "/nowhere",
        "/v1/agents/x",
        "/problems/not-found",
    ] {
        let answer = registry.get(path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
        assert!(!answer.header("x-request-id").is_empty(), "{path}");
    }
    let named = TestRequest::get()
        .uri("/livez")
        .insert_header(("x-request-id", "mine-1"));
    assert_eq!(registry.ask(named).await.header("x-request-id"), "mine-1");
}

#[actix_web::test]
async fn other_sites_may_read_what_is_public() {
    let registry = Registry::new().await;
    let allowed = "access-control-allow-origin";
    for path in [
        "/v1/agents",
        "/v1/agents/x",
        "/agents/x/.well-known/agent-card.json",
        "/openapi.json",
    ] {
        let answer = registry
            .ask(TestRequest::get().uri(path).insert_header(ORIGIN))
            .await;
        assert_eq!(answer.header(allowed), "*", "{path}");
        assert!(
            !answer
                .headers
                .contains_key("access-control-allow-credentials")
        );
    }
    let none = |request: TestRequest| {
        let registry = &registry;
        async move {
            let answer = registry.ask(request.insert_header(ORIGIN)).await;
            assert!(
                !answer.headers.contains_key("access-control-allow-origin"),
                "{answer:?}"
            );
        }
    };
    none(bearer(TestRequest::get().uri("/v1/agents"), ADMIN)).await;
    none(TestRequest::get().uri("/")).await;
    none(TestRequest::get().uri("/metrics")).await;
    none(TestRequest::post().uri("/v1/domains").set_json(json!({}))).await;
    none(TestRequest::delete().uri("/v1/domains/a.example")).await;
    let preflight = |wanted: &str, path: &str| {
        TestRequest::default()
            .method(Method::OPTIONS)
            .uri(path)
            .insert_header(("access-control-request-method", wanted.to_owned()))
    };
    none(preflight("POST", "/v1/domains")).await;
    none(preflight("DELETE", "/v1/domains/a.example")).await;
    none(preflight("GET", "/register")).await;
    let reading = registry
        .ask(preflight("GET", "/v1/domains/a.example").insert_header(ORIGIN))
        .await;
    assert_eq!(
        (reading.status.as_u16(), reading.header(allowed)),
        (204, "*")
    );
    assert_eq!(reading.header("access-control-allow-methods"), "GET, HEAD");
    assert!(
        !reading
            .header("access-control-allow-headers")
            .to_lowercase()
            .contains("authorization")
    );
}

#[actix_web::test]
async fn head_answers_as_get_does() {
    let registry = Registry::new().await;
    for path in [
        "/v1/agents",
        "/livez",
        "/openapi.json",
        "/",
        "/problems/not-found",
    ] {
        let get = registry.get(path).await;
        let head = registry
            .ask(TestRequest::default().method(Method::HEAD).uri(path))
            .await;
        assert_eq!(head.status, get.status, "{path}");
        assert_eq!(
            head.header("content-type"),
            get.header("content-type"),
            "{path}"
        );
    }
}

#[actix_web::test]
async fn json_is_compressed_for_those_who_ask() {
    let registry = Registry::new().await;
    let ask = |coding: &str| {
        let request = TestRequest::get()
            .uri("/openapi.json")
            .insert_header(("accept-encoding", coding.to_owned()));
        registry.ask(request)
    };
    let plain = registry.get("/openapi.json").await;
    let brotli = ask("br").await;
    assert_eq!(brotli.header("content-encoding"), "br");
    assert!(brotli.body.len() * 4 < plain.body.len());
    assert_eq!(ask("gzip").await.header("content-encoding"), "gzip");
    let unknown = ask("zstd").await;
    assert_eq!(unknown.header("content-encoding"), "");
    assert_eq!(unknown.body, plain.body);
}

#[actix_web::test]
async fn a_resource_that_is_known_is_not_sent_again() {
    let registry = Registry::new().await;
    let admin = registry.admin().await;
    let what = a2a_registry_api::Registration {
        card_url: Some("http://127.0.0.1:9/card.json".into()),
        ..Default::default()
    };
    let domain = register_domain(registry.context(), &admin, &what)
        .await
        .unwrap()
        .domain;
    let ask = |tag: &str| {
        let request = bearer(
            TestRequest::get().uri(&format!("/v1/domains/{domain}")),
            ADMIN,
        );
        registry.ask(request.insert_header(("if-none-match", tag.to_owned())))
    };
    let first = ask("\"other\"").await;
    assert_eq!(first.status, 200);
    let tag = first.header("etag").to_owned();
    assert!(tag.starts_with("W/\""));
    for known in [
        tag.clone(),
        format!("\"a\", {tag}"),
        "*".into(),
        tag.trim_start_matches("W/").into(),
    ] {
        let again = ask(&known).await;
        assert_eq!(
            (again.status.as_u16(), again.header("etag")),
            (304, tag.as_str()),
            "{known}"
        );
        assert!(again.body.is_empty());
    }
    // Another caller gets another response, and so another `ETag`.
    registry
        .ask(
            TestRequest::get()
                .uri(&format!("/v1/domains/{domain}"))
                .insert_header(("if-none-match", tag)),
        )
        .await
        .problem(404, "not-found");
}

#[actix_web::test]
async fn metrics_count_by_route_and_never_by_name() {
    let registry = Registry::new().await;
    registry.get("/v1/agents/some-agent/card").await;
    registry.get("/nowhere/some-agent").await;
    let request = TestRequest::get().uri("/metrics");
    let all = registry.as_with(ADMIN, request).await;
    let text = String::from_utf8(all.body.to_vec()).unwrap();
    let line = "a2a_registry_http_requests_total{route=\"/v1/agents/{agent}/card\",method=\"GET\",status=\"4xx\"} 1";
    assert!(text.contains(line), "{text}");
    assert!(
        text.contains("{route=\"none\",method=\"GET\",status=\"4xx\"} 1"),
        "{text}"
    );
    assert!(!text.contains("some-agent"), "{text}");
}

/// Everyone sees the process metrics; only callers who may read events see the registry metrics.
#[actix_web::test]
async fn figures_of_the_registry_are_for_auditors() {
    let registry = Registry::new().await;
    registry.state.metrics.count_crawl_outcome("card");
    let of_registry = [
        "a2a_registry_http_requests_total",
        "a2a_registry_http_request_duration",
        "a2a_registry_crawl_",
        "a2a_registry_index_",
        "a2a_registry_build_info",
        "a2a_registry_database_",
        "a2a_registry_reviews_",
        "a2a_registry_holds",
        "a2a_registry_policy_",
        "a2a_registry_searches_",
        "process_",
    ];
    let mut tokens = vec![(None, false)];
    for role in [Role::Reader, Role::Publisher] {
        tokens.push((Some(registry.token(role).await), false));
    }
    let deciding = registry.scoped(Role::Auditor, &[Scope::Decide]).await;
    tokens.push((Some(deciding), false));
    for role in [Role::Curator, Role::Auditor] {
        tokens.push((Some(registry.token(role).await), true));
    }
    tokens.push((Some(ADMIN.to_owned()), true));
    for (token, sees_all) in tokens {
        let get = async |path: &str| {
            let request = TestRequest::get().uri(path);
            match &token {
                Some(token) => registry.as_with(token, request).await,
                None => registry.ask(request).await,
            }
        };
        let metrics = get("/metrics").await;
        assert_eq!(metrics.status, 200);
        let text = String::from_utf8(metrics.body.to_vec()).unwrap();
        assert!(
            text.contains("a2a_registry_http_requests_in_flight"),
            "{text}"
        );
        assert!(text.ends_with("# EOF\n"), "{text}");
        for name in of_registry {
            assert_eq!(text.contains(name), sees_all, "{name}: {token:?}");
        }
        let ready = get("/readyz").await.json();
        assert_eq!(ready["ready"], true);
        for check in ready["checks"].as_array().unwrap() {
            let is_bare = check["detail"] == "passes";
            assert_eq!(is_bare, !sees_all, "{check}: {token:?}");
        }
    }
    let bad = TestRequest::get().uri("/readyz");
    registry
        .as_with("no-token", bad)
        .await
        .problem(401, "unauthenticated");
}

#[actix_web::test]
async fn readiness_is_told_in_both_ways() {
    let registry = Registry::new().await;
    let ready = registry.get("/readyz").await;
    assert_eq!(ready.status, 200, "{ready:?}");
    assert_eq!(ready.json()["ready"], true);
    registry.state.shutdown.cancel();
    let leaving = registry.get("/readyz").await.problem(503, "not-ready");
    assert_eq!(leaving["ready"], false);
    assert!(leaving["checks"].is_array());
}
