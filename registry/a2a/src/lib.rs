//! The A2A client behind `a2a-registry send`: sends messages and returns the agent's answers, whole or event by event.
//!
//! It supports 1.0 and 0.3 over JSON-RPC, HTTP+JSON and gRPC, 0.1 and 0.2 over JSON-RPC, and agents that follow the
//! a2a-protocol skill or `PromptKit`, whose forms differ from those of the specification. Of the registry
//! it depends on the card model only, so it can be used by itself. [`oauth`] signs in to agents that require access
//! tokens. All returned text is the agent's own and unchanged: the caller makes it safe before it reaches a terminal
//! or a page.
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod agent_client;
mod agent_response;
mod binding_forms;
mod connection;
mod credentials;
mod error;
mod files;
mod foreign_text;
mod grpc;
mod http_session;
mod jsonrpc;
mod member_spelling;
mod message;
pub mod oauth;
mod operation;
mod protocol_skill;
mod push;
mod reply;
mod rest;
pub mod route_selection;
mod stream;
mod tasks;
mod tokens;
pub mod v0;
pub mod v0_1;
pub mod v1;

use std::sync::Arc;
use std::time::Duration;

use a2a_card::AgentCard;

pub use agent_client::{AgentClient, select_interface_url};
pub use agent_response::{AgentResponse, ArtifactSummary};
pub use error::CallError;
pub use files::{AgentFile, FILE_COUNT_LIMIT, FileContent};
pub use http_session::{BODY_LIMIT, is_loopback};
pub use message::{Message, Part};
pub use push::{PUSH_CONFIG_LIMIT, PushConfig};
pub use route_selection::{InterfacePreferences, ProtocolBinding};
pub use stream::{
    ArtifactUpdate, EVENT_COUNT_LIMIT, EVENT_LIMIT, EventStream, RESUME_LIMIT, STREAM_LIMIT,
    StatusUpdate, StreamEvent, StreamEventContent,
};
pub use tasks::{TASK_PAGE_LIMIT, TaskPage, TaskQuery};
pub use tokens::{BasicLogin, ClientCertificate, TokenSource};

/// Maximum number of requests for an unfinished task, regardless of the deadline.
pub const POLL_LIMIT: u32 = 120;

/// Options of an [`AgentClient`] and of [`send_text`].
#[derive(Clone)]
pub struct SendOptions {
    /// Token for schemes that take one in `Authorization: Bearer` (HTTP bearer, OAuth 2, OIDC).
    pub bearer_token: Option<String>,
    /// Source of such tokens, if there is no `bearer_token`.
    pub token_source: Option<Arc<dyn TokenSource>>,
    /// User and password for HTTP Basic.
    pub basic_login: Option<BasicLogin>,
    /// Certificate that is presented to the agent's interface, and to no other host.
    pub certificate: Option<ClientCertificate>,
    /// Key for an API key scheme; it is sent where the card's scheme says.
    pub api_key: Option<String>,
    /// Additional request headers, name and value, sent as given. A header that a scheme requires counts as meeting
    /// it, which serves schemes without an option of their own.
    pub headers: Vec<(String, String)>,
    /// Restricts the interfaces that may be used; by default the card decides.
    pub interface_filter: InterfacePreferences,
    /// URIs of protocol extensions to activate (1.0 section 4.6), sent as a header.
    pub extensions: Vec<String>,
    /// Longest duration of the whole call: every request, and waiting for an unfinished task. At most a day.
    pub timeout: Duration,
    /// Longest time without an event in a stream before it counts as broken and is resumed. At most a day.
    pub idle_timeout: Duration,
    /// Pause before the first request for an unfinished task, or for a broken stream; it doubles up to two seconds.
    pub poll_interval: Duration,
    /// Identifier of the message that [`send_text`] sends, chosen by the caller so that a test can fix it. Agents may
    /// treat two messages with the same identifier as one.
    pub message_id: String,
}

impl SendOptions {
    /// Options without credentials, with timeouts of one minute.
    #[must_use]
    pub fn new(message_id: impl Into<String>) -> Self {
        Self {
            bearer_token: None,
            token_source: None,
            basic_login: None,
            certificate: None,
            api_key: None,
            headers: Vec::new(),
            interface_filter: InterfacePreferences::default(),
            extensions: Vec::new(),
            timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(60),
            poll_interval: Duration::from_millis(200),
            message_id: message_id.into(),
        }
    }
}

impl std::fmt::Debug for SendOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("SendOptions")
            .field("bearer", &self.bearer_token.is_some())
            .field("tokens", &self.token_source.is_some())
            .field("basic", &self.basic_login)
            .field("certificate", &self.certificate)
            .field("api_key", &self.api_key.is_some())
            .field("headers", &names)
            .field("choice", &self.interface_filter)
            .field("extensions", &self.extensions)
            .field("timeout", &self.timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("poll_interval", &self.poll_interval)
            .field("message_id", &self.message_id)
            .finish()
    }
}

/// Sends one text message to the agent that `card` describes, and waits for its answer.
///
/// Tries the card's interfaces in its own order (1.0 section 8.3.2) and uses the first one that this client supports.
/// The next one is tried only if the message was certainly not accepted: no connection could be made, or the agent
/// reported that it does not know the method or the version. The client polls an unfinished task until it stops
/// working, at most [`POLL_LIMIT`] times; if the deadline comes first, [`AgentResponse::unfinished_reason`] says so.
/// Missing credentials are reported before anything is sent.
pub async fn send_text(
    card: &AgentCard,
    text: &str,
    options: &SendOptions,
) -> Result<AgentResponse, CallError> {
    let message = Message::from_text(options.message_id.as_str(), text);
    AgentClient::new(card, options)?
        .send_message(&message)
        .await
}
