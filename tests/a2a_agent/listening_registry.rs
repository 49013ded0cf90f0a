//! A registry in this process, crawled by the test, that listens on a real port.

use std::net::TcpListener;
use std::sync::Arc;

use a2a_registry_api::AgentPatch;
use a2a_registry_core::config::Config;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_domain::lifecycle::Visibility;
use a2a_registry_server::serve;
use a2a_registry_store::a2a_tasks;
use a2a_registry_store::agents::agents_by_ids;
use a2a_registry_store::entity::a2a_task;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use crate::support::http_client;
use crate::support::in_process_registry::{InProcessRegistry, agent_patch, card_bytes};
use crate::support::setup::ADMIN_TOKEN;

/// A version of the protocol, as a request states it.
pub(super) const V1: Option<&str> = Some("1.0");

/// A registry that serves.
pub(super) struct ListeningRegistry {
    pub(super) inner: InProcessRegistry,
    /// Its URL, without a trailing slash.
    pub(super) url: String,
    pub(super) shutdown: CancellationToken,
    serving: AbortOnDropHandle<std::io::Result<()>>,
}

impl ListeningRegistry {
    /// A registry on that database.
    pub(super) async fn new(database: &str) -> Self {
        Self::with_config(database, |_| ()).await
    }

    /// A registry on that database.
    pub(super) async fn with_config(database: &str, configure: impl FnOnce(&mut Config)) -> Self {
        let (listener, url) = port();
        let registry = InProcessRegistry::with_config(database, |config| {
            config.server.public_url.clone_from(&url);
            configure(config);
        })
        .await;
        Self::serve(registry, listener, url)
    }

    /// Another replica, on the same database.
    pub(super) async fn second_replica(&self) -> Self {
        let (listener, url) = port();
        Self::serve(self.inner.second_process().await, listener, url)
    }

    fn serve(inner: InProcessRegistry, listener: TcpListener, url: String) -> Self {
        let shutdown = CancellationToken::new();
        let serving = serve::run_server(
            Arc::clone(&inner.app),
            listener,
            shutdown.clone(),
            Arc::new(Metrics::new()),
        );
        Self {
            inner,
            url,
            shutdown,
            serving: AbortOnDropHandle::new(tokio::spawn(serving)),
        }
    }

    /// Ends the server, and waits until it has ended.
    pub(super) async fn stop(self) {
        self.shutdown.cancel();
        self.serving.await.unwrap().unwrap();
    }

    /// Publishes an agent with a URN, and returns its identifier and URN.
    pub(super) async fn publish_with_urn(
        &self,
        host: &str,
        name: &str,
        about: &str,
    ) -> (Uuid, String) {
        self.publish_card_with_urn(host, &card_bytes(name, about))
            .await
    }

    /// Publishes the agent of a card with a URN, and returns its identifier and URN.
    pub(super) async fn publish_card_with_urn(&self, host: &str, card: &[u8]) -> (Uuid, String) {
        let domain = format!("{host}.agents-test.com");
        let agent = self.inner.register_approved_card(&domain, card).await;
        let urn = format!("urn:air:{domain}:agents:{host}");
        self.change_agent_row(agent.id, |row| row.urn = Some(urn.clone()))
            .await;
        (agent.id, urn)
    }

    /// Changes the row of an agent, and has the index follow.
    async fn change_agent_row(
        &self,
        id: Uuid,
        change: impl FnOnce(&mut a2a_registry_store::entity::agent::Model),
    ) {
        let write = self.inner.store.begin_write().await.unwrap();
        let mut rows = agents_by_ids(&write, &[id]).await.unwrap();
        change(&mut rows[0]);
        write.upsert_agents(rows).await.unwrap();
        write.commit().await.unwrap();
        self.patch_agent(id, &json!({"labels": {"team": id.to_string()}}))
            .await;
    }

    /// Shows an agent to everybody, or hides it from those who are not signed in.
    pub(super) async fn show(&self, id: Uuid, visibility: Visibility) {
        self.patch_agent(id, &json!({"visibility": visibility}))
            .await;
    }

    async fn patch_agent(&self, id: Uuid, patch: &Value) {
        let patch: AgentPatch = serde_json::from_value(patch.clone()).unwrap();
        agent_patch(&self.inner.app, &self.inner.admin, &id.to_string(), &patch)
            .await
            .unwrap();
        self.inner.catch_up().await;
    }

