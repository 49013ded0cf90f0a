//! Tests of the HTTP interface against a real registry in a temporary folder.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod a2a_tasks;
mod access;
mod anonymous_writes;
mod authorization;
mod bad_input;
mod bulk_registration;
mod cards;
mod confirmations;
mod document;
mod events;
mod forms;
mod headers;
mod hidden;
mod index_follower;
mod lint;
mod one_time_codes;
mod own_card_keys;
mod pages;
mod people;
mod policy_pages;
pub(crate) mod provider_sign_in;
mod refusals;
#[cfg(test)]
mod search;
mod sessions;
mod sign_in_attempts;
mod tls;
mod tokens;
mod unknown_values;
mod unread;

use std::rc::Rc;
use std::sync::Arc;

use a2a_crawler::{Clock, SystemClock};
use a2a_registry_api::NewToken;
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::config::{AllowPorts, Config};
use a2a_registry_core::context::AppContext;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_core::network::NetworkAccess;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::identifiers::SystemEntropy;
use a2a_registry_domain::role::{Role, Scope};
use a2a_registry_http::requests::server_state::ServerState;
use actix_web::body::{MessageBody, to_bytes};
use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::test::{TestRequest, init_service};
use actix_web::web;
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::application::create_application;

/// The admin's token in every test.
const ADMIN: &str = "a-bootstrap-token-of-forty-characters-0001";

/// Sends a request through the application, and reads the whole response.
type SendRequest = Rc<dyn Fn(TestRequest) -> LocalBoxFuture<'static, TestResponse>>;

/// Separate registry for one test.
pub(crate) struct Registry {
    pub(crate) state: web::Data<ServerState>,
    /// Built once by the first request, because building all routes takes longer than most requests.
    application: OnceCell<SendRequest>,
    _folder: tempfile::TempDir,
}

impl Registry {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(adjust: impl FnOnce(&mut Config)) -> Self {
        Self::by(Arc::new(SystemClock), adjust).await
    }

    /// A registry with this clock.
    async fn by(clock: Arc<dyn Clock>, adjust: impl FnOnce(&mut Config)) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.data_dir = folder.path().to_owned();
        config.crawler.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.crawler.allow_http = true;
        config.crawler.allow_ports = AllowPorts::Word("any".into());
        adjust(&mut config);
        let entropy = Arc::new(SystemEntropy::default());
        let network = NetworkAccess::with_system_resolver(&config, Arc::clone(&clock)).unwrap();
        let started = crate::startup::start_registry(config, clock, entropy, network, Some(ADMIN))
            .await
            .unwrap();
        let metrics = Arc::new(Metrics::new());
        let state = ServerState::new(started.context, metrics, CancellationToken::new());
        Self {
            state: web::Data::new(state),
            application: OnceCell::new(),
            _folder: folder,
        }
    }

    pub(crate) fn context(&self) -> &AppContext {
        &self.state.context
    }

    async fn admin(&self) -> Caller {
        authenticate_token(self.context(), ADMIN).await.unwrap()
    }

    /// Token of a new account with this role.
    async fn token(&self, role: Role) -> String {
        let new = NewToken {
            account: role.to_string(),
            role: Some(role),
            name: "test".into(),
            ..NewToken::default()
        };
        token_create(self.context(), &self.admin().await, &new)
            .await
            .unwrap()
            .secret
    }

    /// Token of an account with this role, with these scopes only.
    async fn scoped(&self, role: Role, scopes: &[Scope]) -> String {
        let new = NewToken {
            account: role.to_string(),
            role: Some(role),
            name: "narrow".into(),
            scopes: Some(scopes.to_vec()),
            ..NewToken::default()
        };
        let made = token_create(self.context(), &self.admin().await, &new).await;
        made.unwrap().secret
    }

    /// Token of an admin who is not a curator.
    async fn admin_alone(&self) -> String {
        let new = NewToken {
            account: "operator".into(),
            role: Some(Role::Admin),
            name: "test".into(),
            ..NewToken::default()
        };
        let made = token_create(self.context(), &self.admin().await, &new).await;
        made.unwrap().secret
    }

    /// Sends one request with this token, and reads the whole response.
    async fn as_with(&self, token: &str, request: TestRequest) -> TestResponse {
        self.ask(bearer(request, token)).await
    }

    /// Sends one request, and reads the whole response.
    async fn ask(&self, request: TestRequest) -> TestResponse {
        let build = || build_application(self.state.clone());
        let send = self.application.get_or_init(build).await;
        send(request).await
    }

    async fn get(&self, path: &str) -> TestResponse {
        self.ask(TestRequest::get().uri(path)).await
    }
}

async fn build_application(state: web::Data<ServerState>) -> SendRequest {
    let service = Rc::new(init_service(create_application(state)).await);
    Rc::new(move |request: TestRequest| {
        let service = Rc::clone(&service);
        let answer = async move {
            let response = service.call(request.to_request()).await;
            TestResponse::read(response.unwrap()).await
        };
        answer.boxed_local()
    })
}

/// A completely read response.
#[derive(Debug)]
struct TestResponse {
    status: StatusCode,
    headers: actix_web::http::header::HeaderMap,
    body: web::Bytes,
}

impl TestResponse {
    async fn read<B: MessageBody>(response: ServiceResponse<B>) -> Self {
        let status = response.status();
        let headers = response.headers().clone();
        let body = to_bytes(response.into_body()).await.ok().unwrap();
        Self {
            status,
            headers,
            body,
        }
    }

    fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Checks that the response is a problem document of this kind, and returns it.
    #[track_caller]
    fn problem(&self, status: u16, slug: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        let document = self.json();
        assert_eq!(document["type"], format!("/problems/{slug}"), "{document}");
        assert_eq!(document["status"], status);
        assert!(!document["detail"].as_str().unwrap().is_empty());
        document
    }
}

fn bearer(request: TestRequest, token: &str) -> TestRequest {
    request.insert_header(("authorization", format!("Bearer {token}")))
}
