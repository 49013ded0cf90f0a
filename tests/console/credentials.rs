//! Credentials: typed by the user, sent to the origin of the chosen interface, and kept nowhere.

use serde_json::{Value, json};

use super::{ConsoleUser, card, message, open_to_pages, publish, rpc, stream};
use crate::support::origin::{Origin, OriginReply, ReceivedRequest};
use crate::support::setup::RegistrySetup;

const SECRETS: [(&str, &str); 5] = [
    ("bearer", "bearer-7c1f-secret"),
    ("header", "header-key-7c1f-secret"),
    ("query", "query+key/7c1f&secret"),
    ("basic", "pass:word-7c1f-secret"),
    ("free", "free-7c1f-secret"),
];

fn security_members() -> Value {
    json!({
        "securitySchemes": {
            "b": {"httpAuthSecurityScheme": {"scheme": "bearer"}},
            "h": {"apiKeySecurityScheme": {"location": "header", "name": "X-Agent-Key"}},
            "q": {"apiKeySecurityScheme": {"location": "query", "name": "key"}},
            "p": {"httpAuthSecurityScheme": {"scheme": "basic"}},
        },
        "securityRequirements": [
            {"schemes": {"b": {"list": []}}}, {"schemes": {"h": {"list": []}, "q": {"list": []}}},
            {"schemes": {"p": {"list": []}}},
        ],
    })
}

/// Whether a request carries any of the secrets, in whatever form.
fn carries(request: &ReceivedRequest) -> bool {
    let all = format!("{request:?}");
    all.contains("7c1f") || all.contains("Basic ") || all.contains("Bearer ")
}

async fn fill(talker: &ConsoleUser, kind: &str, secret: &str) {
    let field = talker
        .visitor
        .find(&format!("#console input[data-kind='{kind}']"))
        .await;
    field.clear().await.unwrap();
    field.send_keys(secret).await.unwrap();
}

#[tokio::test]
async fn credentials_go_to_the_chosen_origin_alone_and_are_kept_nowhere() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let (first, second) = (Origin::start(), Origin::start());
    let secrets = SECRETS.map(|(_, secret)| secret).join(" ");
    // An agent may repeat what it was sent.
    let answer = message(&json!([{"text": "let in"}, {"data": {"echo": secrets}}]));
    first.set_reply("/rpc", stream(std::slice::from_ref(&answer)));
    second.set_reply("/rpc", stream(&[answer]));
    let interfaces = json!([rpc(&first.url("/rpc")), rpc(&second.url("/rpc"))]);
    let (_card, id) = publish(&registry, card(&interfaces, &security_members())).await;
    let talker = ConsoleUser::open_browser(&registry).await;
    talker.open(&id).await;

    // Header, query and a header of one's own together; then each kind of Authorization.
    fill(&talker, "header", SECRETS[1].1).await;
    fill(&talker, "query", SECRETS[2].1).await;
    talker.fill("header", "X-Ticket").await;
    fill(&talker, "free", SECRETS[4].1).await;
    talker.ask("hello").await;
    let sent = first.requests_to("/rpc");
    let [preflight, post] = sent.as_slice() else {
        panic!("a preflight and a call: {sent:?}");
    };
    assert_eq!(post.header("x-agent-key"), Some(SECRETS[1].1));
    assert_eq!(post.header("x-ticket"), Some(SECRETS[4].1));
    assert_eq!(post.query, "key=query%2Bkey%2F7c1f%26secret");
    assert_eq!(post.header("cookie"), None);
    assert_eq!(post.header("referer"), None);
    assert!(preflight.method == "OPTIONS" && preflight.header("x-agent-key").is_none());

    fill(&talker, "bearer", SECRETS[0].1).await;
    talker.ask("hello").await;
    let last = first.requests_to("/rpc").pop().unwrap();
    assert_eq!(
        last.header("authorization"),
        Some("Bearer bearer-7c1f-secret")
    );
    fill(&talker, "bearer", " ").await;
    talker
        .run("document.querySelector(\"#console input[data-kind='bearer']\").value = ''")
        .await;
    talker
        .visitor
        .type_into("#console input[data-user]", "ann")
        .await;
    fill(&talker, "basic", SECRETS[3].1).await;
    talker
        .run("document.getElementById('console-wire').replaceChildren()")
        .await;
    talker.ask("hello").await;
    let last = first.requests_to("/rpc").pop().unwrap();
    let basic = data_encoding::BASE64.encode(b"ann:pass:word-7c1f-secret");
    assert_eq!(
        last.header("authorization"),
        Some(format!("Basic {basic}").as_str())
    );

    // Neither the traffic nor the page nor the browser's stores have any.
    let traffic = talker.traffic().await;
    assert!(
        traffic.contains("x-agent-key: •••") && traffic.contains("with key=•••"),
        "{traffic}"
    );
    assert!(!traffic.contains(&basic), "{traffic}");
    for (kind, secret) in SECRETS {
        let encoded = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect::<String>();
        if kind != "bearer" {
            assert!(
                !traffic.contains(secret) && !traffic.contains(&encoded),
                "{kind}: {traffic}"
            );
        }
    }
    let kept = talker
        .run(
            "const echoed = [...document.querySelectorAll('#console-log, #console-wire')];
            echoed.forEach((element) => element.remove());
            return [document.documentElement.outerHTML, location.href, document.cookie,
                    JSON.stringify(localStorage), JSON.stringify(sessionStorage)];",
        )
        .await;
    assert!(!kept.to_string().contains("7c1f"), "{kept}");
    assert!(second.requests_to("/rpc").is_empty());

    // At the other origin, the fields are empty.
    talker.open(&id).await;
    fill(&talker, "bearer", SECRETS[0].1).await;
    talker.choose(&second.url("")).await;
    talker.ask("hello").await;
    let sent = second.requests_to("/rpc");
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert!(!sent.iter().any(carries), "{sent:?}");
    talker.close().await;
    registry.stop().await;
}

