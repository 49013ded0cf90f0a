//! A task as a stream of events (1.0 section 3.5): the task, then what happens to it, until it has ended or asks back.
//!
//! Events are made of the task's row. So every stream of a task, of whichever replica, has the same ones in the same
//! order, and one that is closed takes nothing from another.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_domain::task_state::TaskState;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures::Stream;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

use super::fault::Fault;
use super::tasks::{Task, load};
use super::version::Version;
use super::{rpc, v0_3, wire};
use crate::authentication::authenticate;
use crate::caller::Caller;
use crate::context::Context;
use crate::http::auth::bearer;
use crate::http::envelope::leave_untouched;
use crate::http::state::State;

/// How often a task is read that another replica may change.
const FOREIGN: Duration = Duration::from_millis(500);
/// How often one is read that only this process changes: so that one that nobody works on any more ends.
const OWN: Duration = Duration::from_secs(5);
/// Reads without a change after which the stream says that it is still there.
const SILENT: u32 = 20;

/// How events are written.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// As results of the request with this id.
    Rpc(Value, Version),
    /// As they are.
    Rest,
}

impl Form {
    fn frame(&self, event: &Value, last: bool) -> Bytes {
        let written = match self {
            Self::Rest => event.to_string(),
            Self::Rpc(id, Version::V1) => rpc::wrapped(id, event),
            Self::Rpc(id, Version::V03) => rpc::wrapped(id, &v0_3::event(event, last)),
        };
        Bytes::from(format!("data: {written}\n\n"))
    }
}

/// A place among the open streams, taken before there is a task to follow. Half of the places are kept for callers with
/// an account, so that nobody else can take the last ones.
pub(super) fn place(state: &State, caller: &Caller) -> Result<OwnedSemaphorePermit, Fault> {
    let full = || {
        Fault::busy(
            "As many streams are open as the registry allows; try again, or read the task.",
            30,
        )
    };
    let kept = state.context.config().limits.streams / 2;
    if caller.account.is_none() && state.streams.available_permits() <= kept {
        return Err(full());
    }
    let streams = Arc::clone(&state.streams);
    streams.try_acquire_owned().map_err(|_| full())
}

/// The stream of a task, beginning with the task as it is given.
pub(super) fn follow(
    request: &HttpRequest,
    state: &web::Data<State>,
    caller: &Caller,
    task: Task,
    history: Option<usize>,
    form: Form,
    place: OwnedSemaphorePermit,
) -> HttpResponse {
    let (id, seen) = (task.id(), (task.state, task.row.updated_at));
    let first = wire::object([("task", wire::task(task, history, true))]);
    let followed = Followed {
        context: Arc::clone(&state.context),
        caller: caller.clone(),
        token: bearer(request).ok().flatten().map(str::to_owned),
        id,
        seen,
        pending: VecDeque::from([form.frame(&first, false)]),
        ends: false,
        form,
        signal: state.context.own_agent.tasks.subscribe(),
        shutdown: state.shutdown.clone(),
        _place: place,
    };
    let mut answer = HttpResponse::Ok()
        .insert_header((
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream"),
        ))
        .insert_header((header::CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .streaming(followed.into_stream());
    // A compressor would hold events back until it has enough of them.
    leave_untouched(answer.headers_mut());
    answer
}

/// One open stream.
struct Followed {
    context: Arc<Context>,
    caller: Caller,
    token: Option<String>,
    id: String,
    /// The state that the client knows of, and since when the task is in it.
    seen: (TaskState, i64),
    pending: VecDeque<Bytes>,
    ends: bool,
    form: Form,
    signal: watch::Receiver<u64>,
    shutdown: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Followed {
    fn into_stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        futures::stream::unfold(self, |mut followed| async move {
            let shutdown = followed.shutdown.clone();
            let part = shutdown
                .run_until_cancelled(followed.next())
                .await
                .flatten()?;
            Some((Ok(part), followed))
        })
    }

    /// The next part; `None` where the stream ends.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(part) = self.pending.pop_front() {
            return Some(part);
        }
        if self.ends {
            return None;
        }
        let pause = if self.context.store.is_postgres() {
            FOREIGN
        } else {
            OWN
        };
        for _ in 0..SILENT {
            // Marked as seen before reading, so that what comes meanwhile wakes the next wait.
            self.signal.borrow_and_update();
            let task = load(&self.context, &self.caller, &self.id).await.ok()?;
            if (task.state, task.row.updated_at) != self.seen {
                self.note(&task);
                return self.pending.pop_front();
            }
            if let Ok(Err(_)) = tokio::time::timeout(pause, self.signal.changed()).await {
                return None;
            }
        }
        self.authenticate_again().await?;
        Some(Bytes::from_static(b": still working\n\n"))
    }

    fn note(&mut self, task: &Task) {
        self.seen = (task.state, task.row.updated_at);
        self.ends = task.state != TaskState::Working;
        let events = wire::events(task);
        let count = events.len();
        for (place, event) in events.iter().enumerate() {
            let last = self.ends && place + 1 == count;
            self.pending.push_back(self.form.frame(event, last));
        }
    }

    /// A token that was revoked or has expired ends the stream.
    async fn authenticate_again(&mut self) -> Option<()> {
        if let Some(token) = &self.token {
            self.caller = authenticate(&self.context, token).await.ok()?;
        }
        Some(())
    }
}
