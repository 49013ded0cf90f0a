//! Endpoint checks of running agents: those on third-party SDKs, and servers that are no agents. The agents' own logs
//! prove that no message is sent.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::free_port;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::program::join_lines;
use crate::support::sdk::{Sdk, SdkAgent};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::RegistrySetup;

const NOT_FOUND: &str =
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}"#;

/// A registry that checks endpoints of vouched hosts, and approves every card.
async fn checking_registry() -> ServingRegistry {
    RegistrySetup::with_default_config()
        .with_config_lines(
            "[crawler]\nallow_networks = [\"127.0.0.0/8\"]\nallow_http = true\nallow_ports = \"any\"\n\
             check_endpoints = \"vouched\"",
        )
        .approve_all()
        .start()
        .await
}

/// A card with one interface.
fn card(name: &str, url: &str, binding: &str, version: &str) -> String {
    let card = json!({
        "name": name,
        "description": "Is asked whether it answers.",
        "version": "1.0.0",
        "supportedInterfaces": [{"url": url, "protocolBinding": binding, "protocolVersion": version}],
        "capabilities": {},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "Skill", "description": "None.", "tags": ["t"]}],
    });
    card.to_string()
}

/// Permits checks of the endpoints on a host, which is registered by a card URL on it, so that its scheme is http.
async fn vouch(registry: &ServingRegistry, host: &str) {
    registry.register(&format!("http://{host}/card.json")).await;
    let vouched = registry
        .run_admin_command(&["domain", "vouch", host, "--endpoints", "--reason", "a test"])
        .await;
    assert_eq!(vouched.status.code(), Some(0), "{vouched:#?}");
}

/// Waits until the agent was checked, and returns what the admin sees.
async fn wait_for_check(registry: &ServingRegistry, agent: &str) -> Value {
    let path = format!("/v1/agents/{agent}/endpoint");
    eventually("the endpoint is checked", || async {
        let view = registry.get_as_admin(&path).await.expect_status(200);
        view["checked_on"].is_string().then_some(view)
    })
    .await
}

/// An interface of a running agent: its URL, binding and protocol version.
fn cells(sdk: Sdk, agent: &SdkAgent) -> Vec<(String, &'static str, &'static str)> {
    let base = &agent.base_url;
    let grpc = || format!("http://{}", agent.grpc_address.as_deref().unwrap());
    match sdk {
        Sdk::OwnV01 => vec![(format!("{base}/"), "JSONRPC", "0.1")],
        Sdk::Py02 => vec![(format!("{base}/"), "JSONRPC", "0.2")],
        Sdk::Py03 | Sdk::Node03 => vec![
            (format!("{base}/rpc"), "JSONRPC", "0.3"),
            (format!("{base}/rest"), "HTTP+JSON", "0.3"),
            (grpc(), "GRPC", "0.3"),
        ],
        Sdk::Py1 | Sdk::Node => vec![
            (format!("{base}/rpc"), "JSONRPC", "1.0"),
            (format!("{base}/rest"), "HTTP+JSON", "1.0"),
            (grpc(), "GRPC", "1.0"),
        ],
        other => panic!("{other:?} has no cells"),
    }
}

/// The interfaces of each agent as its own card has them, in place of a guess.
async fn own_cells(sdk: Sdk, agent: &SdkAgent) -> Vec<(String, &'static str, &'static str)> {
    let card = crate::support::http_client()
        .get(agent.card_url(sdk))
        .send()
        .await
        .unwrap();
    let card: Value = card.json().await.unwrap();
    let listed = card["supportedInterfaces"]
        .as_array()
        .or(card["additionalInterfaces"].as_array());
    let mut found = cells(sdk, agent);
    for (url, binding, _) in &mut found {
        let of_card = listed.into_iter().flatten().find(|interface| {
            let name = interface
                .get("protocolBinding")
                .or(interface.get("transport"));
            name.and_then(Value::as_str) == Some(*binding) && *binding != "GRPC"
        });
        if let Some(known) = of_card.and_then(|interface| interface["url"].as_str()) {
            *url = known.to_owned();
        }
    }
    if listed.is_none()
        && let Some(known) = card["url"].as_str()
    {
        found[0].0 = known.to_owned();
    }
    found
}

