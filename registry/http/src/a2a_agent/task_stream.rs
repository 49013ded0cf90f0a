//! Streams a task as events (1.0 section 3.5): the task, then its changes, until it has ended or requires input.
//!
//! Events are derived from the task's row. So all streams of a task, on every replica, have the same events in the
//! same order, and closing one stream does not affect the others.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::process_state::self_agent::TaskWatcher;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::task_state::TaskState;
use a2a_registry_store::a2a_tasks;
use actix_web::HttpResponse;
use actix_web::http::header;
use bytes::Bytes;
use futures::Stream;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::error::{EVENT_STREAM, NO_STORE};
use super::operations::OperationRequest;
use super::protocol_version::ProtocolVersion;
use super::tasks::{LoadedTask, is_task_overdue, load_task, task_owner_id};
use super::{rpc, v0_3, wire_format};
use crate::limits::stream_limit::StreamPermit;
use crate::middleware::envelope::prevent_body_changes;
use crate::requests::auth::bearer_token;

/// How often a stream checks whether its task has changed, because another replica may change it, and whether its
/// token is still valid.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Time without an event after which a comment keeps the connection open.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(15);

#[derive(Debug, Clone)]
pub(super) enum EventEncoding {
    /// Events are results of the JSON-RPC request with this id.
    Rpc(Value, ProtocolVersion),
    Rest,
}

impl EventEncoding {
    pub(super) const fn version(&self) -> ProtocolVersion {
        match self {
            Self::Rpc(_, version) => *version,
            Self::Rest => ProtocolVersion::V1,
        }
    }

    fn encode_frame(&self, event: Value, is_last: bool) -> Bytes {
        let written = match self {
            Self::Rest => event.to_string(),
            Self::Rpc(id, ProtocolVersion::V1) => rpc::rpc_result_json(id, &event),
            Self::Rpc(id, ProtocolVersion::V03) => {
                rpc::rpc_result_json(id, &v0_3::event_to_v03(event, is_last))
            }
        };
        Bytes::from(format!("data: {written}\n\n"))
    }
}

/// Streams a task, starting with its given state. The stream ends there unless the task is working.
pub(super) fn stream_task(
    operation_request: &OperationRequest<'_>,
    task: LoadedTask,
    history_length: Option<usize>,
    permit: StreamPermit,
) -> HttpResponse {
    let (context, encoding) = (
        &operation_request.state.context,
        operation_request.encoding.clone(),
    );
    let (id, last_state) = (task.row.id, (task.state, task.row.updated_at));
    let is_last = task.state != TaskState::Working;
    // Watch before the task can change.
    let signal = context.self_agent.task_watchers.watch(id);
    let first_event =
        wire_format::json_object([("task", wire_format::task_json(task, history_length, true))]);
    let task_stream = TaskStream {
        context: Arc::clone(context),
        caller: operation_request.caller.clone(),
        // An unreadable token was rejected earlier.
        token: bearer_token(operation_request.request)
            .ok()
            .flatten()
            .map(str::to_owned),
        id,
        last_state,
        pending_frames: VecDeque::from([encoding.encode_frame(first_event, is_last)]),
        is_finished: is_last,
        encoding,
        signal,
        sent_at: context.monotonic_time(),
        shutdown: operation_request.state.shutdown.clone(),
        _permit: permit,
    };
    let mut response = HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, EVENT_STREAM))
        .insert_header((header::CACHE_CONTROL, NO_STORE))
        .streaming(task_stream.into_stream());
    // A compressor would buffer events.
    prevent_body_changes(response.headers_mut());
    response
}

struct TaskStream {
    context: Arc<AppContext>,
    caller: Caller,
    token: Option<String>,
    id: Uuid,
    /// The last state sent to the client, and the time since which the task is in it.
    last_state: (TaskState, i64),
    pending_frames: VecDeque<Bytes>,
    is_finished: bool,
    encoding: EventEncoding,
    signal: TaskWatcher,
    sent_at: Duration,
    shutdown: CancellationToken,
    _permit: StreamPermit,
}

impl TaskStream {
    fn into_stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        futures::stream::unfold(self, |mut followed| async move {
            let shutdown = followed.shutdown.clone();
            let part = shutdown
                .run_until_cancelled(followed.next_frame())
                .await
                .flatten()?;
            followed.sent_at = followed.context.monotonic_time();
            Some((Ok(part), followed))
        })
    }

    async fn next_frame(&mut self) -> Option<Bytes> {
        if let Some(part) = self.pending_frames.pop_front() {
            return Some(part);
        }
        if self.is_finished {
            return None;
        }
        loop {
            if self.has_task_changed().await? {
                let by = self.caller.clone();
                let task = load_task(&self.context, &by, &self.id.to_string())
                    .await
                    .ok()?;
                // After reading and before sending: data read while a token expires must not be sent, and data read
                // for a caller whose access has changed must be read again.
                self.reauthenticate().await?;
                if self.caller == by {
                    self.queue_events(task);
                    return self.pending_frames.pop_front();
                }
                continue;
            }
            self.reauthenticate().await?;
            if self.context.monotonic_time().saturating_sub(self.sent_at) >= KEEP_ALIVE_AFTER {
                return Some(Bytes::from_static(b": still working\n\n"));
            }
            // Returns on a change, or when the next check is due.
            let _ = tokio::time::timeout(CHECK_INTERVAL, self.signal.wait_for_change()).await;
        }
    }

    /// Whether the task differs from the state last sent, or exceeds its work time; `None` if the task was deleted.
    async fn has_task_changed(&self) -> Option<bool> {
        let (store, now) = (&self.context.store, self.context.now().0);
        let read = a2a_tasks::live_task_state(store, task_owner_id(&self.caller), self.id, now);
        let (state, since) = read.await.ok()??;
        let state = state.known_value()?;
        Some((state, since) != self.last_state || is_task_overdue(&self.context, state, since))
    }

    fn queue_events(&mut self, task: LoadedTask) {
        self.last_state = (task.state, task.row.updated_at);
        self.is_finished = task.state != TaskState::Working;
        for event in wire_format::task_update_events(task) {
            // 0.3 marks only status events as final, and the status event comes last.
            self.pending_frames
                .push_back(self.encoding.encode_frame(event, self.is_finished));
        }
    }

    /// Checks the token again. A revoked or expired token ends the stream.
    async fn reauthenticate(&mut self) -> Option<()> {
        if let Some(token) = &self.token {
            self.caller = authenticate_token(&self.context, token).await.ok()?;
        }
        Some(())
    }
}
