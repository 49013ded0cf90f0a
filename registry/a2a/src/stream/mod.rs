//! An answer that arrives event by event.
//!
//! A stream that breaks is resumed by subscribing to its task, once that is known. If the agent cannot resume it, the
//! task is polled until it is done. The message is never sent again.

mod accumulator;
mod event;
mod event_reader;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::agent_response::AgentResponse;
use super::connection::{Connection, EventsOrDocument, UnreadEvents};
use super::http_session::{BODY_LIMIT, display_url};
use super::operation::Operation;
use super::{CallError, Message, POLL_LIMIT, v0_1};

use accumulator::StreamAccumulator;
pub use event::{ArtifactUpdate, StatusUpdate, StreamEvent, StreamEventContent};
use event_reader::{ByteMeter, EventReadError, EventReader};

/// Maximum size of an event, in bytes.
pub const EVENT_LIMIT: usize = BODY_LIMIT;
/// Maximum size of a stream, in bytes, including the responses that resume it.
pub const STREAM_LIMIT: usize = 64 * 1024 * 1024;
/// Maximum number of events in a stream.
pub const EVENT_COUNT_LIMIT: usize = 100_000;
/// Maximum number of consecutive attempts to resume a stream that return nothing new; then the task is polled.
pub const RESUME_LIMIT: u32 = 5;

#[derive(Debug, Clone, Copy)]
pub(super) struct StreamTimeouts {
    /// Longest time without an event before the stream counts as broken. Comments do not count: servers send them to
    /// keep open connections of tasks that ended long ago.
    pub idle_timeout: Duration,
    /// First pause before the agent is polled again; it doubles up to two seconds.
    pub poll_interval: Duration,
}

/// The events of an answer, one by one. Dropping it closes the connection; the agent continues the task.
pub struct EventStream {
    connection: Connection,
    phase: StreamPhase,
    pending_event: Option<StreamEvent>,
    accumulator: StreamAccumulator,
    subscribed_task_id: Option<String>,
    byte_meter: Arc<ByteMeter>,
    timeouts: StreamTimeouts,
    next_pause: Duration,
    is_streamed: bool,
    event_count: usize,
    poll_count: u32,
    /// Attempts to resume since the last event.
    resume_attempts: u32,
    /// Whether events may have been missed that no later task contained.
    has_gap: bool,
    last_task: Option<Value>,
}

enum StreamPhase {
    Reading(Box<EventReader>),
    /// The response ended too early; the task is subscribed to next.
    Broken,
    /// The task is polled until it is done.
    Polling,
    /// The task is done, and is requested once more, since events were missed, or none had a text or an artifact.
    FinalFetch,
    Done,
}

impl EventStream {
    /// Starts a stream, and reads its first event. An error returns the connection, for another attempt.
    pub(super) async fn open(
        connection: Connection,
        operation: Operation<'_>,
        timeouts: StreamTimeouts,
    ) -> Result<Self, (CallError, Connection)> {
        let response = match connection.open_stream(operation).await {
            Ok(opened) => opened,
            Err(error) => return Err((error, connection)),
        };
        let mut stream = Self::new(connection, timeouts, true);
        // The task is known before the first event, so its stream can be resumed from the start.
        stream.subscribed_task_id = match operation {
            Operation::Subscribe(id) => Some(id.to_owned()),
            Operation::Stream(message) if stream.connection.route.protocol_binding.is_v0_1() => {
                Some(v0_1::message_task_id(message).to_owned())
            }
            _ => None,
        };
        let first_event = match response {
            EventsOrDocument::Events(unread) => {
                stream.start_reading(unread);
                stream.advance_to_event().await
            }
            EventsOrDocument::Document(value) => Some(stream.accept_unstreamed_answer(value)),
        };
        match first_event {
            Some(Ok(event)) => stream.pending_event = Some(event),
            Some(Err(error)) => return Err((error, stream.connection)),
            None => {}
        }
        Ok(stream)
    }

