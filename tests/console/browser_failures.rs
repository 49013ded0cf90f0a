//! Failures that a browser does not distinguish, each with the command that works instead.

use std::net::SocketAddr;

use serde_json::json;

use super::{ConsoleUser, RPC, card, message, open_to_pages, publish, rpc, sse, stream};
use crate::page_journeys::PageVisitor;
use crate::support::browser::Browser;
use crate::support::origin::{Origin, OriginReply};
use crate::support::setup::RegistrySetup;
use crate::support::tls::{Authority, TlsFront};

/// The address of a port at which nothing listens.
fn nowhere() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

#[tokio::test]
async fn failures_are_told_apart_and_lead_to_the_command() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let agent = Origin::start();
    // It answers, and lets no other site read that.
    agent.set_reply("/closed", OriginReply::json("{}"));
    agent.set_reply("/moved", open_to_pages(OriginReply::redirect("/closed")));
    agent.set_reply("/refused", open_to_pages(OriginReply::status(401)));
    let down = format!("http://{}/", nowhere());
    let talker = ConsoleUser::open_browser(&registry).await;
    for (path, url, failure, words) in [
        ("/cors.json", agent.url("/closed"), "cors", "CORS"),
        ("/down.json", down, "down", "Nothing answers"),
        ("/moved.json", agent.url("/moved"), "redirect", "redirects"),
        (
            "/refused.json",
            agent.url("/refused"),
            "refused",
            "It asks for credentials",
        ),
    ] {
        let card = card(&json!([rpc(&url)]), &json!({}));
        let (_card, id) = publish(&registry, card).await;
        talker.open(&id).await;
        assert_eq!(talker.fails("hello").await, failure, "{path}");
        let shown = talker.read_last_turn().await;
        assert!(shown.text.contains(words), "{path}: {shown:?}");
        let command = format!("a2a-registry send --registry '{}'", registry.api.url);
        let is_network = failure != "refused";
        assert_eq!(shown.text.contains(&command), is_network, "{shown:?}");
        assert_eq!(shown.text.contains(&id), is_network, "{shown:?}");
    }
    // Nothing of the message reached the agent that allows no pages.
    let seen = agent.requests_to("/closed");
    assert!(
        seen.iter().all(|request| request.method != "POST"),
        "{seen:?}"
    );
    talker.close().await;
    registry.stop().await;
}

/// What no page can call is known before anything is sent, and said without script too.
#[tokio::test]
async fn agents_that_no_page_can_call_are_named_with_the_command() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let web = "https://agent.example/rpc";
    let grpc = json!([{"url": "https://agent.example", "protocolBinding": "GRPC", "protocolVersion": "1.0"}]);
    let asks = |scheme: &str, kind: serde_json::Value| json!({"securitySchemes": {scheme: kind}, "securityRequirements": [{"schemes": {scheme: {"list": []}}}]});
    let mtls = asks("tls", json!({"mtlsSecurityScheme": {}}));
    let cookie = asks(
        "key",
        json!({"apiKeySecurityScheme": {"location": "cookie", "name": "k"}}),
    );
    for (path, interfaces, security, words) in [
        ("/grpc.json", grpc, json!({}), "supports only gRPC"),
        (
            "/mtls.json",
            json!([rpc(web)]),
            mtls,
            "client certificate (mutual TLS)",
        ),
        ("/cookie.json", json!([rpc(web)]), cookie, "in a cookie"),
        (
            "/ipv6.json",
            json!([rpc("https://[2001:db8::1]/rpc")]),
            json!({}),
            "cannot express the URL",
        ),
    ] {
        let (_card, id) = publish(&registry, card(&interfaces, &security)).await;
        let page = registry.get(&format!("/agents/{id}/")).await.text();
        assert!(page.contains(words), "{path}: {page}");
        let (_, closed) = page.split_once("id=\"console-closed\"").unwrap();
        assert!(closed.contains("a2a-registry send --registry"), "{path}");
        assert!(!page.contains("console.js"), "{path}");
    }
    registry.stop().await;
}

