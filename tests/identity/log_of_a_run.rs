//! The log of a whole run with sign-ins, refusals and decisions: it answers who approved what and why by itself, and
//! has none of the secrets that were used.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use url::Url;

use super::provider_callbacks::CookieBrowser;
use super::with_corp_in;
use crate::support::api::ApiResponse;
use crate::support::both_databases;
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

both_databases!(the_log_answers_who_did_what_and_has_no_secret);

const CARD: &str = "/.well-known/agent-card.json";
/// A direction override in it must not reach a terminal.
const NAME: &str = "Fern\u{202e}weh";
const UNKNOWN_TOKEN: &str = "a2ar_a-token-that-this-registry-never-made";
const DATABASE_PASSWORD: &str = "the-password-of-the-database";
const CLIENT_SECRET: &str = "the-secret-of-the-registry";

/// The URL with a password, if the server asks for none.
fn with_password(url: &str) -> String {
    if url.starts_with("sqlite:") {
        return url.to_owned();
    }
    let mut url = Url::parse(url).unwrap();
    if url.password().is_none() {
        url.set_password(Some(DATABASE_PASSWORD)).unwrap();
    }
    url.into()
}

/// A new token of an account: its id and secret.
async fn new_token(registry: &ServingRegistry, body: Value) -> (String, String) {
    let created = registry.post_as_admin("/v1/tokens", &body).await;
    let created = created.expect_status(201);
    let text = |member: &str| created[member].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

/// A request with that id and token.
fn identified(registry: &ServingRegistry, id: &str, token: &str, path: &str) -> RequestBuilder {
    let method = match path.starts_with("/v1/me") {
        true => Method::GET,
        false => Method::POST,
    };
    let request = registry.request(method, path).bearer_auth(token);
    request.header("x-request-id", id)
}

struct Log(Vec<Value>);

impl Log {
    /// Parses the lines, of which each is a JSON object without characters that control a terminal.
    fn parse(lines: &[String]) -> Self {
        let is_hidden = |c: char| c.is_control() || c == '\u{202e}';
        let parsed = lines.iter().map(|line| {
            assert!(!line.contains(is_hidden), "{line:?}");
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        });
        Self(parsed.collect())
    }

    /// The only line with these members.
    fn line(&self, members: &Value) -> &Value {
        let members = members.as_object().unwrap();
        let fits = |line: &&Value| members.iter().all(|(name, value)| line[name] == *value);
        let found: Vec<&Value> = self.0.iter().filter(fits).collect();
        let [line] = found.as_slice() else {
            panic!("{} lines have {members:?}: {found:#?}", found.len());
        };
        line
    }
}

async fn the_log_answers_who_did_what_and_has_no_secret(url: &str) {
    let setup = RegistrySetup::new()
        .with_database(&with_password(url))
        .with_config_lines("[log]\nformat = \"json\"\nfilter = \"debug\"");
    let (_corp, registry) = with_corp_in(setup).await;
    let mut browser = CookieBrowser::new();
    let departure = browser.departure(&registry.url, "/register").await;
    let back = browser.login(&departure, "ann").await;
    let attempt_cookies: Vec<String> = browser.cookies.values().cloned().collect();
    assert_eq!(browser.get(&back).await.status(), 303);

    let new = json!({"account": "pat", "role": "publisher", "name": "a test"});
    let (pat_id, pat) = new_token(&registry, new).await;
    let new = json!({"account": "ann@corp", "name": "a test"});
    let (ann_id, ann) = new_token(&registry, new).await;
    let origin = Origin::start();
    origin.set_reply(CARD, OriginReply::json(card_json(NAME, "book")));
    let request = identified(&registry, "req-register", &pat, "/v1/domains");
    let body = json!({"card_url": origin.url(CARD)});
    ApiResponse::send(request.json(&body))
        .await
        .expect_status(202);
    let review = registry.wait_for_open_review(|_| true).await.id;
    let shown: Value = registry
        .read_as_admin(&format!("/v1/reviews/{review}"))
        .await;
    let approve = format!("/v1/reviews/{review}:approve");
    let decision = json!({"digest": shown["digest"], "reason": "it is good"});
    let request = identified(&registry, "req-refused", &pat, &approve);
    ApiResponse::send(request.json(&decision))
        .await
        .expect_problem(403, "forbidden");
    let request = identified(&registry, "req-approve", &ann, &approve);
    ApiResponse::send(request.json(&decision))
        .await
        .expect_status(200);
    let suspend = format!("/v1/agents/{}:suspend", shown["agent"].as_str().unwrap());
    let request = identified(&registry, "req-suspend", &ann, &suspend);
    ApiResponse::send(request.json(&json!({"reason": "a complaint"})))
        .await
        .expect_status(200);
    let request = identified(&registry, "req-unknown", UNKNOWN_TOKEN, "/v1/me");
    ApiResponse::send(request)
        .await
        .expect_problem(401, "unauthenticated");
    let public_url = registry.url.clone();
    let ended = registry.stop().await;

    let log = Log::parse(&ended.stderr);
    let client = "127.0.0.1";
    log.line(
        &json!({"target": "audit", "event": "domain.registered", "actor": "pat", "token": pat_id,
        "client": client, "request_id": "req-register", "level": "INFO"}),
    );
    let approved = log.line(
        &json!({"target": "audit", "event": "agent.approved", "actor": "ann@corp", "token": ann_id,
        "client": client, "request_id": "req-approve", "agent": shown["agent"], "digest": shown["digest"],
        "reason": "it is good", "rule": "person"}),
    );
    assert!(approved["name"].as_str().unwrap().starts_with("Fern"));
    // The digest is the agent's, although the suspension names none.
    let held = log.line(
        &json!({"target": "audit", "event": "agent.held", "request_id": "req-suspend",
        "digest": shown["digest"], "reason": "a complaint", "hold": "operator"}),
    );
    assert_eq!(held["name"], approved["name"]);
    log.line(
        &json!({"target": "audit", "event": "request.refused", "actor": "pat", "token": pat_id,
        "client": client, "request_id": "req-refused", "problem": "forbidden"}),
    );
    let begun =
        json!({"target": "audit", "event": "session.begun", "actor": "ann@corp", "client": client});
    assert!(log.line(&begun)["request_id"].is_string());
    log.line(
        &json!({"target": "sign_in", "event": "sign_in.refused", "reason": "unknown_token",
        "client": client, "request_id": "req-unknown", "level": "WARN"}),
    );
    log.line(
        &json!({"target": "access", "request_id": "req-approve", "method": "POST", "path": approve,
        "client": client, "actor": "ann@corp", "token": ann_id, "status": 200}),
    );
    let database = match url.starts_with("sqlite:") {
        true => "sqlite",
        false => "postgresql",
    };
    let started = log.line(&json!({"event": "process.started", "actor": "system",
        "version": env!("CARGO_PKG_VERSION"), "database": database, "public_url": public_url}));
    assert!(
        started["listen"]
            .as_str()
            .unwrap()
            .starts_with("127.0.0.1:")
    );
    log.line(
        &json!({"event": "process.ended", "actor": "system", "reason": "SIGTERM",
        "clean": true, "unanswered": 0}),
    );

    // What the browser sent and got, and what the callback brought, is as secret as the tokens.
    let back = Url::parse(&back).unwrap();
    let brought = back.query_pairs().filter(|(name, _)| name != "iss");
    let mut secrets: Vec<String> = brought.map(|(_, value)| value.into_owned()).collect();
    secrets.extend(attempt_cookies);
    secrets.extend(browser.cookies.into_values());
    // Short values of the provider's cookies are words that a log may have.
    secrets.retain(|secret| secret.len() >= 16);
    assert!(secrets.len() >= 3, "{secrets:?}");
    let fixed = [
        ADMIN_TOKEN,
        UNKNOWN_TOKEN,
        DATABASE_PASSWORD,
        CLIENT_SECRET,
        pat.as_str(),
        ann.as_str(),
    ];
    secrets.extend(fixed.map(str::to_owned));
    for secret in &secrets {
        let leak = ended.stderr.iter().find(|line| line.contains(secret));
        assert_eq!(leak, None, "{secret} is in the log");
    }
}
