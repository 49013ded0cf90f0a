//! The interface for HTTP+JSON, of 1.0 (section 11). Its address is `/a2a/v1`; the same paths exist under `/a2a`.

use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::fault::{Fault, FaultKind};
use super::rpc_routes::no_push;
use super::stream::{Form, follow, place};
use super::version::{Version, version};
use super::{incoming, listing, sending, tasks, wire};
use crate::error::AppError;
use crate::http::auth::Anyone;
use crate::http::body::UnreadBody;
use crate::http::problem::Problem;
use crate::http::state::State;

/// The media type of bodies (1.0.1 section 11.1).
const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json");

/// Sends a message.
pub(crate) async fn message_send(
    request: HttpRequest,
    caller: Anyone,
    body: UnreadBody,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let sent = match message(&request, body, &state).await? {
        Ok(incoming) => {
            let history = incoming.wants.history;
            let task = sending::send(&state.context, &caller.0, incoming).await;
            task.map(|task| wire::object([("task", wire::task(task, history, true))]))
        }
        Err(fault) => Err(fault),
    };
    Ok(written(sent))
}

/// Sends a message, and streams what comes of it.
pub(crate) async fn message_stream(
    request: HttpRequest,
    caller: Anyone,
    body: UnreadBody,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let incoming = match message(&request, body, &state).await? {
        Ok(incoming) => incoming,
        Err(fault) => return Ok(fault.rest()),
    };
    let history = incoming.wants.history;
    let streamed = async {
        let place = place(&state, &caller.0)?;
        let task = sending::begin(&state.context, &caller.0, incoming).await?;
        Ok::<_, Fault>(follow(
            &request,
            &state,
            &caller.0,
            task,
            history,
            Form::Rest,
            place,
        ))
    };
    Ok(streamed.await.unwrap_or_else(|fault| fault.rest()))
}

/// Lists the caller's tasks.
pub(crate) async fn task_list(
    request: HttpRequest,
    caller: Anyone,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let listed = match demand(&request, &state)? {
        Ok(()) => listing::list(&state.context, &caller.0, &query(&request)).await,
        Err(fault) => Err(fault),
    };
    Ok(written(listed))
}

/// Cancels a task.
pub(crate) async fn task_cancel(
    request: HttpRequest,
    caller: Anyone,
    body: UnreadBody,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    // It says nothing that is not in the path.
    body.read(state.context.config().limits.json_bytes).await?;
    let cancelled = match demand(&request, &state)? {
        Ok(()) => match named(&request) {
            Ok(task) => tasks::cancel(&state.context, &caller.0, task).await,
            Err(fault) => Err(fault),
        },
        Err(fault) => Err(fault),
    };
    Ok(written(cancelled.map(|task| wire::task(task, None, true))))
}

/// Streams what happens to a task.
pub(crate) async fn task_subscribe(
    request: HttpRequest,
    caller: Anyone,
    body: UnreadBody,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    body.read(state.context.config().limits.json_bytes).await?;
    if let Err(fault) = demand(&request, &state)? {
        return Ok(fault.rest());
    }
    let streamed = async {
        let task = tasks::open(&state.context, &caller.0, named(&request)?).await?;
        let place = place(&state, &caller.0)?;
        Ok::<_, Fault>(follow(
            &request,
            &state,
            &caller.0,
            task,
            None,
            Form::Rest,
            place,
        ))
    };
    Ok(streamed.await.unwrap_or_else(|fault| fault.rest()))
}

/// Gets a task.
pub(crate) async fn task_get(
    request: HttpRequest,
    caller: Anyone,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let got = async {
        let history = incoming::history_length(&query(&request))?;
        let task = tasks::load(&state.context, &caller.0, named(&request)?).await?;
        Ok(wire::task(task, history, true))
    };
    let got = match demand(&request, &state)? {
        Ok(()) => got.await,
        Err(fault) => Err(fault),
    };
    Ok(written(got))
}

