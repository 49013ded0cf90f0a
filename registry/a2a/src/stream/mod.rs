//! An answer that arrives event by event.
//!
//! A stream that breaks is resumed by subscribing to its task, once that is known; an agent that cannot resume it is
//! asked for the task instead, until it is done. The message is never sent again.

mod event;
mod fold;
mod source;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::answer::AgentAnswer;
use super::connection::{Connection, Opened, Unread};
use super::exchange::{BODY_LIMIT, shown};
use super::operation::Operation;
use super::{Message, POLL_LIMIT, TalkError, v0_1};

pub use event::{ArtifactUpdate, EventKind, StatusUpdate, StreamEvent};
use fold::Fold;
use source::{Meter, Source, SourceError};

/// Most bytes of one event.
pub const EVENT_LIMIT: usize = BODY_LIMIT;
/// Most bytes of a stream, resumed ones included.
pub const STREAM_LIMIT: usize = 64 * 1024 * 1024;
/// Most events of a stream.
pub const EVENT_COUNT_LIMIT: usize = 100_000;
/// Most attempts in a row to resume a stream without anything new from it; the task is asked for afterwards.
pub const RESUME_LIMIT: u32 = 5;

#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Longest time without an event before the stream counts as broken. Comments do not count: servers send them to
    /// keep open connections of tasks that ended long ago.
    pub idle: Duration,
    /// First pause before the agent is asked again; it doubles up to two seconds.
    pub pause: Duration,
}

/// The events of an answer, one by one. Dropping it closes the connection; the task goes on at the agent.
pub struct EventStream {
    connection: Connection,
    phase: Phase,
    ready: Option<StreamEvent>,
    fold: Fold,
    subscribed: Option<String>,
    meter: Arc<Meter>,
    pace: Pace,
    pause: Duration,
    streamed: bool,
    count: usize,
    asked: u32,
    /// Attempts to resume since the last event.
    attempts: u32,
    /// Whether events may have been missed that no task contained since.
    gap: bool,
    last_task: Option<Value>,
}

enum Phase {
    Reading(Box<Source>),
    /// The response ended too early; the task is subscribed to next.
    Broken,
    /// The task is asked for until it is done.
    Polling,
    /// The task is done, and is requested once more, since events were missed, or none had a text or an artifact.
    Checking,
    Over,
}

impl EventStream {
    /// Starts a stream, and reads its first event. An error returns the connection, for another attempt.
    pub(super) async fn open(
        connection: Connection,
        operation: Operation<'_>,
        pace: Pace,
    ) -> Result<Self, (TalkError, Connection)> {
        let opened = match connection.open(operation).await {
            Ok(opened) => opened,
            Err(error) => return Err((error, connection)),
        };
        let mut stream = Self::new(connection, pace, true);
        // Known before the first event, a stream of this task can be resumed from the start.
        stream.subscribed = match operation {
            Operation::Subscribe(id) => Some(id.to_owned()),
            Operation::Stream(message) if stream.connection.route.dialect.is_v0_1() => {
                Some(v0_1::task_id(message).to_owned())
            }
            _ => None,
        };
        let first = match opened {
            Opened::Events(unread) => {
                stream.read_from(unread);
                stream.advance().await
            }
            Opened::Whole(value) => Some(stream.take_whole(value)),
        };
        match first {
            Some(Ok(event)) => stream.ready = Some(event),
            Some(Err(error)) => return Err((error, stream.connection)),
            None => {}
        }
        Ok(stream)
    }

    /// Sends a message to an agent that does not stream; its answer is the first event.
    pub(super) async fn waiting(
        connection: Connection,
        message: &Message,
        pace: Pace,
    ) -> Result<Self, TalkError> {
        let value = connection.call(Operation::Send(message)).await?;
        let mut stream = Self::new(connection, pace, false);
        stream.ready = Some(stream.take_whole(value)?);
        Ok(stream)
    }

    /// Follows a task: the first event is its present state. The further ones are streamed, or it is polled.
    pub(super) async fn following(
        connection: Connection,
        id: &str,
        pace: Pace,
        streamed: bool,
    ) -> Result<Self, TalkError> {
        let value = connection.call(Operation::Get(id)).await?;
        let mut stream = Self::new(connection, pace, streamed);
        stream.ready = Some(stream.take_whole(value)?);
        if streamed && matches!(stream.phase, Phase::Polling) {
            stream.phase = Phase::Broken;
        }
        Ok(stream)
    }