/// All agents of an SDK answer over each of its bindings, and none of them got a message.
async fn answers_in_every_cell(registry: &ServingRegistry, sdk: Sdk) {
    let agent = sdk.start_agent().await;
    vouch(registry, &format!("127.0.0.1:{}", agent.port())).await;
    if let Some(grpc) = &agent.grpc_address {
        vouch(registry, grpc).await;
    }
    let mut ids = Vec::new();
    for (url, binding, version) in own_cells(sdk, &agent).await {
        let origin = Origin::start();
        let name = format!("{sdk:?} {binding}");
        origin.set_reply(
            "/card.json",
            OriginReply::json(card(&name, &url, binding, version)),
        );
        let id = registry.publish(&origin.url("/card.json")).await;
        let view = wait_for_check(registry, &id).await;
        assert_eq!(view["state"], "answers", "{name}: {view:#}");
        assert_eq!(view["details"]["binding"], binding, "{name}: {view:#}");
        let checked = registry.run_admin_command(&["check", &id]).await;
        assert_eq!(checked.status.code(), Some(0), "{name}: {checked:#?}");
        let said = join_lines(&checked.stdout);
        assert!(said.contains("answers"), "{name}: {said}");
        ids.push(id);
    }
    // The log would show a message.
    let sent = registry
        .run_admin_command(&["send", &ids[0], "hello"])
        .await;
    assert_eq!(sent.status.code(), Some(0), "{sdk:?}: {sent:#?}");
    let log = agent.program.terminate().await.stdout;
    let messages: Vec<&String> = log
        .iter()
        .filter(|line| line.starts_with("MESSAGE"))
        .collect();
    assert_eq!(messages.len(), 1, "{sdk:?}: {log:#?}");
    assert!(messages[0].ends_with("hello"), "{sdk:?}: {log:#?}");
}

#[tokio::test]
async fn agents_on_every_sdk_answer_without_a_message() {
    let registry = checking_registry().await;
    let sdks = [
        Sdk::OwnV01,
        Sdk::Py02,
        Sdk::Py03,
        Sdk::Py1,
        Sdk::Node03,
        Sdk::Node,
    ];
    join_all(sdks.map(|sdk| answers_in_every_cell(&registry, sdk))).await;
}

/// Publishes an agent whose endpoint is at that URL; returns its id and its origin.
async fn publish_with_endpoint(registry: &ServingRegistry, url: &str) -> (String, Origin) {
    let origin = Origin::start();
    origin.set_reply(
        "/card.json",
        OriginReply::json(card("Plain", url, "JSONRPC", "1.0")),
    );
    let id = registry.publish(&origin.url("/card.json")).await;
    (id, origin)
}

#[tokio::test]
async fn other_servers_get_the_right_word() {
    let registry = checking_registry().await;
    let server = Origin::start();
    let host = server.address().to_string();
    vouch(&registry, &host).await;
    let login = OriginReply::status(401).with_header("www-authenticate", "Bearer realm=\"x\"");
    for (path, reply, expected) in [
        ("/agent", OriginReply::json(NOT_FOUND), "answers"),
        ("/login", login, "needs_credentials"),
        ("/forbidden", OriginReply::status(403), "needs_credentials"),
        ("/method", OriginReply::status(405), "unclear"),
        (
            "/large",
            OriginReply::json(vec![b' '; 100 << 20]),
            "unclear",
        ),
        ("/site", OriginReply::html("<!doctype html>"), "not_a2a"),
        ("/nothing", OriginReply::status(404), "unclear"),
        (
            "/moved",
            OriginReply::redirect("http://127.0.0.1:9/"),
            "unclear",
        ),
        ("/endless", OriginReply::endless(), "unclear"),
        ("/stalled", OriginReply::stalled("{"), "does_not_answer"),
        ("/proxy", OriginReply::status(502), "does_not_answer"),
    ] {
        server.set_reply(path, reply);
        let (id, _origin) = publish_with_endpoint(&registry, &server.url(path)).await;
        let view = wait_for_check(&registry, &id).await;
        assert_eq!(view["state"], expected, "{path}: {view:#}");
        assert_eq!(server.requests_to(path).len(), 1, "{path}");
        assert_eq!(server.requests_to(path)[0].method, "POST", "{path}");
        let scheme = &view["details"]["auth_scheme"];
        assert_eq!(scheme.as_str(), (path == "/login").then_some("Bearer"));
        // Others see the word and the day.
        let public = registry.get(&format!("/v1/agents/{id}/endpoint")).await;
        let public = public.expect_status(200);
        assert_eq!(public["state"], expected);
        assert_eq!(public.get("details"), None, "{public:#}");
        let query = format!("endpoint={expected}&page_size=100");
        let hit = eventually("the search finds it", || async {
            let found = registry.search(&query).await;
            let mut hits = found["agents"].as_array().unwrap().iter();
            hits.find(|hit| hit["id"] == id.as_str()).cloned()
        })
        .await;
        assert_eq!(hit["endpoint"], json!({"state": expected}));
    }
    let counted = registry.search("facets=endpoint").await;
    let values = counted["facets"]["endpoint"]["values"].as_array().unwrap();
    assert!(
        values
            .iter()
            .any(|value| value["value"] == "answers" && value["count"] == 1),
        "{values:?}"
    );
}

