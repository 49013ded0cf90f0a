//! Malformed requests.

use reqwest::Method;
use serde_json::{Value, json};

use super::{ApprovedAgent, CARD, card};
use crate::support::api::ApiResponse;
use crate::support::event_stream::event_seq;
use crate::support::origin::{Origin, OriginReply};
use crate::support::setup::ADMIN_TOKEN;

/// Sends this body to the registration of domains.
async fn register_with_body(
    fixture: &ApprovedAgent,
    body: impl Into<reqwest::Body>,
) -> ApiResponse {
    let request = fixture.api().request(Method::POST, "/v1/domains");
    let request = request.bearer_auth(ADMIN_TOKEN).body(body);
    ApiResponse::send(request.header("content-type", "application/json")).await
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused() {
    let fixture = ApprovedAgent::new().await;
    for body in [
        "",
        "{\"card_url\":",
        "card_url=x",
        "{}{}",
        "\u{feff}{}",
        "nul",
    ] {
        register_with_body(&fixture, body)
            .await
            .expect_problem(400, "invalid-request");
    }
    register_with_body(&fixture, &b"{\"domain\":\"\xff\"}"[..])
        .await
        .expect_problem(400, "invalid-request");
    let form = fixture.api().request(Method::POST, "/v1/domains");
    let form = form.bearer_auth(ADMIN_TOKEN).body("domain=a.example");
    let form = form.header("content-type", "application/x-www-form-urlencoded");
    ApiResponse::send(form)
        .await
        .expect_problem(415, "wrong-media-type");
    assert_eq!(fixture.domains().await, 1);
    fixture.is_intact().await;
}

#[tokio::test]
async fn a_member_of_the_wrong_type_is_refused() {
    let fixture = ApprovedAgent::new().await;
    for (body, pointer) in [
        (json!({"card_url": 7}), "/card_url"),
        (json!({"domain": ["a.example"]}), "/domain"),
        (json!({"domain": "a.example", "approve": "yes"}), "/approve"),
    ] {
        let problem = register_with_body(&fixture, body.to_string()).await;
        let problem = problem.expect_problem(400, "invalid-request");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    register_with_body(&fixture, "[1]")
        .await
        .expect_problem(400, "invalid-request");
    assert_eq!(fixture.domains().await, 1);
    fixture.is_intact().await;
}

#[tokio::test]
async fn an_unknown_member_is_refused() {
    let fixture = ApprovedAgent::new().await;
    let body = json!({"domain": "a.example", "aprove": true}).to_string();
    let problem = register_with_body(&fixture, body)
        .await
        .expect_problem(400, "invalid-request");
    assert_eq!(problem["errors"][0]["pointer"], "/aprove", "{problem}");
    assert_eq!(fixture.domains().await, 1);
    fixture.is_intact().await;
}

/// A body of the maximum size is accepted, and one byte more is refused, with a `Content-Length` or without.
#[tokio::test]
async fn an_oversize_body_is_refused() {
    const LIMIT: usize = 64 * 1024;
    let fixture = ApprovedAgent::new().await;
    let padded = |length: usize| {
        let body = json!({"card_url": fixture.origin.url(CARD)}).to_string();
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    let in_parts = |body: String| {
        let parts: Vec<_> = body.as_bytes().chunks(1000).map(<[u8]>::to_vec).collect();
        let parts = parts.into_iter().map(Ok::<_, std::convert::Infallible>);
        reqwest::Body::wrap_stream(futures::stream::iter(parts))
    };
    register_with_body(&fixture, padded(LIMIT))
        .await
        .expect_status(202);
    register_with_body(&fixture, in_parts(padded(LIMIT)))
        .await
        .expect_status(202);
    let refused = register_with_body(&fixture, padded(LIMIT + 1)).await;
    refused.expect_problem(413, "too-large");
    let refused_in_parts = register_with_body(&fixture, in_parts(padded(LIMIT + 1))).await;
    refused_in_parts.expect_problem(413, "too-large");
    fixture.is_intact().await;
}

/// The parts of a response that could distinguish it from another one, with the id `agent` replaced.
fn distinguishable_parts(
    answer: &ApiResponse,
    agent: &str,
) -> (u16, Vec<(String, String)>, String) {
    let mut headers: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "date" | "x-request-id"))
        .map(|(name, value)| {
            let value = value.to_str().unwrap().replace(agent, "AGENT");
            (name.as_str().to_owned(), value)
        })
        .collect();
    headers.sort();
    let text = answer.text().replace(agent, "AGENT");
    (answer.status.as_u16(), headers, text)
}

/// The response for a hidden agent equals that for one that never existed, byte for byte.
#[tokio::test]
async fn an_unknown_agent_is_not_found() {
    let fixture = ApprovedAgent::new().await;
    let api = fixture.api();
    for unknown in [
        "01900000-0000-7000-8000-000000000000",
        "urn:air:nowhere:agent:x",
        "x",
        "%F0%9F%9A%80",
    ] {
        for rest in ["", "/card", "/versions", "/findings"] {
            let path = format!("/v1/agents/{unknown}{rest}");
            api.get(&path).await.expect_problem(404, "not-found");
        }
    }
    let mut feed = api.open_event_stream(0).await;
    let path = format!("/v1/agents/{}", fixture.agent);
    let reason = json!({"reason": "to be hidden"});
    api.post_as_admin(&format!("{path}:suspend"), &reason)
        .await
        .expect_status(200);
    let held = feed.wait_for("agent.held").await;
    // Before the index has caught up, and afterwards.
    for _ in 0..2 {
        let missing = "01900000-0000-7000-8000-000000000000";
        for rest in [
            "",
            "/card",
            "/versions",
            "/findings",
            "/card?version=sha256:00",
            ":suspend",
            ":nothing",
        ] {
            let hidden = api
                .get(&format!("/v1/agents/{}{rest}", fixture.agent))
                .await;
            let absent = api.get(&format!("/v1/agents/{missing}{rest}")).await;
            assert_eq!(
                distinguishable_parts(&hidden, &fixture.agent),
                distinguishable_parts(&absent, missing),
                "{rest}"
            );
        }
        for rest in [CARD, "/.well-known/agent.json", "/", ""] {
            let hidden = api.get(&format!("/agents/{}{rest}", fixture.agent)).await;
            let absent = api.get(&format!("/agents/{missing}{rest}")).await;
            assert_eq!(
                distinguishable_parts(&hidden, &fixture.agent),
                distinguishable_parts(&absent, missing),
                "{rest}"
            );
        }
        let domain = api.get(&format!("/v1/domains/{}", fixture.domain)).await;
        // Both have the same length, because `Content-Length` is compared too.
        let other = fixture.domain.replace("127.0.0.1", "127.0.0.2");
        let absent = api.get(&format!("/v1/domains/{other}")).await;
        assert_eq!(
            distinguishable_parts(&domain, &fixture.domain),
            distinguishable_parts(&absent, &other)
        );
        let lookup = format!("/v1/agents:lookup?url={}", fixture.origin.url(CARD));
        let lookup = api.get(&lookup).await;
        let absent = api
            .get("/v1/agents:lookup?url=https://nowhere.example/")
            .await;
        assert_eq!(
            distinguishable_parts(&lookup, &fixture.agent),
            distinguishable_parts(&absent, &fixture.agent)
        );
        api.wait_until_indexed(event_seq(&held)).await;
    }
    api.post_as_admin(&format!("{path}:resume"), &reason)
        .await
        .expect_status(200);
    let released = feed.wait_for("agent.released").await;
    api.wait_until_indexed(event_seq(&released)).await;
    fixture.is_intact().await;
}

#[tokio::test]
async fn an_invalid_page_token_is_refused() {
    let fixture = ApprovedAgent::new().await;
    let api = fixture.api();
    let second = Origin::start();
    second.set_reply(CARD, OriginReply::json(card("Second")));
    let mut feed = api.open_event_stream(0).await;
    api.register(&second.url(CARD)).await;
    feed.wait_for("agent.approved").await;
    let approved = feed.wait_for("agent.approved").await;
    api.wait_until_indexed(event_seq(&approved)).await;

    for list in ["/v1/agents?sort=name", "/v1/agents?q=flights"] {
        let first = api
            .get(&format!("{list}&page_size=1"))
            .await
            .expect_status(200);
        let token = first["next_page_token"].as_str().unwrap();
        let next = |token: &str| format!("{list}&page_size=1&page_token={token}");
        let last = api.get(&next(token)).await.expect_status(200);
        assert_eq!(last["agents"].as_array().unwrap().len(), 1);
        assert_ne!(last["agents"][0]["id"], first["agents"][0]["id"]);
        assert_eq!(last["next_page_token"], Value::Null);

        let mut changed = token.to_owned().into_bytes();
        changed[token.len() / 2] ^= 1;
        let changed = String::from_utf8(changed).unwrap();
        let other = api
            .get_as_admin("/v1/events?page_size=1")
            .await
            .expect_status(200);
        let other = other["next_page_token"].as_str().unwrap();
        for bad in [
            &token[..token.len() - 1],
            &changed,
            "x",
            "%00",
            "%F0%9F%9A%80",
            other,
        ] {
            let answer = api.get(&next(bad)).await;
            let problem = answer.expect_problem(400, "invalid-request");
            if !bad.contains("%00") {
                assert_eq!(problem["errors"][0]["pointer"], "/page_token", "{bad}");
            }
        }
        // Valid tokens, but of another query or another caller.
        let elsewhere = format!("/v1/agents?q=books&page_size=1&page_token={token}");
        api.get(&elsewhere)
            .await
            .expect_problem(400, "invalid-request");
        api.get_as_admin(&next(token))
            .await
            .expect_problem(400, "invalid-request");
    }
    assert_eq!(api.get("/livez").await.status, 200);
    assert_eq!(api.search("").await["total"], 2);
}

#[tokio::test]
async fn a_broken_escape_in_a_path_is_refused() {
    let fixture = ApprovedAgent::new().await;
    for path in [
        "/v1/agents/%zz",
        "/v1/agents/%ff",
        "/v1/agents/a%2",
        "/v1/agents/%00/card",
        "/v1/domains/%",
        "/v1/agents/%C3/versions",
        "/agents/%zz/.well-known/agent-card.json",
    ] {
        let answer = fixture.api().get(path).await;
        answer.expect_problem(400, "broken-path");
    }
    let query = fixture.api().get("/v1/agents?q=%zz").await;
    query.expect_problem(400, "invalid-request");
    fixture.is_intact().await;
}

#[tokio::test]
async fn a_wrong_method_is_refused() {
    let fixture = ApprovedAgent::new().await;
    let agent = &fixture.agent;
    for (method, path, allow) in [
        (Method::PUT, "/v1/agents".to_owned(), "GET"),
        (Method::DELETE, format!("/v1/agents/{agent}/card"), "GET"),
        (
            Method::GET,
            format!("/v1/domains/{}:recrawl", fixture.domain),
            "POST",
        ),
        (Method::GET, format!("/v1/agents/{agent}:suspend"), "POST"),
        (Method::PATCH, "/v1/domains".to_owned(), "GET"),
        (Method::POST, "/livez".to_owned(), "GET"),
        (Method::POST, "/".to_owned(), "GET"),
    ] {
        let request = fixture.api().request(method.clone(), &path);
        let answer = ApiResponse::send(request.bearer_auth(ADMIN_TOKEN)).await;
        answer.expect_problem(405, "wrong-method");
        let allowed = answer.headers["allow"].to_str().unwrap();
        assert!(allowed.contains(allow), "{method} {path}: {allowed}");
        assert!(
            !allowed.contains(method.as_str()),
            "{method} {path}: {allowed}"
        );
    }
    fixture.is_intact().await;
}

#[tokio::test]
async fn an_unknown_query_parameter_is_refused() {
    let fixture = ApprovedAgent::new().await;
    for (path, pointer) in [
        ("/v1/agents?tags=travel", "/tags"),
        ("/v1/agents:suggest?q=f&prefix=1", "/prefix"),
        ("/v1/agents?sort=rank", "/sort"),
        ("/v1/agents?facets=moon", "/facets"),
        ("/v1/agents?fields=name,moon", "/fields"),
        ("/v1/agents?fields=skills.examples", "/fields"),
        ("/v1/agents?lifecycle=alive", "/lifecycle"),
        ("/v1/agents?page_size=none", "/page_size"),
        ("/v1/agents?page_size=0", "/page_size"),
        ("/v1/agents?page_size=101", "/page_size"),
    ] {
        let problem = fixture
            .api()
            .get(path)
            .await
            .expect_problem(400, "invalid-request");
        assert_eq!(
            problem["errors"][0]["pointer"], pointer,
            "{path}: {problem}"
        );
    }
    fixture.is_intact().await;
}

#[tokio::test]
async fn too_many_filters_or_words_are_refused() {
    let fixture = ApprovedAgent::new().await;
    let filters = |count: usize| {
        let each = |at| format!("tag=t{at}");
        (0..count).map(each).collect::<Vec<_>>().join("&")
    };
    let api = fixture.api();
    api.search(&filters(20)).await;
    let answer = api.get(&format!("/v1/agents?{}", filters(21))).await;
    answer.expect_problem(400, "invalid-request");
    // Characters are counted, not bytes.
    let words = |count: usize| format!("q={}", "%C3%A9".repeat(count));
    api.search(&words(512)).await;
    for path in ["/v1/agents", "/v1/agents:suggest"] {
        let answer = api.get(&format!("{path}?{}", words(513))).await;
        let problem = answer.expect_problem(400, "invalid-request");
        assert_eq!(problem["errors"][0]["pointer"], "/q", "{problem}");
    }
    fixture.is_intact().await;
}