    /// Sends a message to an agent that does not stream; its answer is the first event.
    pub(super) async fn open_with_polling(
        connection: Connection,
        message: &Message,
        timeouts: StreamTimeouts,
    ) -> Result<Self, CallError> {
        let value = connection.call_operation(Operation::Send(message)).await?;
        let mut stream = Self::new(connection, timeouts, false);
        stream.pending_event = Some(stream.accept_unstreamed_answer(value)?);
        Ok(stream)
    }

    /// Follows a task: the first event is its present state. The further ones are streamed, or it is polled.
    pub(super) async fn open_for_task(
        connection: Connection,
        id: &str,
        timeouts: StreamTimeouts,
        is_streamed: bool,
    ) -> Result<Self, CallError> {
        let value = connection.call_operation(Operation::Get(id)).await?;
        let mut stream = Self::new(connection, timeouts, is_streamed);
        stream.pending_event = Some(stream.accept_unstreamed_answer(value)?);
        if is_streamed && matches!(stream.phase, StreamPhase::Polling) {
            stream.phase = StreamPhase::Broken;
        }
        Ok(stream)
    }

    fn new(connection: Connection, timeouts: StreamTimeouts, is_streamed: bool) -> Self {
        Self {
            connection,
            phase: StreamPhase::Polling,
            pending_event: None,
            accumulator: StreamAccumulator::default(),
            subscribed_task_id: None,
            byte_meter: Arc::default(),
            next_pause: timeouts.poll_interval,
            timeouts,
            is_streamed,
            event_count: 0,
            poll_count: 0,
            resume_attempts: 0,
            has_gap: false,
            last_task: None,
        }
    }

    /// The next event; `None` after the last one, a message or a task that is done or waits for the user. Dropping the
    /// future loses no event.
    pub async fn next_event(&mut self) -> Option<Result<StreamEvent, CallError>> {
        match self.pending_event.take() {
            Some(event) => Some(Ok(event)),
            None => self.advance_to_event().await,
        }
    }

    /// The answer that the events returned so far add up to; `None` before the first one.
    #[must_use]
    pub fn response(&self) -> Option<AgentResponse> {
        self.accumulator.response(&self.connection.route)
    }

    /// The task, once an event named it or it was subscribed to.
    #[must_use]
    pub fn task_id(&self) -> Option<&str> {
        let named = self.accumulator.task_id().filter(|id| !id.is_empty());
        named.or(self.subscribed_task_id.as_deref())
    }

    /// Whether the events are those of a stream, and not of an answer and polled states.
    #[must_use]
    pub fn is_streamed(&self) -> bool {
        self.is_streamed
    }

    /// Cancels the task, which must be known, at the interface that streams it, and returns its new state.
    pub async fn cancel_task(&self) -> Result<AgentResponse, CallError> {
        let Some(id) = self.task_id() else {
            return Err(CallError::NoTaskId);
        };
        let raw = self
            .connection
            .call_operation(Operation::Cancel(id))
            .await?;
        super::agent_response::parse_task_response(raw, &self.connection.route)
    }

    async fn advance_to_event(&mut self) -> Option<Result<StreamEvent, CallError>> {
        loop {
            let step_result = match self.phase {
                StreamPhase::Done => return None,
                StreamPhase::Reading(_) => self.read_event().await,
                StreamPhase::Broken => self.resume_subscription().await,
                StreamPhase::Polling => self.poll_task().await,
                StreamPhase::FinalFetch => self.fetch_final_task().await,
            };
            match step_result {
                Ok(None) => {}
                Ok(Some(value)) => return Some(self.accept_event(value)),
                Err(error) => {
                    self.phase = StreamPhase::Done;
                    return Some(Err(error));
                }
            }
        }
    }

