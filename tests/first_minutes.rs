//! The first minutes with a registry: the demonstration shows all of it, a local registry takes an agent of one's own,
//! and the command line logs in through the browser.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::policy_pages::PageSession;
use crate::support::api::RegistryClient;
use crate::support::cards::card_json;
use crate::support::http_client;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::program::{Program, assert_exit, join_lines, registry_command};
use crate::support::serving_registry::start_serving;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

/// Asks a registry with a token, or without.
async fn ask(url: &str, token: Option<&str>, path: &str) -> Value {
    let request = http_client().get(format!("{url}{path}"));
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert!(status.is_success(), "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

fn entry<'a>(document: &'a Value, list: &str, name: &str) -> &'a Value {
    let mut entries = document[list].as_array().unwrap().iter();
    let found = entries.find(|entry| entry["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {document:#}"))
}

/// Every file below a folder.
fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

#[tokio::test]
async fn the_demonstration_shows_the_whole_product() {
    let folder = TempDir::new().unwrap();
    let mut command = registry_command(["demo", "--listen", "127.0.0.1:0", "--json"]);
    command.env("TMPDIR", folder.path());
    let demo = Program::start(command);
    let shown: Value = demo
        .wait_for_match(|line| serde_json::from_str(line).ok())
        .await;
    let url = shown["url"].as_str().unwrap();
    let token = |name: &str| entry(&shown, "accounts", name)["token"].as_str().unwrap();
    let agent = |name: &str| entry(&shown, "agents", name)["id"].as_str().unwrap();

    for role in ["admin", "reader", "publisher", "curator", "auditor"] {
        let me = ask(url, Some(token(role)), "/v1/me").await;
        assert_eq!(me["role"], role, "{me}");
        let link = entry(&shown, "accounts", role)["sign_in"].as_str().unwrap();
        let page = http_client().get(link).send().await.unwrap();
        assert_eq!(page.status(), 200);
        let page = page.text().await.unwrap();
        assert!(page.contains(&format!("<bdi>{role}</bdi>")), "{page}");
    }

    // Proved and signed, so that it has a URN and is found by every dialect.
    let trips = ask(url, None, &format!("/v1/agents/{}", agent("Trip Planner"))).await;
    assert_eq!(trips["domain"], "trips.example.com");
    assert_eq!(trips["trust"]["level"], "L2", "{trips:#}");
    assert_eq!(trips["signature_verdict"]["state"], "valid", "{trips:#}");
    let urn = trips["urn"].as_str().unwrap();
    let search = http_client()
        .post(format!("{url}/ard/search"))
        .json(&json!({"query": {"text": "book a flight"}}));
    let found = search.send().await.unwrap().text().await.unwrap();
    assert!(found.contains(urn), "{found}");

    let curator = Some(token("curator"));
    let open = ask(url, curator, "/v1/reviews?state=open").await;
    let review = |name: &str| entry(&open, "reviews", name);
    assert!(review("Invoice Reader")["change_class"].is_null());
    assert_eq!(review("Menu Translator")["change_class"], "high");
    assert_eq!(open["reviews"].as_array().unwrap().len(), 2, "{open:#}");
    let menus = ask(
        url,
        None,
        &format!("/v1/agents/{}", agent("Menu Translator")),
    )
    .await;
    assert_eq!(menus["card"]["version"], "1.0.0", "{menus:#}");
    let parcels = format!("/v1/agents/{}", agent("Parcel Tracker"));
    let hidden = http_client().get(format!("{url}{parcels}")).send().await;
    assert_eq!(hidden.unwrap().status(), 404);
    let parcels = ask(url, curator, &parcels).await;
    assert_eq!(parcels["holds"][0]["hold"], "operator", "{parcels:#}");
    ask(url, None, "/v1/collections/travel").await;
    eventually("the dry run has results", || async {
        let run = ask(url, curator, "/v1/policies/proved-domains-only/dry-run").await;
        (run["answers"].as_u64().unwrap() > 0).then_some(())
    })
    .await;

    let mut written = Vec::new();
    files(folder.path(), &mut written);
    assert!(!written.is_empty());
    for path in written {
        let bytes = std::fs::read(&path).unwrap();
        let has_key = bytes.windows(11).any(|part| part == b"PRIVATE KEY");
        assert!(!has_key, "{}", path.display());
    }
    assert_eq!(demo.terminate().await.status.code(), Some(0));
}

