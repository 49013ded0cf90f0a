//! Tests that every invalid request gets a problem document.

use actix_web::http::Method;
use actix_web::test::TestRequest;
use serde_json::json;

use crate::tests::{ADMIN, Registry, bearer};

fn post(path: &str) -> TestRequest {
    bearer(TestRequest::post().uri(path), ADMIN)
}

/// An empty number or boolean is an error and differs from an absent value.
#[actix_web::test]
async fn empty_values_are_refused_by_name() {
    let registry = Registry::new().await;
    for (path, name) in [
        ("/v1/agents", "page_size"),
        ("/v1/agents", "explain"),
        ("/v1/agents", "understand"),
        ("/v1/domains", "page_size"),
        ("/v1/reviews", "page_size"),
        ("/v1/events", "page_size"),
        ("/v1/events", "after"),
        ("/v1/tokens", "page_size"),
    ] {
        let request = TestRequest::get().uri(&format!("{path}?{name}="));
        let request = bearer(request, ADMIN);
        let problem = registry.ask(request).await.problem(400, "invalid-request");
        let pointer = &problem["errors"][0]["pointer"];
        assert_eq!(pointer, &format!("/{name}"), "{path}: {problem}");
    }
}

/// `Last-Event-ID` must be a number, for a page as well as for a stream.
#[actix_web::test]
async fn a_last_event_that_is_no_number_is_refused() {
    let registry = Registry::new().await;
    for accept in ["application/json", "text/event-stream"] {
        let request = TestRequest::get().uri("/v1/events");
        let request = request.insert_header(("accept", accept));
        let request = bearer(request, ADMIN).insert_header(("last-event-id", "soon"));
        registry.ask(request).await.problem(400, "invalid-request");
    }
}

#[actix_web::test]
async fn bodies_that_do_not_fit() {
    let registry = Registry::new().await;
    let send = async |kind: &'static str, body: String| {
        let request = post("/v1/domains")
            .insert_header(("content-type", kind))
            .set_payload(body);
        registry.ask(request).await
    };
    let json = "application/json";
    let broken = send(json, "{\"domain\": ".into())
        .await
        .problem(400, "invalid-request");
    assert!(
        broken["detail"].as_str().unwrap().contains("not JSON"),
        "{broken}"
    );
    send(json, "{} {}".into())
        .await
        .problem(400, "invalid-request");
    send(json, String::new())
        .await
        .problem(400, "invalid-request");
    let typed = send(json, json!({"domain": 7}).to_string())
        .await
        .problem(400, "invalid-request");
    assert_eq!(typed["errors"][0]["pointer"], "/domain");
    let unknown = send(json, json!({"domian/x": "a"}).to_string())
        .await
        .problem(400, "invalid-request");
    assert_eq!(unknown["errors"][0]["pointer"], "/domian~1x");
    assert!(
        unknown["errors"][0]["detail"]
            .as_str()
            .unwrap()
            .contains("card_url"),
        "{unknown}"
    );
    send(json, r#"{"domain": "a\u0000b"}"#.into())
        .await
        .problem(400, "invalid-request");
    send("text/plain", "{}".into())
        .await
        .problem(415, "wrong-media-type");
    send("application/x-www-form-urlencoded", "a=b".into())
        .await
        .problem(415, "wrong-media-type");
    let limit = registry.context().config().limits.json_bytes;
    let domain = "a".repeat(limit);
    send(json, json!({"domain": domain}).to_string())
        .await
        .problem(413, "too-large");
    let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    send(json, deep).await.problem(400, "invalid-request");
}

#[actix_web::test]
async fn a_body_at_the_limit_is_read() {
    let registry = Registry::new().await;
    let limit = registry.context().config().limits.json_bytes;
    let frame = json!({"domain": ""}).to_string();
    let body = frame.replace("\"\"", &format!("\"{}\"", "a".repeat(limit - frame.len())));
    assert_eq!(body.len(), limit);
    let request = post("/v1/domains").insert_header(("content-type", "application/json"));
    registry
        .ask(request.set_payload(body))
        .await
        .problem(422, "target-refused");
}

