//! An agent as its card describes it, and the calls that can be made to it.

use std::sync::OnceLock;
use std::time::Duration;

use a2a_card::AgentCard;
use reqwest::Client;
use reqwest::header::HeaderValue;
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use super::answer::{self, AgentAnswer};
use super::choice::{self, Route};
use super::connection::Connection;
use super::credentials::{self, Credentials};
use super::error::shorten;
use super::exchange::{Exchange, client_for, is_loopback};
use super::operation::Operation;
use super::push::{self, PushCall};
use super::stream::{EventStream, Pace};
use super::{
    Dialect, InterfaceFilter, Message, POLL_LIMIT, PushConfig, SendOptions, TalkError, TaskPage,
    TaskQuery, tasks,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// An agent that can be called. It keeps its connections, so one value serves many calls.
pub struct Agent {
    routes: Vec<Route>,
    extensions: Option<HeaderValue>,
    credentials: Credentials,
    streams: bool,
    timeout: Duration,
    pace: Pace,
    /// For agents on this machine, which no proxy reaches, and for all others; each without gRPC and for it, which
    /// requires HTTP/2.
    clients: [[OnceLock<Client>; 2]; 2],
}

impl Agent {
    /// The agent of this card, called with these credentials and limits. Nothing is sent yet.
    pub fn new(card: &AgentCard, options: &SendOptions) -> Result<Self, TalkError> {
        Ok(Self {
            routes: chosen_routes(card, &options.choice)?,
            extensions: extensions(&options.extensions)?,
            credentials: credentials::for_card(card, options)?,
            streams: card.capabilities.streaming,
            timeout: options.timeout.min(DAY),
            pace: Pace {
                idle: options.idle_timeout.min(DAY),
                pause: options.poll_interval.min(DAY),
            },
            clients: Default::default(),
        })
    }

    /// Sends a message and waits for the answer; see [`send_text`](super::send_text).
    pub async fn send(&self, message: &Message) -> Result<AgentAnswer, TalkError> {
        self.on_first(async |connection: Connection| {
            let raw = connection.call(Operation::Send(message)).await?;
            let answer = answer::read(raw, &connection.route)?;
            Ok(wait(&connection, answer, self.pace.pause).await)
        })
        .await
    }

    /// Sends a message and returns the events of the answer one by one, from the first one on.
    ///
    /// If the card says that the agent streams, the events are those of its stream (1.0 section 3.1.2); if it does not,
    /// or if the agent refuses to stream, they are its answer and each later state of an unfinished task, as
    /// [`Agent::send`] reads them. A refused call was not accepted, so nothing is sent twice.
    pub async fn events(&self, message: &Message) -> Result<EventStream, TalkError> {
        self.on_first(async |connection: Connection| {
            if !self.streams {
                return EventStream::waiting(connection, message, self.pace).await;
            }
            match EventStream::open(connection, Operation::Stream(message), self.pace).await {
                Ok(stream) => Ok(stream),
                Err((error, connection)) if error.says_no_stream() => {
                    EventStream::waiting(connection, message, self.pace).await
                }
                Err((error, _)) => Err(error),
            }
        })
        .await
    }

    /// The task with this id in its present state.
    pub async fn task(&self, id: &str) -> Result<AgentAnswer, TalkError> {
        self.task_after(Operation::Get(id)).await
    }

    /// Cancels the task with this id, and returns its new state.
    pub async fn cancel(&self, id: &str) -> Result<AgentAnswer, TalkError> {
        self.task_after(Operation::Cancel(id)).await
    }

    async fn task_after(&self, operation: Operation<'_>) -> Result<AgentAnswer, TalkError> {
        self.on_first(async |connection: Connection| {
            let raw = connection.call(operation).await?;
            answer::read_task(raw, &connection.route)
        })
        .await
    }

    /// The agent's tasks, as far as it shows them to this caller. None can list them over JSON-RPC before 1.0.
    pub async fn tasks(&self, query: &TaskQuery) -> Result<TaskPage, TalkError> {
        self.on_first(async |connection: Connection| {
            let raw = connection.call(Operation::List(query)).await?;
            tasks::read(raw, &connection.route)
        })
        .await
    }

    /// Lets the agent report the changes of a task to an address, and returns the configuration as the agent keeps it.
    pub async fn set_push(&self, task: &str, config: &PushConfig) -> Result<PushConfig, TalkError> {
        let raw = self.push(task, PushCall::Set(config)).await?;
        push::read(&raw)
    }

    /// The push-notification configuration of a task with this identifier.
    pub async fn push_config(&self, task: &str, id: &str) -> Result<PushConfig, TalkError> {
        let raw = self.push(task, PushCall::Get(id)).await?;
        push::read(&raw)
    }

    /// The push-notification configurations of a task, the first [`PUSH_CONFIG_LIMIT`](super::PUSH_CONFIG_LIMIT). 0.1
    /// has no list.
    pub async fn push_configs(&self, task: &str) -> Result<Vec<PushConfig>, TalkError> {
        let raw = self.push(task, PushCall::List).await?;
        push::read_list(&raw)
    }

    /// Removes a push-notification configuration of a task.
    pub async fn delete_push(&self, task: &str, id: &str) -> Result<(), TalkError> {
        self.push(task, PushCall::Delete(id)).await.map(|_| ())
    }

    async fn push(&self, task: &str, call: PushCall<'_>) -> Result<Value, TalkError> {
        self.on_first(async |connection: Connection| {
            connection.call(Operation::Push(task, call)).await
        })
        .await
    }

    /// The card that the agent shows to callers with credentials (1.0 section 3.1.11), as it sent it.
    pub async fn extended_card(&self) -> Result<Value, TalkError> {
        self.on_first(async |connection: Connection| connection.call(Operation::ExtendedCard).await)
            .await
    }

    /// The further events of the task with this id, from its state on: those of a stream (1.0 section 3.1.6), or each
    /// later state if the task is done or the agent cannot stream it.
    pub async fn subscribe(&self, id: &str) -> Result<EventStream, TalkError> {
        self.on_first(async |connection: Connection| {
            // Before 1.0 a stream that is subscribed to does not begin with the task.
            if !self.streams || !connection.route.dialect.is_v1() {
                return EventStream::following(connection, id, self.pace, self.streams).await;
            }
            match EventStream::open(connection, Operation::Subscribe(id), self.pace).await {
                Ok(stream) => Ok(stream),
                // Versions and SDKs refuse a task that is done with different codes.
                Err((
                    TalkError::Protocol { .. } | TalkError::Http { .. } | TalkError::Status { .. },
                    connection,
                )) => EventStream::following(connection, id, self.pace, false).await,
                Err((error, _)) => Err(error),
            }
        })
        .await
    }

    /// Makes a call at the first interface; if the agent certainly did not accept it, in the other forms of that
    /// interface and at the next one. With credentials, which are for one origin, interfaces elsewhere are not tried.
    async fn on_first<T>(
        &self,
        call: impl AsyncFn(Connection) -> Result<T, TalkError>,
    ) -> Result<T, TalkError> {
        let origin = self.routes.first().map(|route| route.url.origin());
        let mut first_failure = None;
        let mut unreachable = None;
        let deadline = Instant::now() + self.timeout;
        for route in &self.routes {
            if self.credentials.any && Some(route.url.origin()) != origin {
                continue;
            }
            // Another form changes nothing about that.
            if unreachable == Some(&route.url) {
                continue;
            }
            let client = self.client(route)?;
            let mut exchange = Exchange::new(client, &self.credentials, self.timeout, deadline);
            if let Some(extensions) = &self.extensions {
                exchange.activate(extensions, route.dialect);
            }
            let is_bare = route.dialect.is_grpc() && !route.interface.url.contains("://");
            let undated = route.interface.protocol_version.is_none();
            let connection = Connection {
                exchange,
                route: route.clone(),
            };
            match call(connection).await {
                Err(TalkError::Unreachable { url, reason }) => {
                    unreachable = Some(&route.url);
                    let failure = match is_bare && url.starts_with("https:") {
                        true => TalkError::UnreachableOverTls { url, reason },
                        false => TalkError::Unreachable { url, reason },
                    };
                    first_failure.get_or_insert(failure);
                }
                Err(error) if error.not_taken_up() || (undated && error.says_invalid_request()) => {
                    first_failure.get_or_insert(error);
                }
                outcome => return outcome,
            }
        }
        Err(first_failure.unwrap_or(TalkError::NoInterface))
    }

    fn client(&self, route: &Route) -> Result<Client, TalkError> {
        let place = &self.clients[usize::from(is_loopback(&route.url))]
            [usize::from(route.dialect.is_grpc())];
        if let Some(client) = place.get() {
            return Ok(client.clone());
        }
        let client = client_for(route, &self.credentials)?;
        Ok(place.get_or_init(|| client).clone())
    }
}

/// The address of the interface that is called first: credentials for the agent are for its origin and no other one.
/// Fails if none of the card's interfaces can be used.
pub fn chosen_interface(card: &AgentCard, choice: &InterfaceFilter) -> Result<Url, TalkError> {
    let routes = chosen_routes(card, choice)?;
    let first = routes.into_iter().next().ok_or(TalkError::NoInterface)?;
    Ok(first.url)
}

fn chosen_routes(card: &AgentCard, choice: &InterfaceFilter) -> Result<Vec<Route>, TalkError> {
    let mut usable = choice::routes(&choice.readdressed(card))?;
    // Agents whose cards name no address are written after PromptKit.
    if card.interfaces.is_empty() {
        let mut old = usable.iter_mut();
        if let Some(old) = old.find(|route| route.dialect == Dialect::V0JsonRpc) {
            old.dialect = Dialect::PromptKitJsonRpc;
        }
    }
    let offered = usable.iter().map(|route| {
        let version = route.interface.protocol_version.as_deref();
        let version = version.unwrap_or("without a version");
        format!("{} {version}", route.interface.binding)
    });
    let offered = shorten(&offered.collect::<Vec<_>>().join(", "));
    let routes = choice.apply(usable);
    if routes.is_empty() {
        let wanted = shorten(&choice.wanted());
        return Err(TalkError::NotChosen { wanted, offered });
    }
    Ok(choice::with_skill_forms(routes, choice.skill_first))
}

fn extensions(uris: &[String]) -> Result<Option<HeaderValue>, TalkError> {
    if uris.is_empty() {
        return Ok(None);
    }
    let value = HeaderValue::try_from(uris.join(", "));
    value.map(Some).map_err(|_| TalkError::BadHeader {
        name: "the list of extensions".to_owned(),
    })
}

/// Polls an unfinished task until it stops working. The last known answer is never lost: if polling fails or the
/// deadline comes, it is returned with the reason why it is not final.
async fn wait(connection: &Connection, mut answer: AgentAnswer, pause: Duration) -> AgentAnswer {
    let exchange = &connection.exchange;
    let mut pause = pause;
    let longest = pause.max(Duration::from_secs(2));
    let mut asked = 0;
    while answer.is_under_way() {
        let Some(task_id) = answer.task_id.clone() else {
            answer.unfinished =
                Some("the agent gave no task id, so its progress cannot be read".to_owned());
            break;
        };
        let next = Instant::now() + pause;
        if asked == POLL_LIMIT || next >= exchange.deadline() {
            let state = answer.state.as_deref().unwrap_or("unfinished");
            answer.unfinished = Some(format!(
                "the task is still {state} after {} s; ask the agent again later, or allow more time",
                exchange.timeout().as_secs()
            ));
            break;
        }
        tokio::time::sleep_until(next).await;
        asked += 1;
        pause = (pause * 2).min(longest);
        let asked_again = connection
            .call(Operation::Get(&task_id))
            .await
            .and_then(|raw| answer::read_task(raw, &connection.route));
        match asked_again {
            Ok(newer) => answer = newer,
            Err(error) => {
                answer.unfinished =
                    Some(format!("the state of the task could not be read: {error}"));
                break;
            }
        }
    }
    answer
}
