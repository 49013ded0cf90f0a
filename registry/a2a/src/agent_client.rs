//! A client of one agent, as its card describes it.

use std::sync::OnceLock;
use std::time::Duration;

use a2a_card::AgentCard;
use reqwest::Client;
use reqwest::header::HeaderValue;
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use super::agent_response::{self, AgentResponse};
use super::connection::Connection;
use super::credentials::{self, RequestCredentials};
use super::foreign_text::shorten_to_line;
use super::http_session::{HttpSession, build_http_client, is_loopback};
use super::operation::Operation;
use super::push::{self, PushOperation};
use super::route_selection::{self, AgentRoute};
use super::stream::{EventStream, StreamTimeouts};
use super::{
    CallError, InterfacePreferences, Message, POLL_LIMIT, ProtocolBinding, PushConfig, SendOptions,
    TaskPage, TaskQuery, tasks,
};

const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

/// An agent that can be called. It keeps its connections, so one value serves many calls.
pub struct AgentClient {
    routes: Vec<AgentRoute>,
    extensions_header: Option<HeaderValue>,
    credentials: RequestCredentials,
    supports_streaming: bool,
    timeout: Duration,
    timeouts: StreamTimeouts,
    /// Clients for agents on this machine, which no proxy reaches, and for all others; each pair without gRPC and for
    /// gRPC, which requires HTTP/2.
    clients: [[OnceLock<Client>; 2]; 2],
}

impl AgentClient {
    /// A client of the agent of this card, with these credentials and limits. Nothing is sent yet.
    pub fn new(card: &AgentCard, options: &SendOptions) -> Result<Self, CallError> {
        Ok(Self {
            routes: select_routes(card, &options.interface_filter)?,
            extensions_header: build_extensions_header(&options.extensions)?,
            credentials: credentials::select_credentials(card, options)?,
            supports_streaming: card.capabilities.streaming,
            timeout: options.timeout.min(MAX_DURATION),
            timeouts: StreamTimeouts {
                idle_timeout: options.idle_timeout.min(MAX_DURATION),
                poll_interval: options.poll_interval.min(MAX_DURATION),
            },
            clients: Default::default(),
        })
    }

    /// Sends a message and waits for the answer; see [`send_text`](super::send_text).
    pub async fn send_message(&self, message: &Message) -> Result<AgentResponse, CallError> {
        self.try_routes(async |connection: Connection| {
            let raw = connection.call_operation(Operation::Send(message)).await?;
            let answer = agent_response::parse_send_result(raw, &connection.route)?;
            Ok(poll_task_until_done(&connection, answer, self.timeouts.poll_interval).await)
        })
        .await
    }

    /// Sends a message and returns the events of the answer one by one, from the first one on.
    ///
    /// If the card declares streaming, the events are those of the agent's stream (1.0 section 3.1.2). If it does not,
    /// or if the agent refuses to stream, they are its answer and each later state of an unfinished task, as
    /// [`AgentClient::send_message`] polls them. A refused call was not accepted, so nothing is sent twice.
    pub async fn stream_message(&self, message: &Message) -> Result<EventStream, CallError> {
        self.try_routes(async |connection: Connection| {
            if !self.supports_streaming {
                return EventStream::open_with_polling(connection, message, self.timeouts).await;
            }
            match EventStream::open(connection, Operation::Stream(message), self.timeouts).await {
                Ok(stream) => Ok(stream),
                Err((error, connection)) if error.is_streaming_unsupported() => {
                    EventStream::open_with_polling(connection, message, self.timeouts).await
                }
                Err((error, _)) => Err(error),
            }
        })
        .await
    }

    /// The task with this id in its present state.
    pub async fn get_task(&self, id: &str) -> Result<AgentResponse, CallError> {
        self.call_task_operation(Operation::Get(id)).await
    }

    /// Cancels the task with this id, and returns its new state.
    pub async fn cancel_task(&self, id: &str) -> Result<AgentResponse, CallError> {
        self.call_task_operation(Operation::Cancel(id)).await
    }

    async fn call_task_operation(
        &self,
        operation: Operation<'_>,
    ) -> Result<AgentResponse, CallError> {
        self.try_routes(async |connection: Connection| {
            let raw = connection.call_operation(operation).await?;
            agent_response::parse_task_response(raw, &connection.route)
        })
        .await
    }