#[tokio::test]
async fn a_page_over_https_calls_no_plain_http() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let authority = Authority::new("the tests' own");
    let behind = registry.api.url.trim_start_matches("http://").parse();
    let identity = authority.identity("127.0.0.1");
    let front =
        TlsFront::bind_before_server(([127, 0, 0, 1], 0).into(), identity, behind.unwrap()).await;
    let url = front.as_ref().unwrap().url("");
    let (_plain, plain) = publish(
        &registry,
        card(&json!([rpc("http://agent.example/rpc")]), &json!({})),
    )
    .await;
    let agent = Origin::start();
    agent.set_reply(RPC, stream(&[message(&json!([{"text": "hi"}]))]));
    let (_near, near) = publish(&registry, card(&json!([rpc(&agent.url(RPC))]), &json!({}))).await;
    // The page counts as one from the internet, and the agent is on this machine.
    let public = format!(
        "--ip-address-space-overrides={}=public",
        url.trim_start_matches("https://")
    );
    let arguments = ["--ignore-certificate-errors", public.as_str()];
    let browser = Browser::open_with(1280, 900, &arguments).await;
    for permission in ["local-network-access", "loopback-network", "local-network"] {
        browser.set_permission(permission, "denied").await;
    }
    let talker = ConsoleUser {
        visitor: PageVisitor::with_browser(&url, browser),
    };
    talker.open(&plain).await;
    assert_eq!(talker.fails("hello").await, "mixed");
    let text = talker.read_last_turn().await.text;
    assert!(
        text.contains("mixed content") && text.contains("a2a-registry send"),
        "{text}"
    );

    talker.open(&near).await;
    assert_eq!(talker.fails("hello").await, "local-network");
    let text = talker.read_last_turn().await.text;
    assert!(
        text.contains("local network") && text.contains("a2a-registry send"),
        "{text}"
    );
    assert!(
        agent.requests_to(RPC).is_empty(),
        "{:?}",
        agent.requests_to(RPC)
    );
    talker.close().await;
    registry.stop().await;
}

/// A stream that breaks is not sent twice: its task is read, and a message without a task is lost.
#[tokio::test]
async fn a_broken_stream_is_never_sent_again() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let agent = Origin::start();
    let interfaces =
        json!([{"url": agent.url(""), "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]);
    let (_card, id) = publish(&registry, card(&interfaces, &json!({}))).await;
    let working =
        json!({"task": {"id": "t-1", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}});
    let done = json!({"id": "t-1", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [{"artifactId": "a", "parts": [{"text": "after all"}]}]});
    let talker = ConsoleUser::open_browser(&registry).await;
    talker.open(&id).await;

    agent.set_reply(
        "/message:stream",
        sse(&format!("data: {working}\n\ndata: {{\"task\"")),
    );
    agent.set_reply(
        "/tasks/t-1",
        open_to_pages(OriginReply::json(done.to_string())),
    );
    let shown = talker.ask("hello").await;
    assert!(shown.text.contains("after all"), "{shown:?}");
    assert!(shown.text.contains("ended early"), "{shown:?}");

    agent.set_reply("/message:stream", sse(": nothing\n\n"));
    assert_eq!(talker.fails("again").await, "answer");
    let sent = agent.requests_to("/message:stream");
    let posts = sent.iter().filter(|request| request.method == "POST");
    assert_eq!(posts.count(), 2, "{sent:?}");

    // An agent that does not stream is asked for the whole answer: it has not taken up the message.
    let details = json!([{"reason": "UNSUPPORTED_OPERATION", "domain": "a2a-protocol.org"}]);
    let refusal = json!({"error": {"code": 400, "message": "no streams", "details": details}});
    let whole = message(&json!([{"text": "all at once"}]));
    let whole = open_to_pages(OriginReply::json(whole.to_string()));
    agent.set_reply("/message:send", whole);
    for refused in [
        OriginReply::status(404),
        OriginReply::json(refusal.to_string()),
    ] {
        agent.set_reply("/message:stream", open_to_pages(refused));
        let shown = talker.ask("hello").await;
        assert!(shown.text.contains("all at once"), "{shown:?}");
        assert!(shown.text.contains("does not stream"), "{shown:?}");
    }
    talker.close().await;
    registry.stop().await;
}
