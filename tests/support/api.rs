//! A client's view of a registry: over HTTP, and from the command line.

use std::time::Duration;

use a2a_registry_api::{AgentList, DomainView, Hit, HitFields, Review};
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::process::Command;

use super::event_stream::{EventStream, event_seq};
use super::exchange::ValidatingProxy;
use super::http_client;
use super::polling::{eventually, poll_until_deadline};
use super::program::{FinishedProgram, Program, registry_command};
use super::setup::ADMIN_TOKEN;

/// A client of a registry.
#[derive(Debug, Clone)]
pub struct RegistryClient {
    /// The registry's URL, without a trailing slash.
    pub url: String,
    /// The validating proxy in front of the registry, if any.
    pub proxy: Option<ValidatingProxy>,
    client: Client,
}

impl RegistryClient {
    /// A client of the registry at that URL.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            proxy: None,
            client: http_client(),
        }
    }

    /// Connects through this proxy. A registry behind TLS is still connected to directly.
    #[must_use]
    pub fn with_proxy(mut self, tap: ValidatingProxy) -> Self {
        if tap.forward_to(&self.url) {
            self.url = tap.url();
            self.proxy = Some(tap);
        }
        self
    }

    /// An anonymous request.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// A request as the admin.
    pub fn admin_request(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path).bearer_auth(ADMIN_TOKEN)
    }

    /// GET as an anonymous client.
    pub async fn get(&self, path: &str) -> ApiResponse {
        ApiResponse::send(self.request(Method::GET, path)).await
    }

    /// GET as the admin.
    pub async fn get_as_admin(&self, path: &str) -> ApiResponse {
        ApiResponse::send(self.admin_request(Method::GET, path)).await
    }

    /// POST as the admin.
    pub async fn post_as_admin(&self, path: &str, body: &Value) -> ApiResponse {
        ApiResponse::send(self.admin_request(Method::POST, path).json(body)).await
    }

    /// The response to a GET of the admin, which must be a success.
    pub async fn read_as_admin<T: DeserializeOwned>(&self, path: &str) -> T {
        let answer = self.get_as_admin(path).await;
        let text = String::from_utf8_lossy(&answer.body);
        let status = answer.status;
        assert!(status.is_success(), "{path}: {status}: {text}");
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// A client command that speaks to this registry as its admin.
    pub fn admin_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.anonymous_command(arguments);
        command.env("A2A_REGISTRY_TOKEN", ADMIN_TOKEN);
        command
    }

    /// A client command that speaks to this registry without a token.
    pub fn anonymous_command(&self, arguments: &[&str]) -> Command {
        let mut command = registry_command(arguments);
        command.env("A2A_REGISTRY_URL", &self.url);
        command
    }

    /// Runs a client command as the admin, to its end.
    pub async fn run_admin_command(&self, arguments: &[&str]) -> FinishedProgram {
        Program::run(self.admin_command(arguments)).await
    }

    /// Makes a token for an account with that role, and returns its secret.
    pub async fn create_token(&self, account: &str, role: &str) -> String {
        let body = json!({"account": account, "role": role, "name": "a test"});
        let created = self
            .post_as_admin("/v1/tokens", &body)
            .await
            .expect_status(201);
        created["secret"].as_str().unwrap().to_owned()
    }

    /// Waits until searches use a model, which has made the vectors of that many agents.
    pub async fn wait_for_vectors(&self, model: &str, agents: usize) {
        let status = format!("searches use {model:?}, with vectors of {agents} of {agents} agents");
        eventually(&status, || async {
            let readiness = self.get_as_admin("/readyz").await.expect_status(200);
            let mut checks = readiness["checks"].as_array().unwrap().iter();
            checks
                .any(|check| check["detail"].as_str().unwrap().starts_with(&status))
                .then_some(())
        })
        .await;
    }

    /// Registers the card at a URL as the admin.
    pub async fn register(&self, card_url: &str) -> DomainView {
        let body = json!({"card_url": card_url});
        let domain = self
            .post_as_admin("/v1/domains", &body)
            .await
            .expect_status(202);
        serde_json::from_value(domain).unwrap()
    }

    /// Registers the card at a URL with a registry that approves every card; returns the event of the approval.
    pub async fn register_approved(&self, card_url: &str) -> Value {
        let mut feed = self.open_event_stream(0).await;
        let domain = self.register(card_url).await.domain;
        let its_own = |event: &Value| event["data"]["domain"] == domain.as_str();
        let agent = feed.wait_for_match("agent.discovered", its_own).await["subject"].take();
        feed.wait_for_match("agent.approved", |event| event["subject"] == agent)
            .await
    }

    /// Registers the card at a URL with a registry that approves every card, and waits until searches show the agent;
    /// returns the agent's id.
    pub async fn publish(&self, card_url: &str) -> String {
        let approved = self.register_approved(card_url).await;
        self.wait_until_indexed(event_seq(&approved)).await;
        approved["subject"].as_str().unwrap().to_owned()
    }

    /// Requests a visit of a domain, waits until the attempts of the visit are stored, and returns the domain.
    /// Any earlier visit must be stored first, or its attempt would be taken for one of this visit.
    pub async fn recrawl_and_wait(&self, domain: &str) -> Value {
        let path = format!("/v1/domains/{domain}");
        let last = |domain: &Value| {
            let source = &domain["sources"][0];
            let attempts = source["attempts"].as_array().map_or(0, Vec::len);
            // A stopped clock gives two attempts the same time, but not the same number.
            (source["last_attempt"].clone(), attempts)
        };
        let before = last(&self.get_as_admin(&path).await.expect_status(200));
        self.post_as_admin(&format!("{path}:recrawl"), &json!({}))
            .await
            .expect_status(202);
        // A visit that finds nothing new sends no event.
        eventually("the attempts of the visit are stored", || async {
            let domain = self.get_as_admin(&path).await.expect_status(200);
            (last(&domain) != before).then_some(domain)
        })
        .await
    }

    /// The events from now on, or after the event `after`.
    pub async fn open_event_stream(&self, after: i64) -> EventStream {
        let answer = self
            .admin_request(Method::GET, &format!("/v1/events?after={after}"))
            .header("accept", "text/event-stream")
            // A stream has no end; each wait on it has its own timeout.
            .timeout(Duration::from_secs(3600))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        EventStream::from_response(answer)
    }

    /// Waits for an open review for which `wanted` is true, and returns the first one.
    pub async fn wait_for_open_review(&self, wanted: impl Fn(&Review) -> bool) -> Review {
        let mut feed = self.open_event_stream(0).await;
        loop {
            let opened = feed.wait_for("review.opened").await;
            let id = opened["subject"].as_str().unwrap();
            let review: Review = self.read_as_admin(&format!("/v1/reviews/{id}")).await;
            if review.state.as_str() == "open" && wanted(&review) {
                return review;
            }
        }
    }

    /// A counter or gauge of the registry.
    pub async fn metric_value(&self, name: &str) -> i64 {
        let text = self.get_as_admin("/metrics").await.text();
        let value = |line: &str| Some(line.strip_prefix(&format!("a2a_registry_{name} "))?.parse());
        let found = text.lines().find_map(value);
        found
            .unwrap_or_else(|| panic!("{name} is missing in:\n{text}"))
            .unwrap()
    }

    /// Waits until searches show the effect of that event.
    pub async fn wait_until_indexed(&self, seq: i64) {
        // The index applies events, but sends none itself.
        eventually("the index has applied the event", || async {
            (self.metric_value("index_applied_seq").await >= seq).then_some(())
        })
        .await;
    }

    /// The hits of an anonymous search.
    pub async fn search(&self, query: &str) -> Value {
        self.get(&format!("/v1/agents?{query}"))
            .await
            .expect_status(200)
    }

    /// Waits until the admin finds an agent by a query, and returns the first one with all its members.
    ///
    /// # Panics
    ///
    /// If none is found before [`super::DEADLINE`].
    pub async fn wait_for_hit(&self, query: &str) -> Hit {
        let fields: Vec<&str> = HitFields::all_names().collect();
        let path = format!("/v1/agents?{query}&fields={}", fields.join(","));
        let found = poll_until_deadline(|| async {
            let list: AgentList = self.read_as_admin(&path).await;
            list.agents.into_iter().next()
        });
        if let Some(hit) = found.await {
            return hit;
        }
        let ready = self.get_as_admin("/readyz").await.text();
        let domains: Value = self.read_as_admin("/v1/domains?page_size=100").await;
        panic!("{query} finds nothing; {ready}; {domains:#}");
    }
}

/// A response, read to its end.
#[derive(Debug)]
pub struct ApiResponse {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl ApiResponse {
    /// Sends a request and reads its response.
    pub async fn send(request: RequestBuilder) -> Self {
        let answer = request.send().await.unwrap();
        Self {
            status: answer.status(),
            headers: answer.headers().clone(),
            body: answer.bytes().await.unwrap().to_vec(),
        }
    }

    /// Its body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// Its body as JSON. Panics if the status is another.
    pub fn expect_status(&self, status: u16) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status.as_u16(), status, "{text}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// Its problem document, which must be complete.
    pub fn expect_problem(&self, status: u16, slug: &str) -> Value {
        let problem = self.expect_status(status);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(
            problem["type"],
            format!("/problems/{slug}").as_str(),
            "{problem}"
        );
        assert_eq!(problem["status"], status);
        for member in ["title", "detail", "instance"] {
            let text = problem[member].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{member} is missing: {problem}");
        }
        problem
    }
}