    async fn read_event(&mut self) -> Result<Option<Value>, CallError> {
        let deadline = self.connection.session.deadline();
        let idle_deadline = Instant::now() + self.timeouts.idle_timeout;
        let StreamPhase::Reading(source) = &mut self.phase else {
            return Ok(None);
        };
        match timeout_at(idle_deadline.min(deadline), source.next()).await {
            Ok(Ok(Some(value))) => Ok(Some(value)),
            Ok(Ok(None)) => self.handle_break("it ended before the answer was complete".to_owned()),
            Ok(Err(EventReadError::Lost(reason))) => self.handle_break(reason),
            Ok(Err(EventReadError::TooLong(what))) => {
                let url = self.display_url();
                Err(CallError::StreamTooLong { url, what })
            }
            Ok(Err(error @ EventReadError::NotText)) => Err(CallError::NotAnEvent {
                beginning: error.to_string(),
            }),
            // The agent refuses to resume the stream, in a stream.
            Ok(Err(EventReadError::AgentError(
                CallError::Protocol { .. } | CallError::Status { .. },
            ))) if self.resume_attempts > 0 => {
                self.phase = StreamPhase::Polling;
                Ok(None)
            }
            Ok(Err(EventReadError::AgentError(error))) => Err(error),
            Err(_) if idle_deadline >= deadline => Err(self.timeout_error()),
            Err(_) => {
                let seconds = self.timeouts.idle_timeout.as_secs();
                self.handle_break(format!("no event arrived for {seconds} s"))
            }
        }
    }

    fn start_reading(&mut self, unread: UnreadEvents) {
        let connection = &self.connection;
        let source = EventReader::new(unread, connection, &self.byte_meter);
        self.phase = StreamPhase::Reading(Box::new(source));
    }

    /// Prepares to resume a broken stream, which is possible once the task is known.
    fn handle_break(&mut self, reason: String) -> Result<Option<Value>, CallError> {
        let url = self.display_url();
        if self.task_id().is_none() {
            return Err(CallError::ConnectionLost { url, reason });
        }
        self.phase = match self.resume_attempts < RESUME_LIMIT {
            true => StreamPhase::Broken,
            false => StreamPhase::Polling,
        };
        Ok(None)
    }

    async fn resume_subscription(&mut self) -> Result<Option<Value>, CallError> {
        let (StreamPhase::Broken, Some(id)) = (&self.phase, self.task_id()) else {
            return Ok(None);
        };
        let id = id.to_owned();
        self.wait_before_retry().await?;
        self.resume_attempts += 1;
        self.has_gap = true;
        match self.connection.open_stream(Operation::Subscribe(&id)).await {
            Ok(EventsOrDocument::Events(unread)) => {
                self.start_reading(unread);
                Ok(None)
            }
            Ok(EventsOrDocument::Document(value)) => {
                self.phase = StreamPhase::Polling;
                Ok(Some(value))
            }
            Err(error) if error.is_transient() => self.handle_break(error.to_string()),
            Err(CallError::TimedOut { .. }) => Err(self.timeout_error()),
            Err(_) => {
                self.phase = StreamPhase::Polling;
                Ok(None)
            }
        }
    }

    async fn poll_task(&mut self) -> Result<Option<Value>, CallError> {
        let Some(id) = self.task_id().map(str::to_owned) else {
            return Err(CallError::NoTaskId);
        };
        if self.poll_count == POLL_LIMIT {
            return Err(self.timeout_error());
        }
        self.wait_before_retry().await?;
        self.poll_count += 1;
        let raw = self.fetch_task(&id).await?;
        if self.last_task.as_ref() == Some(&raw) {
            return Ok(None);
        }
        self.last_task = Some(raw.clone());
        Ok(Some(raw))
    }

    /// Requests a finished task once more.
    async fn fetch_final_task(&mut self) -> Result<Option<Value>, CallError> {
        let id = self.task_id().unwrap_or_default().to_owned();
        let must = std::mem::take(&mut self.has_gap);
        match self.fetch_task(&id).await {
            // Nothing was missed: the agent has no further content.
            Err(_) if !must => {
                self.phase = StreamPhase::Done;
                Ok(None)
            }
            task => task.map(Some),
        }
    }