    /// The agent's tasks, as far as it shows them to this caller. Agents before 1.0 cannot list them over JSON-RPC.
    pub async fn list_tasks(&self, query: &TaskQuery) -> Result<TaskPage, CallError> {
        self.try_routes(async |connection: Connection| {
            let raw = connection.call_operation(Operation::List(query)).await?;
            tasks::parse_task_page(raw, &connection.route)
        })
        .await
    }

    /// Sets the address to which the agent reports the changes of a task, and returns the configuration as the agent
    /// stores it.
    pub async fn set_push_config(
        &self,
        task: &str,
        config: &PushConfig,
    ) -> Result<PushConfig, CallError> {
        let raw = self
            .call_push_operation(task, PushOperation::Set(config))
            .await?;
        push::parse_push_config(&raw)
    }

    /// The push-notification configuration of a task with this identifier.
    pub async fn get_push_config(&self, task: &str, id: &str) -> Result<PushConfig, CallError> {
        let raw = self
            .call_push_operation(task, PushOperation::Get(id))
            .await?;
        push::parse_push_config(&raw)
    }

    /// The push-notification configurations of a task, the first [`PUSH_CONFIG_LIMIT`](super::PUSH_CONFIG_LIMIT). 0.1
    /// has no list.
    pub async fn list_push_configs(&self, task: &str) -> Result<Vec<PushConfig>, CallError> {
        let raw = self.call_push_operation(task, PushOperation::List).await?;
        push::parse_push_configs(&raw)
    }

    /// Removes a push-notification configuration of a task.
    pub async fn delete_push_config(&self, task: &str, id: &str) -> Result<(), CallError> {
        self.call_push_operation(task, PushOperation::Delete(id))
            .await
            .map(|_| ())
    }

    async fn call_push_operation(
        &self,
        task: &str,
        operation: PushOperation<'_>,
    ) -> Result<Value, CallError> {
        self.try_routes(async |connection: Connection| {
            connection
                .call_operation(Operation::Push(task, operation))
                .await
        })
        .await
    }

    /// The card that the agent shows to callers with credentials (1.0 section 3.1.11), as it sent it.
    pub async fn fetch_extended_card(&self) -> Result<Value, CallError> {
        self.try_routes(async |connection: Connection| {
            connection.call_operation(Operation::ExtendedCard).await
        })
        .await
    }

    /// Subscribes to the task with this id: the events, beginning with its present state, are those of a stream (1.0
    /// section 3.1.6), or each later state if the task is done or the agent cannot stream it.
    pub async fn subscribe_to_task(&self, id: &str) -> Result<EventStream, CallError> {
        self.try_routes(async |connection: Connection| {
            // Before 1.0 a resubscribed stream does not begin with the task.
            if !self.supports_streaming || !connection.route.protocol_binding.is_v1() {
                return EventStream::open_for_task(
                    connection,
                    id,
                    self.timeouts,
                    self.supports_streaming,
                )
                .await;
            }
            match EventStream::open(connection, Operation::Subscribe(id), self.timeouts).await {
                Ok(stream) => Ok(stream),
                // Versions and SDKs refuse a finished task with different error codes.
                Err((
                    CallError::Protocol { .. } | CallError::Http { .. } | CallError::Status { .. },
                    connection,
                )) => EventStream::open_for_task(connection, id, self.timeouts, false).await,
                Err((error, _)) => Err(error),
            }
        })
        .await
    }

    /// Tries a call at the first interface; if the agent certainly did not accept it, tries the other protocol
    /// bindings of that interface, then the next interface. With credentials, which are for one origin, interfaces at
    /// other origins are skipped.
    async fn try_routes<T>(
        &self,
        call: impl AsyncFn(Connection) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let origin = self.routes.first().map(|route| route.url.origin());
        let mut first_failure = None;
        let mut unreachable_url = None;
        let deadline = Instant::now() + self.timeout;
        for route in &self.routes {
            if self.credentials.is_provided && Some(route.url.origin()) != origin {
                continue;
            }
            // Another protocol binding cannot reach this address either.
            if unreachable_url == Some(&route.url) {
                continue;
            }
            let client = self.client_for_route(route)?;
            let mut session = HttpSession::new(client, &self.credentials, self.timeout, deadline);
            if let Some(extensions) = &self.extensions_header {
                session.activate_extensions(extensions, route.protocol_binding);
            }
            let is_bare_grpc_address =
                route.protocol_binding.is_grpc() && !route.interface.url.contains("://");
            let is_unversioned = route.interface.protocol_version.is_none();
            let connection = Connection {
                session,
                route: route.clone(),
            };
            match call(connection).await {
                Err(CallError::Unreachable { url, reason }) => {
                    unreachable_url = Some(&route.url);
                    let failure = match is_bare_grpc_address && url.starts_with("https:") {
                        true => CallError::UnreachableOverTls { url, reason },
                        false => CallError::Unreachable { url, reason },
                    };
                    first_failure.get_or_insert(failure);
                }
                Err(error)
                    if error.was_not_accepted()
                        || (is_unversioned && error.is_invalid_request()) =>
                {
                    first_failure.get_or_insert(error);
                }
                outcome => return outcome,
            }
        }
        Err(first_failure.unwrap_or(CallError::NoInterface))
    }

