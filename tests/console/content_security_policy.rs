//! The content security policy: an agent's page allows the origins of its card, and no card affects another page.

use serde_json::json;

use super::{ConsoleUser, card, publish, rpc};
use crate::support::api::ApiResponse;
use crate::support::origin::Origin;
use crate::support::polling::eventually;
use crate::support::setup::RegistrySetup;

fn policy(page: &ApiResponse) -> String {
    let mut all = page.headers.get_all("content-security-policy").iter();
    let policy = all.next().unwrap().to_str().unwrap().to_owned();
    assert!(all.next().is_none(), "there is one policy");
    policy
}

/// The sources of a directive.
fn directive_sources(policy: &str, directive: &str) -> Vec<String> {
    let mut found = policy.split("; ").filter_map(|part| {
        let (name, sources) = part.split_once(' ')?;
        (name == directive).then(|| sources.split(' ').map(str::to_owned).collect())
    });
    let sources = found.next().unwrap_or_default();
    assert!(found.next().is_none(), "{directive} twice in {policy}");
    sources
}

const USUAL: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

#[tokio::test]
async fn the_page_of_an_agent_may_call_its_interfaces_and_nothing_else_may() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let interfaces = json!([
        rpc("https://one.example:8443/rpc?x='"),
        {"url": "http://two.example/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        {"url": "https://three.example", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
        {"url": "https://four.example", "protocolBinding": "SLIMRPC", "protocolVersion": "1.0"},
        rpc("https://one.example:8443/other"),
    ]);
    let (cards, id) = publish(&registry, card(&interfaces, &json!({}))).await;
    let page = registry.get(&format!("/agents/{id}/")).await;
    let policy = policy(&page);
    let mut connect = directive_sources(&policy, "connect-src");
    connect.sort();
    let wanted = ["'self'", "http://two.example", "https://one.example:8443"];
    assert_eq!(connect, wanted);
    let opened = " http://two.example https://one.example:8443";
    assert_eq!(policy.replace(opened, ""), USUAL);
    for path in [
        "/",
        "/?q=talk",
        "/about",
        "/register",
        "/nowhere",
        "/agents/nobody/",
        &format!("/agents/{id}/diff"),
        &format!("/domains/{}", cards.address()),
    ] {
        let request = registry.request(reqwest::Method::GET, path);
        let page = ApiResponse::send(request.header("accept", "text/html")).await;
        assert_eq!(self::policy(&page), USUAL, "{path}");
    }
    registry.stop().await;
}

/// Addresses of an attacker who writes a card.
const HOSTILE: [&str; 20] = [
    "https://*.example/",
    "https://*/",
    "https://*:*/",
    "https://a.example;script-src *//",
    "https://a.example/;script-src *",
    "https://a.example/ ; script-src 'unsafe-inline'",
    "https://a.example/\r\nX-Evil: 1",
    "https://a.example\n; default-src *",
    "https://a.example/'\"><script>alert(1)</script>",
    "https://a.example,b.example/",
    "https://a.example%3bscript-src/",
    "https://a.example%20b.example/",
    "https://'self'/",
    "https://'unsafe-eval'/",
    "https://[::1]:80/",
    "https://[fe80::1%25eth0]/",
    "https://user:secret@a.example/",
    "https://a_b.example/",
    "data:text/html,<script>alert(1)</script>",
    "javascript:alert(1)//http",
];

#[tokio::test]
async fn no_card_injects_a_directive_or_opens_another_origin() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let all: Vec<_> = HOSTILE.iter().map(|address| rpc(address)).collect();
    let unnamed: Vec<_> = all
        .iter()
        .filter(|one| !one["url"].as_str().unwrap().contains("a.example"))
        .collect();
    let many: Vec<_> = (0..100)
        .map(|nth| rpc(&format!("https://h{nth}.example/")))
        .collect();
    for (interfaces, origins) in [
        (json!(all), 1),
        (json!(unnamed), 0),
        // Many interfaces make no policy without bound.
        (json!(many), 8),
    ] {
        let name = json!("a\r\nContent-Security-Policy: default-src *; connect-src *");
        let hostile = card(&interfaces, &json!({"name": name, "description": name}));
        let (_card, id) = publish(&registry, hostile).await;
        let page = registry.get(&format!("/agents/{id}/")).await;
        let policy = policy(&page);
        assert!(!page.headers.contains_key("x-evil"), "{policy}");
        let opened = directive_sources(&policy, "connect-src").split_off(1);
        assert_eq!(opened.len(), origins, "{policy}");
        let mut closed = policy.clone();
        for source in &opened {
            let expected = source == "https://a.example" || source.starts_with("https://h");
            assert!(expected, "{policy}");
            closed = closed.replacen(&format!(" {source}"), "", 1);
        }
        assert_eq!(closed, USUAL);
        // Without an origin to call there is no console, and the command instead.
        let text = page.text();
        assert_eq!(text.contains("console.js"), origins > 0, "{text}");
        assert_eq!(text.contains("console-closed"), origins == 0, "{text}");
    }
    registry.stop().await;
}

