//! Gateways that ask the registry before each call: the shipped configuration of nginx in front of a real agent, and
//! what any gateway is told.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::support::api::ApiResponse;
use crate::support::cards::card_json;
use crate::support::free_port;
use crate::support::nginx::{GuardedAgent, Nginx, NginxSite};
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::sdk::Sdk;
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

/// The token of an account that may ask about others, and nothing else.
async fn create_gateway_token(registry: &ServingRegistry) -> String {
    let new =
        json!({"account": "gateway", "role": "auditor", "name": "gateway", "scopes": ["decide"]});
    let made = registry.post_as_admin("/v1/tokens", &new).await;
    let made = made.expect_status(201);
    made["secret"].as_str().unwrap().to_owned()
}

/// Puts policies in force, and waits until they decide.
async fn put_policies(registry: &ServingRegistry, policies: Value) {
    let new = json!({"policies": policies, "reason": "a test"});
    let put = registry.admin_request(Method::PUT, "/v1/policies");
    let accepted = ApiResponse::send(put.json(&new)).await.expect_status(202);
    eventually("the policies decide", async || {
        let shown: Value = registry.read_as_admin("/v1/policies").await;
        (shown["in_force"] == accepted["number"]).then_some(())
    })
    .await;
}

fn open() -> Value {
    json!({"id": "everybody", "text": "permit (principal, action, resource);"})
}

/// The call of an agent through its gateway.
struct GuardedCall {
    url: String,
    client: Client,
}

impl GuardedCall {
    fn new(site: &NginxSite, nginx: &Nginx) -> Self {
        Self {
            url: site.url(),
            client: nginx.client.clone(),
        }
    }

    /// Sends a message, and returns the status and the text of the answer.
    async fn send(&self, authorization: Option<&str>) -> (StatusCode, String) {
        let message = json!({"role": "user", "kind": "message", "messageId": "one",
            "parts": [{"kind": "text", "text": "hello"}]});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send",
            "params": {"message": message}});
        let mut request = self.client.post(format!("{}/", self.url)).json(&call);
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status();
        (status, answer.text().await.unwrap())
    }
}

/// Allowed, denied by a policy, suspended under load, and closed without the registry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nginx_asks_before_each_call_of_an_agent() {
    let Some(site) = NginxSite::find() else {
        // Written past the capture of the test harness, so that it is seen.
        let line =
            "SKIPPED: no gateway is tried, because nginx is missing (Debian's package nginx-light)";
        writeln!(std::io::stderr(), "{line}").unwrap();
        return;
    };
    let port = free_port();
    let setup = RegistrySetup::new()
        .approve_all()
        .with_argument("--listen")
        .with_argument(&format!("127.0.0.1:{port}"));
    let registry = setup.start_without_proxy().await;
    let agent = Sdk::Py03.start_agent().await;
    let card_url = format!("{}/.well-known/agent-card.json", agent.base_url);
    let id = registry.publish(&card_url).await;
    let token = create_gateway_token(&registry).await;
    let guarded = GuardedAgent {
        address: agent.base_url.strip_prefix("http://").unwrap(),
        id: &id,
        registry_port: port,
        token: &token,
    };
    let nginx = site.start_gateway(setup.scratch_folder(), &guarded).await;
    let call = GuardedCall::new(&site, &nginx);

    let (status, text) = call.send(None).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    assert!(text.contains(&Sdk::Py03.reply_to("hello")), "{text}");
    // The registry's own tokens and anything else that is no access token of a provider name nobody.
    for authorization in [format!("Bearer {ADMIN_TOKEN}"), "Basic YTpi".to_owned()] {
        let (status, text) = call.send(Some(&authorization)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{authorization}: {text}");
    }
    let forbid =
        "forbid (principal == Account::\"anonymous\", action == Action::\"invoke\", resource);";
    let forbids = json!({"id": "no-strangers", "text": forbid});
    put_policies(&registry, json!([open(), forbids])).await;
    assert_eq!(call.send(None).await.0, StatusCode::FORBIDDEN);
    put_policies(&registry, json!([open()])).await;
    assert_eq!(call.send(None).await.0, StatusCode::OK);

    suspend_under_load(&registry, &id, Arc::new(call)).await;

    let call = GuardedCall::new(&site, &nginx);
    let resume = registry.admin_request(Method::POST, &format!("/v1/agents/{id}:resume"));
    let resumed = resume.json(&json!({"reason": "a test"})).send().await;
    assert_eq!(resumed.unwrap().status(), StatusCode::OK);
    eventually("the agent is called again", async || {
        (call.send(None).await.0 == StatusCode::OK).then_some(())
    })
    .await;
    registry.program.kill().await;
    let (status, text) = call.send(None).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{text}");
    assert!(!text.contains("heard"), "{text}");
}