/// Neither the request by which a page asks first, nor that by which the console finds out why, carries credentials in its
/// headers; and a redirect is not followed with them, though the page's policy would let it be.
#[tokio::test]
async fn no_credential_leaves_with_a_call_that_fails() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let (agent, other) = (Origin::start(), Origin::start());
    agent.set_reply("/closed", OriginReply::json("{}"));
    let away = other.url("/rpc");
    agent.set_reply(
        "/moved",
        open_to_pages(OriginReply::status(307).with_header("location", &away)),
    );
    other.set_reply("/rpc", stream(&[message(&json!([{"text": "caught"}]))]));
    let talker = ConsoleUser::open_browser(&registry).await;
    for (path, failure) in [("/closed", "cors"), ("/moved", "redirect")] {
        let interfaces = json!([rpc(&agent.url(path)), rpc(&other.url("/rpc"))]);
        let (_card, id) = publish(&registry, card(&interfaces, &security_members())).await;
        talker.open(&id).await;
        fill(&talker, "header", SECRETS[1].1).await;
        fill(&talker, "query", SECRETS[2].1).await;
        assert_eq!(talker.fails("hello").await, failure, "{path}");
        let sent = agent.requests_to(path);
        let (calls, others): (Vec<_>, Vec<_>) =
            sent.iter().partition(|request| request.method == "POST");
        assert_eq!(calls.len(), usize::from(path == "/moved"), "{sent:?}");
        assert!(!others.is_empty(), "{sent:?}");
        let secret = |request: &&ReceivedRequest| format!("{:?}", request.headers).contains("7c1f");
        assert!(!others.iter().any(secret), "{sent:?}");
        let probes = others.iter().filter(|request| request.method == "GET");
        assert!(!probes.into_iter().any(|probe| carries(probe)), "{sent:?}");
    }
    assert!(other.requests_to("/rpc").is_empty());
    talker.close().await;
    registry.stop().await;
}