    /// Stores a task that another replica works on; returns its identifier.
    pub(super) async fn foreign_task(&self, account: Option<Uuid>) -> Uuid {
        let now = (self.inner.now().unix_timestamp_nanos() / 1000) as i64;
        let id = Uuid::new_v4();
        let row = a2a_task::Model {
            id,
            account_id: account,
            sender: None,
            context_id: "elsewhere".into(),
            state: a2a_registry_domain::task_state::TaskState::Working.into(),
            history: json!([{"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "fly"}]}])
                .to_string(),
            outcome: None,
            more: None,
            created_at: now,
            updated_at: now,
            expires_at: now + 3_600_000_000,
        };
        let write = self.inner.store.begin_write().await.unwrap();
        let bounds = a2a_tasks::TaskLimits {
            account: 1000,
            sender: 1000,
            anonymous: 1000,
        };
        write
            .insert_and_trim_tasks(vec![row], bounds)
            .await
            .unwrap();
        write.commit().await.unwrap();
        id
    }

    /// Finishes such a task, as the other replica would; returns whether it was worked on.
    pub(super) async fn finish(&self, id: Uuid) -> bool {
        let outcome = json!({"text": true, "data": true, "outcome": {
            "kind": "found", "results": [], "rest": {},
        }});
        self.finish_with(id, &outcome).await
    }

    /// The same, with this outcome.
    pub(super) async fn finish_with(&self, id: Uuid, outcome: &Value) -> bool {
        let now = (self.inner.now().unix_timestamp_nanos() / 1000) as i64;
        let change = a2a_tasks::TaskUpdate {
            state: a2a_registry_domain::task_state::TaskState::Completed,
            history: None,
            outcome: Some(outcome.to_string()),
            next_page_request: Some(String::new()),
            at: now + 1,
        };
        let write = self.inner.store.begin_write().await.unwrap();
        let working = [a2a_registry_domain::task_state::TaskState::Working];
        let changed = write.update_task(id, &working, None, change);
        let changed = changed.await.unwrap();
        write.commit().await.unwrap();
        changed
    }

    /// A request with that version, as that token's account.
    pub(super) fn request(
        &self,
        method: Method,
        path: &str,
        version: Option<&str>,
        token: Option<&str>,
    ) -> RequestBuilder {
        let mut request = http_client().request(method, format!("{}{path}", self.url));
        if let Some(version) = version {
            request = request.header("A2A-Version", version);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        request
    }

    /// Posts a call of JSON-RPC.
    pub(super) async fn post(
        &self,
        version: Option<&str>,
        token: Option<&str>,
        method: &str,
        params: &Value,
    ) -> Response {
        let call = json!({"jsonrpc": "2.0", "id": "call", "method": method, "params": params});
        let request = self.request(Method::POST, "/a2a", version, token);
        request.json(&call).send().await.unwrap()
    }

    /// The result of a call of JSON-RPC, or its error.
    pub(super) async fn call(
        &self,
        version: Option<&str>,
        token: Option<&str>,
        method: &str,
        params: &Value,
    ) -> Result<Value, Value> {
        let answer = self.post(version, token, method, params).await;
        assert_eq!(answer.status(), StatusCode::OK, "{method}");
        assert_eq!(answer.headers()["content-type"], "application/json");
        let document: Value = answer.json().await.unwrap();
        assert_eq!(
            (&document["jsonrpc"], &document["id"]),
            (&json!("2.0"), &json!("call"))
        );
        match document.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(document["result"].clone()),
        }
    }

    /// Sends a text by 1.0 without a token; returns the task.
    pub(super) async fn send_text(&self, text: &str) -> Value {
        self.send_message(None, &message(&json!([{"text": text}])))
            .await
    }

    /// Sends a message by 1.0; returns the task.
    pub(super) async fn send_message(&self, token: Option<&str>, message: &Value) -> Value {
        let params = json!({"message": message});
        let result = self.call(V1, token, "SendMessage", &params).await.unwrap();
        result["task"].clone()
    }

    /// The agents that `/v1/agents` finds for a text: their URNs, page after page.
    pub(super) async fn v1_pages(
        &self,
        token: Option<&str>,
        text: &str,
        size: u32,
    ) -> Vec<Vec<String>> {
        let mut pages = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let mut path = format!("/v1/agents?q={text}&page_size={size}");
            if let Some(next) = &next {
                path.push_str(&format!("&page_token={next}"));
            }
            let request = self.request(Method::GET, &path, None, token);
            let page: Value = request.send().await.unwrap().json().await.unwrap();
            let agents = page["agents"].as_array().unwrap().iter();
            pages.push(
                agents
                    .map(|hit| hit["urn"].as_str().unwrap().to_owned())
                    .collect(),
            );
            match page["next_page_token"].as_str() {
                Some(token) => next = Some(token.to_owned()),
                None => return pages,
            }
        }
    }
}

fn port() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

/// The token of the admin.
pub(super) const fn admin() -> Option<&'static str> {
    Some(ADMIN_TOKEN)
}

/// A message of 1.0 with these parts.
pub(super) fn message(parts: &Value) -> Value {
    json!({"messageId": Uuid::new_v4().to_string(), "role": "ROLE_USER", "parts": parts})
}

/// The events of a stream, which must have ended.
pub(super) async fn events(answer: Response) -> Vec<Value> {
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let text = answer.text().await.unwrap();
    let blocks = text.split("\n\n").filter(|block| !block.is_empty());
    blocks
        .filter(|block| !block.starts_with(':'))
        .map(|block| serde_json::from_str(block.strip_prefix("data: ").unwrap()).unwrap())
        .collect()
}

/// The identifiers of the agents in a task's data.
pub(super) fn result_identifiers(task: &Value) -> Vec<String> {
    let results = task_data(task)["results"].as_array().unwrap().clone();
    results
        .iter()
        .map(|result| result["identifier"].as_str().unwrap().to_owned())
        .collect()
}

/// The data of a task.
pub(super) fn task_data(task: &Value) -> Value {
    let parts = task["artifacts"][0]["parts"].as_array();
    let parts = parts.unwrap_or_else(|| panic!("no artifact: {task}"));
    let data = parts.iter().find_map(|part| part.get("data"));
    data.unwrap_or_else(|| panic!("no data: {task}")).clone()
}

/// The text of a task's artifact.
pub(super) fn task_text(task: &Value) -> String {
    let parts = task["artifacts"][0]["parts"].as_array();
    let parts = parts.unwrap_or_else(|| panic!("no artifact: {task}"));
    parts[0]["text"].as_str().unwrap().to_owned()
}