    fn client_for_route(&self, route: &AgentRoute) -> Result<Client, CallError> {
        let client_slot = &self.clients[usize::from(is_loopback(&route.url))]
            [usize::from(route.protocol_binding.is_grpc())];
        if let Some(client) = client_slot.get() {
            return Ok(client.clone());
        }
        let client = build_http_client(route, &self.credentials)?;
        Ok(client_slot.get_or_init(|| client).clone())
    }
}

/// The URL of the interface that is called first; credentials for the agent are for its origin only. Fails if none of
/// the card's interfaces can be used.
pub fn select_interface_url(
    card: &AgentCard,
    choice: &InterfacePreferences,
) -> Result<Url, CallError> {
    let routes = select_routes(card, choice)?;
    let first = routes.into_iter().next().ok_or(CallError::NoInterface)?;
    Ok(first.url)
}

fn select_routes(
    card: &AgentCard,
    choice: &InterfacePreferences,
) -> Result<Vec<AgentRoute>, CallError> {
    let mut usable_routes = route_selection::callable_routes(&choice.override_urls(card))?;
    // Agents whose cards name no address follow PromptKit.
    if card.interfaces.is_empty() {
        let mut old = usable_routes.iter_mut();
        if let Some(old) = old.find(|route| route.protocol_binding == ProtocolBinding::V0JsonRpc) {
            old.protocol_binding = ProtocolBinding::PromptKitJsonRpc;
        }
    }
    let offered = usable_routes.iter().map(|route| {
        let version = route.interface.protocol_version.as_deref();
        let version = version.unwrap_or("without a version");
        format!("{} {version}", route.interface.binding)
    });
    let offered = shorten_to_line(&offered.collect::<Vec<_>>().join(", "));
    let routes = choice.apply_to_routes(usable_routes);
    if routes.is_empty() {
        let wanted = shorten_to_line(&choice.describe());
        return Err(CallError::NoMatchingInterface { wanted, offered });
    }
    Ok(route_selection::add_protocol_skill_routes(
        routes,
        choice.protocol_skill_first,
    ))
}

fn build_extensions_header(uris: &[String]) -> Result<Option<HeaderValue>, CallError> {
    if uris.is_empty() {
        return Ok(None);
    }
    let value = HeaderValue::try_from(uris.join(", "));
    value.map(Some).map_err(|_| CallError::BadHeader {
        name: "the list of extensions".to_owned(),
    })
}

/// Polls an unfinished task until it stops working. The last known answer is never lost: if polling fails or the
/// deadline comes, it is returned with the reason why it is not final.
async fn poll_task_until_done(
    connection: &Connection,
    mut response: AgentResponse,
    poll_interval: Duration,
) -> AgentResponse {
    let session = &connection.session;
    let mut pause = poll_interval;
    let max_pause = pause.max(Duration::from_secs(2));
    let mut poll_count = 0;
    while response.is_in_progress() {
        let Some(task_id) = response.task_id.clone() else {
            response.unfinished_reason =
                Some("the agent gave no task id, so its progress cannot be read".to_owned());
            break;
        };
        let next_poll = Instant::now() + pause;
        if poll_count == POLL_LIMIT || next_poll >= session.deadline() {
            let state = response.state.as_deref().unwrap_or("unfinished");
            response.unfinished_reason = Some(format!(
                "the task is still {state} after {} s; ask the agent again later, or allow more time",
                session.timeout().as_secs()
            ));
            break;
        }
        tokio::time::sleep_until(next_poll).await;
        poll_count += 1;
        pause = (pause * 2).min(max_pause);
        let asked_again = connection
            .call_operation(Operation::Get(&task_id))
            .await
            .and_then(|raw| agent_response::parse_task_response(raw, &connection.route));
        match asked_again {
            Ok(newer) => response = newer,
            Err(error) => {
                response.unfinished_reason =
                    Some(format!("the state of the task could not be read: {error}"));
                break;
            }
        }
    }
    response
}