#[tokio::test]
async fn a_registry_that_reaches_this_machine_listens_here_only() {
    for command in [&["demo"][..], &["serve", "--local"]] {
        let folder = TempDir::new().unwrap();
        let mut command = registry_command(command);
        command.args([
            "--listen",
            "0.0.0.0:0",
            "--public-url",
            "http://127.0.0.1:1",
        ]);
        command.arg("--data-dir").arg(folder.path());
        let refused = Program::run(command).await;
        assert_exit(&refused, 2, "not a loopback address");
    }
}

#[tokio::test]
async fn a_local_registry_takes_an_agent_of_this_machine_without_a_configuration() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::start();
    origin.set_reply("/card.json", OriginReply::json(card_json("Echo", "repeat")));
    let serve = |local: bool| {
        let mut command = registry_command(["serve", "--listen", "127.0.0.1:0"]);
        command.arg("--data-dir").arg(folder.path());
        command.env("A2A_REGISTRY_BOOTSTRAP_TOKEN", ADMIN_TOKEN);
        if local {
            command.arg("--local");
        }
        command
    };
    let card = json!({"card_url": origin.url("/card.json")});
    let (program, status_line) = start_serving(serve(false)).await;
    let registry = RegistryClient::new(status_line.url());
    let refused = registry.post_as_admin("/v1/domains", &card).await;
    let problem = refused.expect_problem(422, "target-refused");
    let detail = problem["detail"].as_str().unwrap();
    for setting in ["allow_http", "allow_networks", "allow_ports"] {
        assert!(detail.contains(setting), "{detail}");
    }
    assert_eq!(
        problem["errors"].as_array().unwrap().len(),
        3,
        "{problem:#}"
    );
    assert_eq!(program.terminate().await.status.code(), Some(0));

    let (program, status_line) = start_serving(serve(true)).await;
    let registry = RegistryClient::new(status_line.url());
    let mut feed = registry.open_event_stream(0).await;
    registry.register(&origin.url("/card.json")).await;
    // A local registry reviews cards like any other.
    feed.wait_for_match("review.opened", |_| true).await;
    assert_eq!(program.terminate().await.status.code(), Some(0));
}

/// A command with a folder for its configuration.
fn command_in(folder: &TempDir, arguments: &[&str], url: &str) -> Command {
    let mut command = registry_command(arguments);
    command.args(["--registry", url]);
    command.env("XDG_CONFIG_HOME", folder.path());
    command
}