/// JSON Schema counts such numbers as integers, and every body accepts them.
#[actix_web::test]
async fn an_integer_may_be_written_with_point_or_exponent() {
    let registry = Registry::new().await;
    let ask = async |path: &str, body: &str| {
        let request = post(path).insert_header(("content-type", "application/json"));
        registry.ask(request.set_payload(body.to_owned())).await
    };
    for (name, days, status) in [("a", "30.0", 201), ("b", "3e1", 201), ("c", "30.5", 400)] {
        let body = format!(
            r#"{{"account": "clerk-{name}", "role": "reader", "name": "{name}", "expires_in_days": {days}}}"#
        );
        let answer = ask("/v1/tokens", &body).await;
        assert_eq!(answer.status, status, "{days}: {answer:?}");
        if status == 400 {
            let problem = answer.problem(400, "invalid-request");
            assert_eq!(problem["errors"][0]["pointer"], "/expires_in_days");
        }
    }
    for (size, status) in [("2.0", 200), ("2.5", 400)] {
        let body = format!(r#"{{"query": {{"text": "echo"}}, "pageSize": {size}}}"#);
        assert_eq!(ask("/ard/search", &body).await.status, status, "{size}");
    }
}

#[actix_web::test]
async fn a_coded_body_is_refused() {
    let registry = Registry::new().await;
    let request = post("/v1/domains")
        .insert_header(("content-encoding", "gzip"))
        .set_json(json!({}));
    registry.ask(request).await.problem(415, "wrong-media-type");
}

#[actix_web::test]
async fn an_optional_body_may_be_left_out() {
    let registry = Registry::new().await;
    let path = "/v1/domains/nowhere.example:recrawl";
    registry.ask(post(path)).await.problem(404, "not-found");
    registry
        .ask(post(path).set_json(json!({"full": true})))
        .await
        .problem(404, "not-found");
    let typed = registry
        .ask(post(path).set_json(json!({"full": 1})))
        .await
        .problem(400, "invalid-request");
    assert_eq!(typed["errors"][0]["pointer"], "/full");
    registry
        .ask(post(path).set_payload("full"))
        .await
        .problem(415, "wrong-media-type");
}

#[actix_web::test]
async fn queries_that_do_not_fit() {
    let registry = Registry::new().await;
    for (query, pointer) in [
        ("qq=x", "/qq"),
        ("page_size=many", "/page_size"),
        ("q=a&q=b", "/q"),
        ("explain=perhaps", "/explain"),
        ("page_size=0", "/page_size"),
        ("page_size=101", "/page_size"),
        ("page_token=nonsense", "/page_token"),
    ] {
        let document = registry
            .get(&format!("/v1/agents?{query}"))
            .await
            .problem(400, "invalid-request");
        assert_eq!(
            document["errors"][0]["pointer"], pointer,
            "{query}: {document}"
        );
    }
    for query in ["q=%zz", "q=%ff", "q=a%00"] {
        registry
            .get(&format!("/v1/agents?{query}"))
            .await
            .problem(400, "invalid-request");
    }
    let several = registry.get("/v1/agents?tag=a&tag=b&q=x+y").await;
    assert_eq!(several.status, 200, "{several:?}");
    let converted = registry
        .get("/v1/agents/a/card?as=0.9")
        .await
        .problem(400, "invalid-request");
    assert_eq!(converted["errors"][0]["pointer"], "/as");
}

#[actix_web::test]
async fn paths_are_decoded_once_and_strictly() {
    let registry = Registry::new().await;
    for broken in ["%zz", "a%2", "%ff%fe", "a%00b"] {
        for path in [
            format!("/v1/agents/{broken}"),
            format!("/v1/domains/{broken}"),
            format!("/v1/agents/{broken}/card"),
        ] {
            registry.get(&path).await.problem(400, "broken-path");
        }
        registry
            .ask(post(&format!("/v1/agents/{broken}:suspend")).set_json(json!({"reason": "x"})))
            .await
            .problem(400, "broken-path");
    }
    for fine in ["urn%3Aagent%3Aa%2Fb", "urn:agent:a", "%2541"] {
        registry
            .get(&format!("/v1/agents/{fine}"))
            .await
            .problem(404, "not-found");
    }
    // A malformed id matches no agent.
    registry
        .ask(bearer(TestRequest::get().uri("/v1/reviews/seven"), ADMIN))
        .await
        .problem(404, "not-found");
}

#[actix_web::test]
async fn a_wrong_method_learns_the_right_ones() {
    let registry = Registry::new().await;
    for (method, path, allow) in [
        (Method::DELETE, "/v1/agents", "GET, HEAD, OPTIONS"),
        (Method::POST, "/v1/agents:suggest", "GET, HEAD, OPTIONS"),
        (Method::GET, "/v1/agents/x:suspend", "OPTIONS, POST"),
        (Method::HEAD, "/v1/agents/x:suspend", "OPTIONS, POST"),
        (Method::PUT, "/v1/agents/x:suspend", "OPTIONS, POST"),
        (
            Method::PUT,
            "/v1/domains/a.example",
            "DELETE, GET, HEAD, OPTIONS, PATCH",
        ),
        (
            Method::GET,
            "/v1/domains/a.example:8443:recrawl",
            "OPTIONS, POST",
        ),
        (Method::POST, "/v1/agents/x/card", "GET, HEAD, OPTIONS"),
        (Method::GET, "/v1/reindex", "OPTIONS, POST"),
        (Method::POST, "/openapi.json", "GET, HEAD, OPTIONS"),
        (Method::PATCH, "/register", "GET, HEAD, OPTIONS, POST"),
        (
            Method::from_bytes(b"BREW").unwrap(),
            "/livez",
            "GET, HEAD, OPTIONS",
        ),
    ] {
        let answer = registry
            .ask(TestRequest::default().method(method.clone()).uri(path))
            .await;
        assert_eq!(answer.header("allow"), allow, "{method} {path}");
        if method != Method::HEAD {
            answer.problem(405, "wrong-method");
        }
        let options = registry
            .ask(TestRequest::default().method(Method::OPTIONS).uri(path))
            .await;
        assert_eq!(
            (options.status.as_u16(), options.header("allow")),
            (204, allow),
            "{path}"
        );
        assert!(options.body.is_empty());
    }
    // An escaped colon is part of a name.
    registry
        .get("/v1/agents/x%3Asuspend")
        .await
        .problem(404, "not-found");
    registry
        .ask(
            TestRequest::default()
                .method(Method::OPTIONS)
                .uri("/nowhere"),
        )
        .await
        .problem(404, "not-found");
}

#[actix_web::test]
async fn every_kind_of_problem_is_explained() {
    let registry = Registry::new().await;
    let page = registry.get("/manual/reference/problems").await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let explanations = String::from_utf8_lossy(&page.body);
    for kind in a2a_registry_http::problems::problem_kinds::ALL {
        let redirect = registry.get(&format!("/problems/{}", kind.slug)).await;
        assert_eq!(redirect.status, 308);
        let location = format!("../manual/reference/problems#{}", kind.slug);
        assert_eq!(redirect.header("location"), location);
        let anchor = format!("id=\"{}\"", kind.slug);
        assert!(explanations.contains(&anchor), "{anchor}");
    }
    registry
        .get("/problems/nothing")
        .await
        .problem(404, "not-found");
}

#[actix_web::test]
async fn failures_of_libraries_become_documents_too() {
    let registry = Registry::new().await;
    registry.get("/nowhere").await.problem(404, "not-found");
    registry
        .get("/static/nothing.css")
        .await
        .problem(404, "not-found");
    let picky = TestRequest::get()
        .uri("/livez")
        .insert_header(("accept-encoding", "identity;q=0"));
    registry.ask(picky).await.problem(406, "not-acceptable");
}

#[actix_web::test]
async fn hidden_and_missing_differ_in_nothing_but_the_path() {
    let registry = Registry::new().await;
    let body = |path: &str| {
        let registry = &registry;
        let path = path.to_owned();
        async move {
            let mut document = registry.get(&path).await.problem(404, "not-found");
            assert_eq!(document["instance"], path);
            // `detail` is the only other member that repeats the request.
            let agent = path.rsplit('/').next().unwrap();
            let detail = document["detail"].as_str().unwrap();
            document["detail"] = detail.replace(agent, "AGENT").into();
            document.as_object_mut().unwrap().remove("instance");
            document
        }
    };
    let one = body("/v1/agents/018f0000-0000-7000-8000-000000000000").await;
    let other = body("/v1/agents/urn:nothing").await;
    assert_eq!(one, other);
}

/// An empty number is an error that names the parameter, and differs from an absent value.
#[actix_web::test]
async fn an_empty_number_is_refused() {
    let registry = Registry::new().await;
    for (path, parameter) in [
        ("/v1/agents", "page_size"),
        ("/v1/agents", "explain"),
        ("/v1/agents", "understand"),
        ("/v1/domains", "page_size"),
        ("/v1/reviews", "page_size"),
        ("/v1/reviews", "state"),
        ("/v1/tokens", "page_size"),
        ("/v1/events", "page_size"),
        ("/v1/events", "after"),
    ] {
        for query in [format!("{parameter}="), parameter.to_owned()] {
            let request = TestRequest::get().uri(&format!("{path}?{query}"));
            let problem = registry
                .ask(bearer(request, ADMIN))
                .await
                .problem(400, "invalid-request");
            let pointer = &problem["errors"][0]["pointer"];
            assert_eq!(*pointer, format!("/{parameter}"), "{path}?{query}");
        }
    }
}