/// Calls the agent from several clients, and suspends it meanwhile: no call that begins after the answer to the
/// suspension gets through.
async fn suspend_under_load(registry: &ServingRegistry, id: &str, call: Arc<GuardedCall>) {
    let is_suspended = Arc::new(AtomicBool::new(false));
    let (allowed, denied) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut clients = Vec::new();
    for _ in 0..8 {
        let (call, is_suspended) = (Arc::clone(&call), Arc::clone(&is_suspended));
        let (allowed, denied) = (Arc::clone(&allowed), Arc::clone(&denied));
        clients.push(tokio::spawn(async move {
            let mut late_denials = 0;
            while late_denials < 20 {
                let began_late = is_suspended.load(Ordering::SeqCst);
                let (status, text) = call.send(None).await;
                match status {
                    StatusCode::OK => {
                        assert!(!began_late, "a suspended agent was called: {text}");
                        allowed.fetch_add(1, Ordering::SeqCst);
                    }
                    StatusCode::FORBIDDEN => {
                        denied.fetch_add(1, Ordering::SeqCst);
                        late_denials += u32::from(began_late);
                    }
                    other => panic!("{other}: {text}"),
                }
            }
        }));
    }
    eventually("calls get through", async || {
        (allowed.load(Ordering::SeqCst) >= 40).then_some(())
    })
    .await;
    let suspend = registry.admin_request(Method::POST, &format!("/v1/agents/{id}:suspend"));
    let suspended = suspend.json(&json!({"reason": "a test"})).send().await;
    assert_eq!(suspended.unwrap().status(), StatusCode::OK);
    is_suspended.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    assert!(denied.load(Ordering::SeqCst) >= 160);
}

/// A gateway is told 200 or 403 and nothing else, with the id of the decision.
#[tokio::test]
async fn a_gateway_is_told_two_statuses() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    let id = registry.publish(&origin.url("/a.json")).await;
    let gateway = create_gateway_token(&registry).await;
    let reader = registry.create_token("reader", "reader").await;
    let ask = async |query: &str, token: Option<&str>| {
        let mut request = registry.request(Method::GET, &format!("/v1/decide{query}"));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        ApiResponse::send(request).await
    };
    let decide = async |query: &str| ask(query, Some(&gateway)).await;
    let question = format!("?agent={id}");
    let allowed = decide(&question).await;
    let decision = allowed.expect_status(200);
    assert_eq!(
        allowed.headers["decision-id"],
        decision["id"].as_str().unwrap()
    );
    let record = registry
        .request(
            Method::GET,
            &format!("/v1/decisions/{}", decision["id"].as_str().unwrap()),
        )
        .bearer_auth(&gateway);
    let record = ApiResponse::send(record).await.expect_status(200);
    assert_eq!(
        (&record["asked_by"], &record["subject"]),
        (&json!("gateway"), &json!("anonymous"))
    );
    for query in [
        String::new(),
        "?agent=nonsense".to_owned(),
        "?agent=%zz".to_owned(),
        "?agent=urn:air:nobody.example:agents:x".to_owned(),
        format!("?agent={id}&surprise=1"),
        format!("?agent={id}&action=register"),
        format!("?agent={id}&url=https://agents.example.com/"),
        format!("?agent={id}&account=nobody-at-all"),
        format!("?agent={id}&account=reader&groups=team"),
        format!("?url={}", origin.url("/rpc")),
        "?url=https://agents.example.com/".to_owned(),
    ] {
        decide(&query).await.expect_status(403);
    }
    for account in ["reader", "anonymous"] {
        let query = format!("?agent={id}&account={account}");
        decide(&query).await.expect_status(200);
    }
    for token in [None, Some("a2ar_unknown"), Some(reader.as_str())] {
        ask(&question, token).await.expect_problem(403, "forbidden");
    }
    // What fails before the question is read is a denial too.
    let unacceptable = registry
        .request(Method::GET, &format!("/v1/decide{question}"))
        .bearer_auth(&gateway)
        .header("accept-encoding", "identity;q=0, *;q=0");
    ApiResponse::send(unacceptable).await.expect_status(403);

    let forbid = "@message(\"Ask risk@corp.example\") forbid (principal in Group::\"team\", action == Action::\"invoke\", resource);";
    put_policies(
        &registry,
        json!([open(), {"id": "no-team", "text": forbid}]),
    )
    .await;
    let query = format!("?agent={id}&groups=others&groups=team");
    let denied = decide(&query).await;
    let problem = denied.expect_problem(403, "policy-denied");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("Ask risk@corp.example")
    );
    assert_eq!(problem["notices"][0]["policy"], "no-team");
    assert_eq!(
        denied.headers["decision-id"],
        problem["decision"].as_str().unwrap()
    );
    // The same is told by the command line.
    let command = ["policy", "decide", &id, "--group", "team"];
    let printed = registry.run_admin_command(&command).await;
    assert_eq!(printed.status.code(), Some(1), "{printed:?}");
    assert!(
        printed
            .stdout
            .iter()
            .any(|line| line.contains("`no-team`: Ask risk@corp.example."))
    );
    let id = printed
        .stdout
        .iter()
        .find_map(|line| line.strip_prefix("decision "));
    let command = ["policy", "decision", id.unwrap()];
    let shown = registry.run_admin_command(&command).await;
    assert_eq!(shown.status.code(), Some(0), "{shown:?}");
    assert!(
        shown.stdout[0].contains("for groups team, asked by admin"),
        "{shown:?}"
    );
    let batch = json!({"questions": [{"action": "invoke", "agent": origin.url("/"), "subject": {"account": "reader"}}]});
    let answers = registry
        .post_as_admin("/v1/decide:batch", &batch)
        .await
        .expect_status(200);
    assert_eq!(answers["decisions"][0]["allowed"], false);
    registry.stop().await;
}