    /// Fetches the task; an error says that it is lost.
    async fn fetch_task(&self, id: &str) -> Result<Value, CallError> {
        let asked = self.connection.call_operation(Operation::Get(id)).await;
        asked.map_err(|error| match error {
            CallError::TimedOut { .. } => self.timeout_error(),
            error if self.is_streamed => CallError::StreamLost {
                url: self.display_url(),
                reason: error.to_string(),
                task: super::foreign_text::shorten_to_line(id),
            },
            error => error,
        })
    }

    async fn wait_before_retry(&mut self) -> Result<(), CallError> {
        let next = Instant::now() + self.next_pause;
        if next >= self.connection.session.deadline() {
            return Err(self.timeout_error());
        }
        sleep_until(next).await;
        let longest = self.timeouts.poll_interval.max(Duration::from_secs(2));
        self.next_pause = (self.next_pause * 2).min(longest);
        Ok(())
    }

    /// Accepts an answer that is not in a stream; an unfinished task is polled afterwards.
    fn accept_unstreamed_answer(&mut self, value: Value) -> Result<StreamEvent, CallError> {
        self.phase = StreamPhase::Polling;
        self.accept_event(value)
    }

    fn accept_event(&mut self, raw: Value) -> Result<StreamEvent, CallError> {
        let taken = self.parse_and_record_event(raw);
        if taken.is_err() {
            self.phase = StreamPhase::Done;
        }
        taken
    }

    fn parse_and_record_event(&mut self, raw: Value) -> Result<StreamEvent, CallError> {
        self.event_count += 1;
        if self.event_count > EVENT_COUNT_LIMIT {
            return Err(CallError::StreamTooLong {
                url: self.display_url(),
                what: format!("more than {EVENT_COUNT_LIMIT} events"),
            });
        }
        let Some((shape, content)) = event::detect_event_shape(&raw) else {
            return Err(match self.is_streamed {
                true => event::invalid_event_error(&raw),
                false => super::agent_response::invalid_response_error(&raw),
            });
        };
        if let (Some(expected_id), Some(event_id)) =
            (self.task_id(), event::event_task_id(shape, content))
            && expected_id != event_id
        {
            return Err(CallError::ForeignEvent {
                expected: super::foreign_text::shorten_to_line(&format!("task {expected_id}")),
                found: super::foreign_text::shorten_to_line(&format!("task {event_id}")),
            });
        }
        let kind = event::parse_event_content(shape, content, &self.connection.route)?;
        self.accumulator.add_event(shape, content);
        if matches!(
            kind,
            StreamEventContent::Task(_) | StreamEventContent::Message(_)
        ) {
            self.has_gap = false;
        } else {
            self.resume_attempts = 0;
            self.next_pause = self.timeouts.poll_interval;
        }
        // Some servers stream states only; the artifacts must be requested.
        let is_empty =
            matches!(shape, event::EventShape::Status) && self.accumulator.has_no_content();
        if kind.is_final() {
            self.phase = if self.has_gap || (is_empty && kind.is_completed_status()) {
                StreamPhase::FinalFetch
            } else {
                StreamPhase::Done
            };
        } else if matches!(self.phase, StreamPhase::FinalFetch) {
            self.phase = StreamPhase::Done;
        }
        Ok(StreamEvent { kind, raw })
    }

    fn timeout_error(&self) -> CallError {
        let seconds = self.connection.session.timeout().as_secs();
        match self.response().and_then(|answer| answer.state) {
            Some(state) => CallError::Unfinished { state, seconds },
            None => CallError::TimedOut {
                url: self.display_url(),
                seconds,
            },
        }
    }

    fn display_url(&self) -> String {
        display_url(&self.connection.route.url)
    }
}
