//! Handlers for the event log, as pages or as a stream of server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use a2a_registry_api::limits::PageSize;
use a2a_registry_api::{Event, EventList, deserialize_nonempty_parameter};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::events::filter::EventFilter;
use a2a_registry_core::events::list::{self as events, EventListQuery, load_events_after};
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, get, post, web};
use bytes::Bytes;
use futures::Stream;
use serde::Deserialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::answers::response::{self, HandlerResult};
use crate::limits::stream_limit::StreamPermit;
use crate::middleware::envelope::{HeadRequest, accepts_media_type, prevent_body_changes};
use crate::problems::problem::Problem;
use crate::problems::problem_kinds;
use crate::requests::auth::{Administer, ReadEvents, Require, bearer_token};
use crate::requests::query::Query;
use crate::requests::server_state::ServerState;

/// Number of events that a stream reads at once.
const STREAM_BATCH: usize = 100;
/// How often an idle stream checks that its token is still valid.
const TOKEN_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Number of checks without an event after which a comment keeps the connection open: every 15 seconds.
const CHECKS_PER_KEEPALIVE: u32 = 30;

/// Query parameters that choose events.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct EventQuery {
    /// Returns only events after this sequence number; by default all.
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    after: Option<i64>,
    /// Kinds of events, which are alternatives, as are the values of all filters.
    #[param(inline)]
    kind: Vec<EventKind>,
    /// Agents that events are about, by their ids or URNs. Events about reviews are about the agent.
    agent: Vec<String>,
    /// Domains that events, or their agents, are about.
    domain: Vec<String>,
    /// Names of collections: returns only events about agents in them, as far as the caller finds these now.
    collection: Vec<String>,
    /// Id of a saved search of the caller: returns only events about agents that it finds now.
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    search: Option<Uuid>,
    /// Name of an account that caused the events, or that they are about. Not for streams.
    account: Option<String>,
    /// Returns only events from this time on. Not for streams.
    #[param(value_type = Option<Timestamp>, inline)]
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    since: Option<Timestamp>,
    /// Returns only events before this time. Not for streams.
    #[param(value_type = Option<Timestamp>, inline)]
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    until: Option<Timestamp>,
    /// Whether the newest events come first. Not for streams.
    newest_first: bool,
    /// Entries on the page, at most 100; by default 20. Not for streams.
    #[serde(deserialize_with = "deserialize_nonempty_parameter")]
    #[param(value_type = Option<PageSize>, inline)]
    page_size: Option<u32>,
    /// `next_page_token` of the previous page. Not for streams.
    page_token: Option<String>,
}

impl EventQuery {
    /// # Errors
    /// `Invalid` for a condition with too many values.
    fn to_filter(&self) -> Result<EventFilter, Problem> {
        let filter = EventFilter {
            kinds: self.kind.clone(),
            agents: self.agent.clone(),
            domains: self.domain.clone(),
            collections: self.collection.clone(),
            search: self.search,
            account: self.account.clone(),
            since: self.since,
            until: self.until,
        };
        filter.check_value_counts()?;
        Ok(filter)
    }

    /// Refuses what only pages have: streams follow what happens next.
    fn check_stream(&self) -> Result<(), Problem> {
        let of_pages = [
            ("/page_size", self.page_size.is_some()),
            ("/page_token", self.page_token.is_some()),
            ("/account", self.account.is_some()),
            ("/since", self.since.is_some()),
            ("/until", self.until.is_some()),
            ("/newest_first", self.newest_first),
        ];
        match of_pages.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((pointer, _)) => Err(Problem::invalid(
                *pointer,
                "This parameter is for pages. Leave it out of a stream.",
            )),
        }
    }
}

/// List events, oldest first
///
/// With a filter, a page may have fewer entries than asked for, even none, while `next_page_token` is set: one request
/// looks through 50,000 events at most and, by domain, collection or search, at the agents of 2,000.
///
/// With `Accept: text/event-stream` the response is a stream that stays open until the client closes it. It starts
/// after `Last-Event-ID`, otherwise after `after`.
#[utoipa::path(
    params(EventQuery, ("Last-Event-ID" = Option<i64>, Header,
    description = "Sequence number after which a stream continues")),
    responses((status = 200, description = "A page of events, or a stream of them", content(
        (EventList = "application/json"),
        (String = "text/event-stream"),
    )))
)]
#[get("/v1/events")]
pub async fn event_list(
    request: HttpRequest,
    caller: Require<ReadEvents>,
    query: Query<EventQuery>,
    state: web::Data<ServerState>,
) -> HandlerResult {
    let filter = query.0.to_filter()?;
    // Only streams use `Last-Event-ID`, but an invalid number is always rejected.
    let last_id = last_event_id(&request)?;
    if !accepts_media_type(&request, "text/event-stream") {
        let wanted = EventListQuery {
            after: query.0.after,
            filter,
            newest_first: query.0.newest_first,
        };
        let page = PageRequest {
            page_size: query.0.page_size,
            page_token: query.0.page_token,
        };
        let events = events::event_list(&state.context, &caller, &wanted, &page).await?;
        return response::json_response(StatusCode::OK, &events);
    }
    query.0.check_stream()?;
    let position = last_id.or(query.0.after).unwrap_or(0);
    let pointer = last_id.map_or("/after", |_| "/Last-Event-ID");
    events::require_existing_position(&state.context, position, pointer).await?;
    stream_events(&request, caller.caller, (position, filter), &state)
}

