//! A task as a stream of events (1.0 section 3.5): the task, then what happens to it, until it has ended or asks back.
//!
//! Events are made of the task's row. So every stream of a task, of whichever replica, has the same ones in the same
//! order, and one that is closed takes nothing from another.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_core::accounts::authentication::authenticate;
use a2a_registry_core::context::Context;
use a2a_registry_core::memory::own_agent::TaskSignal;
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

use super::fault::{EVENTS, NOT_STORED};
use super::operations::OperationRequest;
use super::tasks::{Task, is_overdue, load, owner};
use super::version::Version;
use super::{rpc, v0_3, wire};
use crate::limits::stream_places::StreamPlace;
use crate::middleware::envelope::leave_untouched;
use crate::requests::auth::bearer;

/// How often a stream makes sure that its task is as it was, since another replica may change it, and that its token is
/// still good.
const CHECKED_EVERY: Duration = Duration::from_millis(500);
/// After so long without an event a comment keeps the connection open.
const SILENT: Duration = Duration::from_secs(15);

#[derive(Debug, Clone)]
pub(super) enum Form {
    /// As results of the request with this id.
    Rpc(Value, Version),
    Rest,
}

impl Form {
    pub(super) const fn version(&self) -> Version {
        match self {
            Self::Rpc(_, version) => *version,
            Self::Rest => Version::V1,
        }
    }

    fn frame(&self, event: Value, last: bool) -> Bytes {
        let written = match self {
            Self::Rest => event.to_string(),
            Self::Rpc(id, Version::V1) => rpc::wrapped(id, &event),
            Self::Rpc(id, Version::V03) => rpc::wrapped(id, &v0_3::event(event, last)),
        };
        Bytes::from(format!("data: {written}\n\n"))
    }
}

/// The stream of a task, beginning with the task as it is given. It ends there unless the task is worked on.
pub(super) fn follow(
    asked: &OperationRequest<'_>,
    task: Task,
    history: Option<usize>,
    place: StreamPlace,
) -> HttpResponse {
    let (context, form) = (&asked.state.context, asked.form.clone());
    let (id, seen) = (task.row.id, (task.state, task.row.updated_at));
    let ends = task.state != TaskState::Working;
    // Before anything else happens to the task.
    let signal = context.own_agent.tasks.follow(id);
    let first = wire::object([("task", wire::task(task, history, true))]);
    let followed = Followed {
        context: Arc::clone(context),
        caller: asked.caller.clone(),
        // A token that could not be read has been refused before.
        token: bearer(asked.request).ok().flatten().map(str::to_owned),
        id,
        seen,
        pending: VecDeque::from([form.frame(first, ends)]),
        ends,
        form,
        signal,
        sent_at: context.uptime(),
        shutdown: asked.state.shutdown.clone(),
        _place: place,
    };
    let mut answer = HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, EVENTS))
        .insert_header((header::CACHE_CONTROL, NOT_STORED))
        .streaming(followed.into_stream());
    // A compressor would hold events back until it has enough of them.
    leave_untouched(answer.headers_mut());
    answer
}

struct Followed {
    context: Arc<Context>,
    caller: Caller,
    token: Option<String>,
    id: Uuid,
    /// The state that the client knows of, and since when the task is in it.
    seen: (TaskState, i64),
    pending: VecDeque<Bytes>,
    ends: bool,
    form: Form,
    signal: TaskSignal,
    sent_at: Duration,
    shutdown: CancellationToken,
    _place: StreamPlace,
}

impl Followed {
    fn into_stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        futures::stream::unfold(self, |mut followed| async move {
            let shutdown = followed.shutdown.clone();
            let part = shutdown
                .run_until_cancelled(followed.next())
                .await
                .flatten()?;
            followed.sent_at = followed.context.uptime();
            Some((Ok(part), followed))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        if let Some(part) = self.pending.pop_front() {
            return Some(part);
        }
        if self.ends {
            return None;
        }
        loop {
            if self.has_changed().await? {
                let by = self.caller.clone();
                let task = load(&self.context, &by, &self.id.to_string()).await.ok()?;
                // After reading and before sending: what is read while a token ends is not sent any more, and what was
                // read for a caller that may see other agents now is read again.
                self.authenticate_again().await?;
                if self.caller == by {
                    self.note(task);
                    return self.pending.pop_front();
                }
                continue;
            }
            self.authenticate_again().await?;
            if self.context.uptime().saturating_sub(self.sent_at) >= SILENT {
                return Some(Bytes::from_static(b": still working\n\n"));
            }
            // Either a change or the time for the next check.
            let _ = tokio::time::timeout(CHECKED_EVERY, self.signal.changed()).await;
        }
    }

    /// Whether the task is not as the client knows it, or has been worked on for too long; `None` where it is gone.
    async fn has_changed(&self) -> Option<bool> {
        let (store, now) = (&self.context.store, self.context.now().0);
        let read = a2a_tasks::task_state_of(store, owner(&self.caller), self.id, now);
        let (state, since) = read.await.ok()??;
        let state = state.known()?;
        Some((state, since) != self.seen || is_overdue(&self.context, state, since))
    }

    fn note(&mut self, task: Task) {
        self.seen = (task.state, task.row.updated_at);
        self.ends = task.state != TaskState::Working;
        for event in wire::events(task) {
            // 0.3 marks only events of the state, and that one comes last.
            self.pending.push_back(self.form.frame(event, self.ends));
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