#[tokio::test]
async fn a_dead_host_does_not_answer() {
    let registry = checking_registry().await;
    let dead = format!("127.0.0.1:{}", free_port());
    vouch(&registry, &dead).await;
    let (id, _origin) = publish_with_endpoint(&registry, &format!("http://{dead}/rpc")).await;
    let view = wait_for_check(&registry, &id).await;
    assert_eq!(view["state"], "does_not_answer", "{view:#}");
    let reason = view["details"]["reason"].as_str().unwrap();
    assert!(!reason.is_empty());
    // The user's machine sees the same.
    let checked = registry.run_admin_command(&["check", &id]).await;
    assert_eq!(checked.status.code(), Some(1), "{checked:#?}");
}

#[tokio::test]
async fn nobody_makes_the_registry_ask_a_third_party() {
    let registry = checking_registry().await;
    let (third_party, vouched) = (Origin::start(), Origin::start());
    third_party.set_reply("/rpc", OriginReply::json(NOT_FOUND));
    vouched.set_reply("/rpc", OriginReply::json(NOT_FOUND));
    vouch(&registry, &vouched.address().to_string()).await;
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let private = unused.local_addr().unwrap();
    let (stranger, _a) = publish_with_endpoint(&registry, &third_party.url("/rpc")).await;
    let (hidden, _b) = publish_with_endpoint(&registry, &format!("http://{private}/rpc")).await;
    // The other scheme and name of a vouched host are not vouched for.
    let https = format!("https://{}/rpc", vouched.address());
    let (over_tls, _c) = publish_with_endpoint(&registry, &https).await;
    let named = format!("http://localhost:{}/rpc", vouched.address().port());
    let (by_name, _d) = publish_with_endpoint(&registry, &named).await;
    // Published last, so its check shows that the others were considered before.
    let (permitted, _e) = publish_with_endpoint(&registry, &vouched.url("/rpc")).await;
    let view = wait_for_check(&registry, &permitted).await;
    assert_eq!(view["state"], "answers");
    for id in [stranger, hidden, over_tls, by_name] {
        let path = format!("/v1/agents/{id}/endpoint");
        let view = registry.get_as_admin(&path).await.expect_status(200);
        assert_eq!(view, json!({"state": "not_checked"}), "{id}");
    }
    assert!(third_party.requests_to("/rpc").is_empty());
    assert_eq!(vouched.requests_to("/rpc").len(), 1);
}

#[tokio::test]
async fn an_owner_turns_checks_off_and_an_admin_ends_the_vouch() {
    let registry = checking_registry().await;
    let server = Origin::start();
    let host = server.address().to_string();
    server.set_reply("/rpc", OriginReply::json(NOT_FOUND));
    vouch(&registry, &host).await;
    let (id, _origin) = publish_with_endpoint(&registry, &server.url("/rpc")).await;
    assert_eq!(wait_for_check(&registry, &id).await["state"], "answers");
    let path = format!("/v1/agents/{id}/endpoint");
    let becomes = async |state: &str| {
        eventually(state, || async {
            let view = registry.get_as_admin(&path).await.expect_status(200);
            (view["state"] == state).then_some(())
        })
        .await;
    };
    let set = async |value: &str| {
        registry
            .run_admin_command(&["domain", "set", &host, "--endpoint-checks", value])
            .await
    };
    assert_eq!(set("false").await.status.code(), Some(0));
    becomes("not_checked").await;
    assert_eq!(set("true").await.status.code(), Some(0));
    becomes("answers").await;
    let ended = registry.admin_request(
        Method::DELETE,
        &format!("/v1/domains/{host}/endpoint-vouch"),
    );
    assert_eq!(ended.send().await.unwrap().status(), 204);
    becomes("not_checked").await;
    let again = registry.admin_request(
        Method::DELETE,
        &format!("/v1/domains/{host}/endpoint-vouch"),
    );
    assert_eq!(again.send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn the_samples_of_the_demonstration_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut command =
        crate::support::program::registry_command(["demo", "--listen", "127.0.0.1:0"]);
    command.env("TMPDIR", folder.path()).arg("--json");
    let demo = crate::support::program::Program::start(command);
    let document = demo
        .wait_for_match(|line| {
            let document: Value = serde_json::from_str(line).ok()?;
            document["agents"].is_array().then_some(document)
        })
        .await;
    let registry = crate::support::api::RegistryClient::new(document["url"].as_str().unwrap());
    let agents = document["agents"].as_array().unwrap();
    let is_listed = |agent: &&Value| {
        let shows = agent["shows"].as_str().unwrap();
        shows.starts_with("listed") || shows.starts_with("proved")
    };
    let listed: Vec<&Value> = agents.iter().filter(is_listed).collect();
    assert_eq!(listed.len(), 4, "{agents:?}");
    for agent in listed {
        let path = format!("/v1/agents/{}/endpoint", agent["id"].as_str().unwrap());
        eventually("a sample answers", || async {
            let view = registry.get(&path).await.expect_status(200);
            (view["state"] == "answers").then_some(())
        })
        .await;
    }
}