/// Rebuild the search index
#[utoipa::path(
    tag = "operation",
    responses((status = 202, description = "The rebuild is scheduled; the current index serves searches until it is \
    finished"))
)]
#[post("/v1/reindex")]
pub async fn reindex(caller: Require<Administer>) -> HandlerResult {
    events::request_reindex(&caller.context, &caller).await?;
    Ok(HttpResponse::Accepted().finish())
}

fn last_event_id(request: &HttpRequest) -> Result<Option<i64>, Problem> {
    let Some(id) = request.headers().get("last-event-id") else {
        return Ok(None);
    };
    let id = id.to_str().ok().and_then(|id| id.trim().parse().ok());
    id.map(Some).ok_or_else(|| {
        Problem::new(
            &problem_kinds::INVALID_REQUEST,
            "`Last-Event-ID` must be the sequence number of an event.",
        )
    })
}

fn stream_events(
    request: &HttpRequest,
    caller: Caller,
    (position, filter): (i64, EventFilter),
    state: &web::Data<ServerState>,
) -> HandlerResult {
    let mut response = HttpResponse::Ok();
    response
        .insert_header((
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream"),
        ))
        .insert_header((header::CACHE_CONTROL, HeaderValue::from_static("no-store")));
    if HeadRequest::is_set(request) {
        return Ok(response.finish());
    }
    let permit = state.stream_limiter.acquire(&caller)?;
    let event_stream = EventStream {
        context: Arc::clone(&state.context),
        caller,
        token: bearer_token(request)?.map(str::to_owned),
        position,
        filter,
        signal: state.context.event_signal(),
        shutdown: state.shutdown.clone(),
        is_started: false,
        _permit: permit,
    };
    let mut response = response.streaming(event_stream.into_stream());
    // A compressor would buffer events.
    prevent_body_changes(response.headers_mut());
    Ok(response)
}

struct EventStream {
    context: Arc<AppContext>,
    caller: Caller,
    token: Option<String>,
    position: i64,
    filter: EventFilter,
    signal: watch::Receiver<i64>,
    shutdown: CancellationToken,
    is_started: bool,
    _permit: StreamPermit,
}

impl EventStream {
    fn into_stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        futures::stream::unfold(self, |mut event_stream| async move {
            let shutdown = event_stream.shutdown.clone();
            let part = shutdown
                .run_until_cancelled(event_stream.next_frames())
                .await
                .flatten()?;
            Some((Ok(part), event_stream))
        })
    }

    /// Next frames of the stream; `None` if the stream ends. Clients resume with `Last-Event-ID`.
    async fn next_frames(&mut self) -> Option<Bytes> {
        if !self.is_started {
            self.is_started = true;
            // Sent immediately, so that the caller sees that the stream is open.
            return Some(Bytes::from_static(b"retry: 3000\n\n"));
        }
        // Mark the signal as seen before reading, so that a change during the read wakes the next wait.
        self.signal.borrow_and_update();
        loop {
            let position = &mut self.position;
            let (caller, filter) = (&self.caller, &self.filter);
            let events =
                load_events_after(&self.context, caller, filter, position, STREAM_BATCH).await;
            let events = events
                .inspect_err(|error| tracing::warn!(%error, internal = error.internal, "an event stream ends"))
                .ok()?;
            // After reading and before sending: data read while a token expires must not be sent.
            self.reauthenticate().await?;
            if !events.is_empty() {
                return Some(Bytes::from(
                    events.iter().map(format_sse_event).collect::<String>(),
                ));
            }
            if !self.wait_for_events().await? {
                return Some(Bytes::from_static(b": nothing new\n\n"));
            }
        }
    }

    /// Waits for a signal and returns `true`, or `false` after an idle time; `None` if the stream ends.
    async fn wait_for_events(&mut self) -> Option<bool> {
        for _ in 0..CHECKS_PER_KEEPALIVE {
            match tokio::time::timeout(TOKEN_CHECK_INTERVAL, self.signal.changed()).await {
                Ok(Ok(())) => return Some(true),
                Ok(Err(_)) => return None,
                Err(_) => self.reauthenticate().await?,
            }
        }
        Some(false)
    }

    /// Checks the caller again. A revoked or expired token ends the stream, and so does an account that is disabled or
    /// may no longer read events.
    async fn reauthenticate(&mut self) -> Option<()> {
        if let Some(token) = &self.token {
            self.caller = authenticate_token(&self.context, token).await.ok()?;
        }
        self.caller
            .require_permission(Permission::ReadEvents)
            .ok()?;
        Some(())
    }
}

/// Formats an event as a stream frame. Serialized JSON has no line breaks.
fn format_sse_event(event: &Event) -> String {
    let data = serde_json::to_string(event).unwrap_or_default();
    format!("id: {}\nevent: {}\ndata: {data}\n\n", event.seq, event.kind)
}