    fn new(connection: Connection, pace: Pace, streamed: bool) -> Self {
        Self {
            connection,
            phase: Phase::Polling,
            ready: None,
            fold: Fold::default(),
            subscribed: None,
            meter: Arc::default(),
            pause: pace.pause,
            pace,
            streamed,
            count: 0,
            asked: 0,
            attempts: 0,
            gap: false,
            last_task: None,
        }
    }

    /// The next event; `None` after the last one, a message or a task that is done or waits for the user. Dropping the
    /// future loses no event.
    pub async fn next(&mut self) -> Option<Result<StreamEvent, TalkError>> {
        match self.ready.take() {
            Some(event) => Some(Ok(event)),
            None => self.advance().await,
        }
    }

    /// The answer that the events returned so far add up to; `None` before the first one.
    #[must_use]
    pub fn answer(&self) -> Option<AgentAnswer> {
        self.fold.answer(&self.connection.route)
    }

    /// The task, once an event named it or it was subscribed to.
    #[must_use]
    pub fn task_id(&self) -> Option<&str> {
        let named = self.fold.task_id().filter(|id| !id.is_empty());
        named.or(self.subscribed.as_deref())
    }

    /// Whether the events are those of a stream, and not an answer that was waited for.
    #[must_use]
    pub fn is_streamed(&self) -> bool {
        self.streamed
    }

    /// Cancels the task, which must be known, at the interface that streams it, and returns its new state.
    pub async fn cancel(&self) -> Result<AgentAnswer, TalkError> {
        let Some(id) = self.task_id() else {
            return Err(TalkError::NoTask);
        };
        let raw = self.connection.call(Operation::Cancel(id)).await?;
        super::answer::read_task(raw, &self.connection.route)
    }