/// The browser itself keeps the page to the origins of the card, and lets no script write markup.
#[tokio::test]
async fn a_browser_holds_the_page_to_its_policy() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let (agent, stranger) = (Origin::start(), Origin::start());
    let interfaces = json!([rpc(&agent.url("/rpc"))]);
    let (_card, id) = publish(&registry, card(&interfaces, &json!({}))).await;
    let talker = ConsoleUser::open_browser(&registry).await;
    talker.open(&id).await;
    let tried = format!(
        "const done = arguments[arguments.length - 1];
        const reach = (url) => fetch(url, {{mode: 'no-cors'}}).then(() => 'reached', () => 'refused');
        const write = () => {{ try {{ document.body.innerHTML = '<p>x'; return 'written'; }} catch {{ return 'refused'; }} }};
        Promise.all([reach('{}'), reach('{}')]).then((reached) => done([...reached, write()]));",
        agent.url("/x"),
        stranger.url("/x"),
    );
    let page = talker.visitor.browser.page();
    let tried = page.execute_async(&tried, Vec::new()).await.unwrap();
    assert_eq!(*tried.json(), json!(["reached", "refused", "refused"]));
    assert!(stranger.requests_to("/x").is_empty());
    talker.close().await;
    registry.stop().await;
}

/// A deprecated agent is called after a warning; one that policies do not let the visitor call, or that is on hold, is not,
/// by those either who see it.
#[tokio::test]
async fn an_agent_that_may_not_be_called_has_no_console() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let interfaces = json!([rpc("https://agent.example/rpc")]);
    let (_card, id) = publish(&registry, card(&interfaces, &json!({}))).await;
    let act = async |verb: &str| {
        let path = format!("/v1/agents/{id}:{verb}");
        let reason = json!({"reason": "It lies."});
        registry
            .post_as_admin(&path, &reason)
            .await
            .expect_status(200);
    };
    let path = format!("/agents/{id}/");
    act("deprecate").await;
    let page = registry.get(&path).await;
    assert_eq!(
        directive_sources(&policy(&page), "connect-src"),
        ["'self'", "https://agent.example"]
    );
    let text = page.text();
    assert!(text.contains("<p class=\"hint\">The agent is deprecated.</p>"));

    let texts = [
        "permit (principal, action, resource);",
        "forbid (principal, action == Action::\"invoke\", resource);",
    ];
    let policies: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(nth, text)| json!({"id": format!("p{nth}"), "text": text}))
        .collect();
    let set = json!({"policies": policies, "reason": "Nobody calls."});
    let put = registry
        .admin_request(reqwest::Method::PUT, "/v1/policies")
        .json(&set);
    ApiResponse::send(put).await.expect_status(202);
    let forbidden = eventually("the policies are in force", || async {
        let page = registry.get(&path).await;
        page.text()
            .contains("do not allow you to call this agent")
            .then_some(page)
    })
    .await;

    act("suspend").await;
    let held = registry.get_as_admin(&path).await;
    assert!(
        held.text()
            .contains("only listed agents can be called from this page")
    );
    for closed in [forbidden, held] {
        assert_eq!(policy(&closed), USUAL);
        let text = closed.text();
        assert!(!text.contains("console.js"), "{text}");
        let (_, console) = text.split_once("id=\"console\"").unwrap();
        let (console, _) = console.split_once("</section>").unwrap();
        assert!(!console.contains("a2a-registry send"), "{console}");
    }
    registry.stop().await;
}