#[tokio::test]
async fn a_login_in_the_browser_gives_the_command_line_a_token() {
    let registry = RegistrySetup::new().start().await;
    let token = registry.create_token("acme", "publisher").await;
    let browser = PageSession::sign_in(&registry, &token).await;
    let folder = TempDir::new().unwrap();
    let url = registry.url.clone();
    let login = Program::start(command_in(&folder, &["login"], &url));
    let address = login.wait_for_line("allow the login at ").await;
    let (_, path) = address.split_once(&url).unwrap();
    let (status, page) = browser.get(path).await;
    assert_eq!(status, 200, "{page}");
    let field = |name: &str| {
        let (_, rest) = page
            .split_once(&format!("name=\"{name}\" value=\""))
            .unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let names = ["port", "state", "challenge", "days"];
    let values = names.map(field);
    let mut fields: Vec<(&str, &str)> = Vec::new();
    for (name, value) in names.into_iter().zip(&values) {
        fields.push((name, value));
    }
    fields.extend([("scope", "read"), ("scope", "register")]);
    let (status, page) = browser.post("/login", &fields).await;
    assert_eq!(status, 200, "{page}");
    let (_, rest) = page.split_once("id=\"continue\" href=\"").unwrap();
    let back = rest
        .split('"')
        .next()
        .unwrap()
        .replace("&#38;", "&")
        .replace("&amp;", "&");
    let returned = http_client().get(&back).send().await.unwrap();
    assert_eq!(returned.status(), 200);
    let ended = login.wait_for_end().await;
    assert_exit(&ended, 0, "");
    assert!(join_lines(&ended.stdout).contains("as acme"), "{ended:#?}");

    let whoami = Program::run(command_in(&folder, &["whoami"], &url)).await;
    assert_exit(&whoami, 0, "");
    let said = join_lines(&whoami.stdout);
    assert!(said.contains("acme") && said.contains("register"), "{said}");
    let file = folder.path().join("a2a-registry/logins.json");
    let stored = std::fs::read_to_string(&file).unwrap();
    assert!(stored.contains("a2ar_"));
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    // The token goes to no other registry.
    let elsewhere = RegistrySetup::new().start().await;
    let other = Program::run(command_in(&folder, &["whoami"], &elsewhere.url)).await;
    assert_eq!(other.status.code(), Some(2), "{other:#?}");

    let logout = Program::run(command_in(&folder, &["logout"], &url)).await;
    assert_exit(&logout, 0, "");
    let list = registry.admin_request(Method::GET, "/v1/tokens");
    let list: Value = list.send().await.unwrap().json().await.unwrap();
    let mut tokens = list["tokens"].as_array().unwrap().iter();
    assert!(!tokens.any(|token| token["name"] == "login"), "{list:#}");
    let again = Program::run(command_in(&folder, &["logout"], &url)).await;
    assert_exit(&again, 1, "there is no login");
}

/// The token of a login goes to the registry alone, also where a command calls an agent that it found there.
#[tokio::test]
async fn an_agent_never_gets_the_token_of_a_login() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let token = registry.create_token("ada", "reader").await;
    let agent = Origin::start();
    let mut card: Value = serde_json::from_str(&card_json("Echo", "repeat")).unwrap();
    card["url"] = agent.url("/rpc").into();
    card["capabilities"] = json!({});
    agent.set_reply("/card.json", OriginReply::json(card.to_string()));
    let message = json!({
        "kind": "message", "messageId": "m", "role": "agent",
        "parts": [{"kind": "text", "text": "hello"}],
    });
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": message});
    agent.set_reply("/rpc", OriginReply::json(answer.to_string()));
    let id = registry.publish(&agent.url("/card.json")).await;

    let folder = TempDir::new().unwrap();
    let logins = folder.path().join("a2a-registry/logins.json");
    std::fs::create_dir(folder.path().join("a2a-registry")).unwrap();
    let login = json!({"token": token, "id": id, "account": "ada", "expires_at": null});
    let stored = json!({"registries": {(format!("{}/", registry.url)): login}});
    std::fs::write(&logins, stored.to_string()).unwrap();
    let private: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&logins, private).unwrap();

    let whoami = Program::run(command_in(&folder, &["whoami"], &registry.url)).await;
    assert!(join_lines(&whoami.stdout).contains("ada"), "{whoami:#?}");
    let sent = Program::run(command_in(&folder, &["send", &id, "hi"], &registry.url)).await;
    assert_exit(&sent, 0, "");
    assert!(join_lines(&sent.stdout).contains("hello"), "{sent:#?}");
    assert!(!agent.requests_to("/rpc").is_empty());
    let requests = format!("{:?}", *agent.subscribe_requests().borrow());
    assert!(!requests.contains(&token), "{requests}");
}