    async fn advance(&mut self) -> Option<Result<StreamEvent, TalkError>> {
        loop {
            let step = match self.phase {
                Phase::Over => return None,
                Phase::Reading(_) => self.read().await,
                Phase::Broken => self.resume().await,
                Phase::Polling => self.poll().await,
                Phase::Checking => self.check().await,
            };
            match step {
                Ok(None) => {}
                Ok(Some(value)) => return Some(self.take(value)),
                Err(error) => {
                    self.phase = Phase::Over;
                    return Some(Err(error));
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Option<Value>, TalkError> {
        let deadline = self.connection.exchange.deadline();
        let silence = Instant::now() + self.pace.idle;
        let Phase::Reading(source) = &mut self.phase else {
            return Ok(None);
        };
        match timeout_at(silence.min(deadline), source.next()).await {
            Ok(Ok(Some(value))) => Ok(Some(value)),
            Ok(Ok(None)) => self.broke("it ended before the answer did".to_owned()),
            Ok(Err(SourceError::Lost(reason))) => self.broke(reason),
            Ok(Err(SourceError::TooLong(what))) => {
                let url = self.url();
                Err(TalkError::StreamTooLong { url, what })
            }
            Ok(Err(error @ SourceError::NotText)) => Err(TalkError::NotAnEvent {
                beginning: error.to_string(),
            }),
            // The agent refuses to resume the stream, in a stream.
            Ok(Err(SourceError::Told(TalkError::Protocol { .. } | TalkError::Status { .. })))
                if self.attempts > 0 =>
            {
                self.phase = Phase::Polling;
                Ok(None)
            }
            Ok(Err(SourceError::Told(error))) => Err(error),
            Err(_) if silence >= deadline => Err(self.out_of_time()),
            Err(_) => {
                let seconds = self.pace.idle.as_secs();
                self.broke(format!("no event arrived for {seconds} s"))
            }
        }
    }

    fn read_from(&mut self, unread: Unread) {
        let connection = &self.connection;
        let source = Source::new(unread, connection, &self.meter);
        self.phase = Phase::Reading(Box::new(source));
    }

    /// A broken stream can be resumed once the task is known.
    fn broke(&mut self, reason: String) -> Result<Option<Value>, TalkError> {
        let url = self.url();
        if self.task_id().is_none() {
            return Err(TalkError::Broken { url, reason });
        }
        self.phase = match self.attempts < RESUME_LIMIT {
            true => Phase::Broken,
            false => Phase::Polling,
        };
        Ok(None)
    }

    async fn resume(&mut self) -> Result<Option<Value>, TalkError> {
        let (Phase::Broken, Some(id)) = (&self.phase, self.task_id()) else {
            return Ok(None);
        };
        let id = id.to_owned();
        self.wait().await?;
        self.attempts += 1;
        self.gap = true;
        match self.connection.open(Operation::Subscribe(&id)).await {
            Ok(Opened::Events(unread)) => {
                self.read_from(unread);
                Ok(None)
            }
            Ok(Opened::Whole(value)) => {
                self.phase = Phase::Polling;
                Ok(Some(value))
            }
            Err(error) if error.may_pass() => self.broke(error.to_string()),
            Err(TalkError::TimedOut { .. }) => Err(self.out_of_time()),
            Err(_) => {
                self.phase = Phase::Polling;
                Ok(None)
            }
        }
    }

    async fn poll(&mut self) -> Result<Option<Value>, TalkError> {
        let Some(id) = self.task_id().map(str::to_owned) else {
            return Err(TalkError::NoTask);
        };
        if self.asked == POLL_LIMIT {
            return Err(self.out_of_time());
        }
        self.wait().await?;
        self.asked += 1;
        let raw = self.task(&id).await?;
        if self.last_task.as_ref() == Some(&raw) {
            return Ok(None);
        }
        self.last_task = Some(raw.clone());
        Ok(Some(raw))
    }

    /// Requests a task once more that is done.
    async fn check(&mut self) -> Result<Option<Value>, TalkError> {
        let id = self.task_id().unwrap_or_default().to_owned();
        let must = std::mem::take(&mut self.gap);
        match self.task(&id).await {
            // Nothing was missed: the agent just has nothing more to say.
            Err(_) if !must => {
                self.phase = Phase::Over;
                Ok(None)
            }
            task => task.map(Some),
        }
    }

    /// The task; an error says that it is lost.
    async fn task(&self, id: &str) -> Result<Value, TalkError> {
        let asked = self.connection.call(Operation::Get(id)).await;
        asked.map_err(|error| match error {
            TalkError::TimedOut { .. } => self.out_of_time(),
            error if self.streamed => TalkError::StreamLost {
                url: self.url(),
                reason: error.to_string(),
                task: super::error::shorten(id),
            },
            error => error,
        })
    }

    async fn wait(&mut self) -> Result<(), TalkError> {
        let next = Instant::now() + self.pause;
        if next >= self.connection.exchange.deadline() {
            return Err(self.out_of_time());
        }
        sleep_until(next).await;
        let longest = self.pace.pause.max(Duration::from_secs(2));
        self.pause = (self.pause * 2).min(longest);
        Ok(())
    }

    /// Takes an answer that is not in a stream; an unfinished task is asked for afterwards.
    fn take_whole(&mut self, value: Value) -> Result<StreamEvent, TalkError> {
        self.phase = Phase::Polling;
        self.take(value)
    }

    fn take(&mut self, raw: Value) -> Result<StreamEvent, TalkError> {
        let taken = self.understood(raw);
        if taken.is_err() {
            self.phase = Phase::Over;
        }
        taken
    }

    fn understood(&mut self, raw: Value) -> Result<StreamEvent, TalkError> {
        self.count += 1;
        if self.count > EVENT_COUNT_LIMIT {
            return Err(TalkError::StreamTooLong {
                url: self.url(),
                what: format!("more than {EVENT_COUNT_LIMIT} events"),
            });
        }
        let Some((form, content)) = event::form(&raw) else {
            return Err(match self.streamed {
                true => event::no_event(&raw),
                false => super::answer::no_answer(&raw),
            });
        };
        if let (Some(known), Some(named)) = (self.task_id(), event::task_id(form, content))
            && known != named
        {
            return Err(TalkError::ForeignEvent {
                expected: super::error::shorten(&format!("task {known}")),
                found: super::error::shorten(&format!("task {named}")),
            });
        }
        let kind = event::read(form, content, &self.connection.route)?;
        self.fold.add(form, content);
        if matches!(kind, EventKind::Task(_) | EventKind::Message(_)) {
            self.gap = false;
        } else {
            self.attempts = 0;
            self.pause = self.pace.pause;
        }
        // Some servers stream states only, and keep the artifacts for those who ask.
        let is_empty = matches!(form, event::Form::Status) && self.fold.is_empty();
        if kind.ends() {
            self.phase = if self.gap || (is_empty && kind.completes()) {
                Phase::Checking
            } else {
                Phase::Over
            };
        } else if matches!(self.phase, Phase::Checking) {
            self.phase = Phase::Over;
        }
        Ok(StreamEvent { kind, raw })
    }

    fn out_of_time(&self) -> TalkError {
        let seconds = self.connection.exchange.timeout().as_secs();
        match self.answer().and_then(|answer| answer.state) {
            Some(state) => TalkError::Unfinished { state, seconds },
            None => TalkError::TimedOut {
                url: self.url(),
                seconds,
            },
        }
    }

    fn url(&self) -> String {
        shown(&self.connection.route.url)
    }
}
