//! The A2A client behind `a2a-registry send`: sends one text and returns the agent's answer.
//!
//! It supports 1.0 over JSON-RPC and HTTP+JSON, and 0.2 and 0.3 over JSON-RPC. It depends on the card model and on
//! nothing else of the registry, so it can be used alone. All returned text is the agent's own and unchanged: the
//! caller makes it safe before it reaches a terminal or a page.

mod answer;
pub mod choice;
mod credentials;
mod error;
mod exchange;
mod jsonrpc;
mod rest;
pub mod v0;
pub mod v1;

use std::time::Duration;

use a2a_card::AgentCard;
use serde_json::Value;
use tokio::time::Instant;

pub use answer::{AgentAnswer, ArtifactSummary};
pub use choice::Dialect;
pub use error::TalkError;
pub use exchange::BODY_LIMIT;

use choice::Route;
use exchange::Exchange;

/// Most requests for an unfinished task, whatever the deadline.
pub const POLL_LIMIT: u32 = 120;

/// Longest timeout of a call.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Options of [`send_text`].
#[derive(Clone)]
pub struct SendOptions {
    /// Token for schemes that take one in `Authorization: Bearer` (HTTP bearer, OAuth 2, OIDC).
    pub bearer: Option<String>,
    /// Key for an API key scheme; it is sent where the card's scheme says.
    pub api_key: Option<String>,
    /// Additional request headers, name and value, sent as given. A header that a scheme requires counts as meeting
    /// it, which serves schemes without an option of their own, such as HTTP Basic.
    pub headers: Vec<(String, String)>,
    /// Longest duration of the whole call: every request, and waiting for an unfinished task. At most a day.
    pub timeout: Duration,
    /// Pause before the first request for an unfinished task; it doubles up to two seconds.
    pub poll_interval: Duration,
    /// Identifier of the message. The caller chooses it, so that it can be random in use and fixed in a test; agents
    /// may treat two messages with the same identifier as one.
    pub message_id: String,
}

impl SendOptions {
    /// Options without credentials, with a timeout of one minute.
    #[must_use]
    pub fn new(message_id: impl Into<String>) -> Self {
        Self {
            bearer: None,
            api_key: None,
            headers: Vec::new(),
            timeout: Duration::from_secs(60),
            poll_interval: Duration::from_millis(200),
            message_id: message_id.into(),
        }
    }
}

impl std::fmt::Debug for SendOptions {
    /// Shows which credentials are set, but not their values.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("SendOptions")
            .field("bearer", &self.bearer.is_some())
            .field("api_key", &self.api_key.is_some())
            .field("headers", &names)
            .field("timeout", &self.timeout)
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
/// working, at most [`POLL_LIMIT`] times; if the deadline comes first, [`AgentAnswer::unfinished`] says so.
///
/// # Errors
///
/// Every failure is a [`TalkError`] with one line that says what to do. Missing credentials are reported before
/// anything is sent.
pub async fn send_text(
    card: &AgentCard,
    text: &str,
    options: &SendOptions,
) -> Result<AgentAnswer, TalkError> {
    let routes = choice::routes(card)?;
    let credentials = credentials::for_card(card, options)?;
    let deadline = Instant::now() + options.timeout.min(DAY);
    let mut first_failure = None;
    for route in routes {
        let exchange = Exchange::new(&route, &credentials, options.timeout, deadline)?;
        match speak(&exchange, &route, text, options).await {
            Err(error) if error.not_taken_up() => {
                first_failure.get_or_insert(error);
            }
            outcome => return outcome,
        }
    }
    Err(first_failure.unwrap_or(TalkError::NoInterface))
}

async fn speak(
    exchange: &Exchange,
    route: &Route,
    text: &str,
    options: &SendOptions,
) -> Result<AgentAnswer, TalkError> {
    let raw = match route.dialect {
        Dialect::V1Rest => rest::send(exchange, route, text, &options.message_id).await?,
        Dialect::V1JsonRpc => {
            let params = v1::send_params(text, &options.message_id, route.tenant());
            jsonrpc::call(exchange, route, v1::SEND, params).await?
        }
        Dialect::V0JsonRpc => {
            let params = v0::send_params(text, &options.message_id);
            jsonrpc::call(exchange, route, v0::SEND, params).await?
        }
    };
    let answer = answer::read(raw, route)?;
    Ok(wait(exchange, route, answer, options).await)
}

/// Polls an unfinished task until it stops working. The last known answer is never lost: if polling fails or the
/// deadline comes, it is returned with the reason why it is not final.
async fn wait(
    exchange: &Exchange,
    route: &Route,
    mut answer: AgentAnswer,
    options: &SendOptions,
) -> AgentAnswer {
    let mut pause = options.poll_interval.min(DAY);
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
                options.timeout.as_secs()
            ));
            break;
        }
        tokio::time::sleep_until(next).await;
        asked += 1;
        pause = (pause * 2).min(longest);
        let asked_again = get_task(exchange, route, &task_id)
            .await
            .and_then(|raw| answer::read_task(raw, route));
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

async fn get_task(exchange: &Exchange, route: &Route, id: &str) -> Result<Value, TalkError> {
    match route.dialect {
        Dialect::V1Rest => rest::get_task(exchange, route, id).await,
        Dialect::V1JsonRpc => {
            let params = v1::get_params(id, route.tenant());
            jsonrpc::call(exchange, route, v1::GET, params).await
        }
        Dialect::V0JsonRpc => jsonrpc::call(exchange, route, v0::GET, v0::get_params(id)).await,
    }
}