/// There are no push notifications.
pub(crate) async fn task_push(
    request: HttpRequest,
    _caller: Anyone,
    body: UnreadBody,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    body.read(state.context.config().limits.json_bytes).await?;
    let refused = demand(&request, &state)?.err().unwrap_or_else(no_push);
    Ok(refused.rest())
}

/// There is no extended card.
pub(crate) async fn extended_card(
    request: HttpRequest,
    _caller: Anyone,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let none = || Fault::new(FaultKind::Unsupported, "This agent has no extended card.");
    let refused = demand(&request, &state)?.err().unwrap_or_else(none);
    Ok(refused.rest())
}

/// Refuses every version but 1.0, and everything where the registry is no agent.
fn demand(request: &HttpRequest, state: &State) -> Result<Result<(), Fault>, Problem> {
    if !state.context.config().a2a.enabled {
        return Err(AppError::no_address().into());
    }
    Ok(match version(request) {
        Ok(Version::V1) => Ok(()),
        Ok(Version::V03) => Err(Fault::new(
            FaultKind::Version,
            "Only 1.0 is spoken over HTTP+JSON: send `A2A-Version: 1.0`.",
        )),
        Err(fault) => Err(fault),
    })
}

/// Reads the message of a request.
async fn message(
    request: &HttpRequest,
    body: UnreadBody,
    state: &State,
) -> Result<Result<incoming::Incoming, Fault>, Problem> {
    let demanded = demand(request, state)?;
    let is_json = body.is_json();
    let bytes = body.read(state.context.config().limits.json_bytes).await?;
    let read = || {
        demanded?;
        if !is_json {
            return Err(Fault::new(
                FaultKind::ContentType,
                "Send JSON as `application/a2a+json`.",
            ));
        }
        let params: Map<String, Value> = serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("The body is not a JSON object: {error}.");
            Fault::new(FaultKind::NotJson, message)
        })?;
        incoming::read(&params, Version::V1)
    };
    Ok(read())
}

/// The parameters of the query.
fn query(request: &HttpRequest) -> Map<String, Value> {
    let pairs = form_urlencoded::parse(request.query_string().as_bytes());
    pairs
        .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
        .filter(|(_, value)| value != "")
        .collect()
}

/// The identifier of the task in the path, where the path can be read.
fn named(request: &HttpRequest) -> Result<&str, Fault> {
    if !is_escaped_well(request.uri().path()) {
        return Err(Fault::new(
            FaultKind::InvalidRequest,
            "The path has a % that two hexadecimal digits do not follow, or bytes that are not UTF-8.",
        ));
    }
    Ok(request.match_info().get("task").unwrap_or_default())
}

/// Whether every escape of a path can be read. The router leaves the others as they are.
fn is_escaped_well(path: &str) -> bool {
    let mut pieces = path.split('%');
    pieces.next();
    let digits = |piece: &str| {
        let digits = piece.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    pieces.all(digits) && percent_decode_str(path).decode_utf8().is_ok()
}

fn written(result: Result<Value, Fault>) -> HttpResponse {
    match result {
        Ok(body) => HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, A2A_JSON))
            .insert_header((header::CACHE_CONTROL, HeaderValue::from_static("no-store")))
            .body(body.to_string()),
        Err(fault) => fault.rest(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_that_cannot_be_read_are_seen() {
        for (path, expected) in [
            ("/a2a/v1/tasks/x", true),
            ("/a2a/v1/tasks/%7ax", true),
            ("/a2a/v1/tasks/%C3%A9", true),
            ("/a2a/v1/tasks/%zz", false),
            ("/a2a/v1/tasks/x%", false),
            ("/a2a/v1/tasks/x%4", false),
            ("/a2a/v1/tasks/%FF", false),
        ] {
            assert_eq!(is_escaped_well(path), expected, "{path}");
        }
    }
}
