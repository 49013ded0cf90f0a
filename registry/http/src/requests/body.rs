//! Request bodies, read with limits on size and time.

use std::future::{Ready, ready};
use std::time::Duration;

use a2a_card::MAX_CARD_BYTES;
use a2a_registry_core::config::LimitsConfig;
use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header::{self, HeaderMap};
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use bytes::{Bytes, BytesMut};
use futures::future::LocalBoxFuture;
use futures::{FutureExt, StreamExt};
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::problems::problem::Problem;
use crate::problems::problem_kinds;
use crate::requests::auth::recheck_authorization;
use crate::requests::server_state::ServerState;
use crate::requests::whole_numbers::normalize_integers;

/// JSON body as a `T`, at most `limits.json_bytes` bytes.
#[derive(Debug, Clone)]
pub struct JsonBody<T>(pub T);

/// Like [`JsonBody`], of at most `BYTES` bytes regardless of `limits.json_bytes`.
#[derive(Debug, Clone)]
pub struct LimitedJsonBody<T, const BYTES: usize>(pub T);

/// Like [`JsonBody`], but optional: a request without a body gets the default.
#[derive(Debug, Clone)]
pub struct OptionalJsonBody<T>(pub T);

/// Agent card bytes as sent: JSON by media type, at most [`MAX_CARD_BYTES`].
#[derive(Debug, Clone)]
pub struct CardBody(pub Bytes);

/// A body of any type that is not read yet, so that the handler can check the headers first.
pub struct PendingBody {
    request: HttpRequest,
    payload: Payload,
    length: Option<usize>,
    limits: LimitsConfig,
}

impl FromRequest for PendingBody {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        ready(Ok(Self::from_payload(request, payload)))
    }
}

impl<T: DeserializeOwned + 'static> FromRequest for JsonBody<T> {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let body = PendingBody::from_payload(request, payload);
        let limit = body.limits.json_bytes;
        async move { parse_json(&body.read_json(limit).await?).map(Self) }.boxed_local()
    }
}

impl<T: DeserializeOwned + 'static, const BYTES: usize> FromRequest for LimitedJsonBody<T, BYTES> {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let body = PendingBody::from_payload(request, payload);
        async move { parse_json(&body.read_json(BYTES).await?).map(Self) }.boxed_local()
    }
}

impl<T: DeserializeOwned + Default + 'static> FromRequest for OptionalJsonBody<T> {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let media_type_check = require_json_media_type(request);
        let body = PendingBody::from_payload(request, payload);
        async move {
            let limit = body.limits.json_bytes;
            let bytes = body.read_and_reauthenticate(limit).await?;
            if bytes.is_empty() {
                return Ok(Self(T::default()));
            }
            media_type_check?;
            parse_json(&bytes).map(Self)
        }
        .boxed_local()
    }
}

impl FromRequest for CardBody {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let body = PendingBody::from_payload(request, payload);
        async move { Ok(Self(body.read_json(MAX_CARD_BYTES).await?.freeze())) }.boxed_local()
    }
}

fn require_json_media_type(request: &HttpRequest) -> Result<(), Problem> {
    if is_plain_json(request, request.headers()) {
        return Ok(());
    }
    Err(Problem::new(
        &problem_kinds::WRONG_MEDIA_TYPE,
        "Send the body as JSON, with `Content-Type: application/json` and without content coding.",
    ))
}

fn is_plain_json(request: &HttpRequest, headers: &HeaderMap) -> bool {
    let plain = headers
        .get(header::CONTENT_ENCODING)
        .is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    let essence = request.content_type();
    plain
        && (essence.eq_ignore_ascii_case("application/json")
            || essence.to_ascii_lowercase().ends_with("+json"))
}

impl PendingBody {
    /// Whether the headers declare JSON without content coding.
    pub fn is_json(&self) -> bool {
        is_plain_json(&self.request, self.request.headers())
    }

    pub fn from_payload(request: &HttpRequest, payload: &mut Payload) -> Self {
        let length = request.headers().get(header::CONTENT_LENGTH);
        let state = request.app_data::<actix_web::web::Data<ServerState>>();
        Self {
            request: request.clone(),
            payload: payload.take(),
            length: length.and_then(|length| length.to_str().ok()?.parse().ok()),
            limits: state.map_or_else(LimitsConfig::default, |state| {
                state.context.config().limits.clone()
            }),
        }
    }

    /// Reads the whole body: at most `limit` bytes, in at most `limits.body_seconds`. Authenticates the caller again
    /// afterwards, and rejects it if its permissions have changed.
    pub async fn read_and_reauthenticate(self, limit: usize) -> Result<BytesMut, Problem> {
        let seconds = self.limits.body_seconds;
        let request = self.request.clone();
        let bytes = tokio::time::timeout(Duration::from_secs(seconds), self.read_bytes(limit))
            .await
            .unwrap_or_else(|_| {
                Err(Problem::new(
                    &problem_kinds::REQUEST_TIMEOUT,
                    format!("The body was not complete after {seconds} seconds."),
                ))
            })?;
        recheck_authorization(&request).await?;
        Ok(bytes)
    }

    /// Reads a body that must be JSON.
    async fn read_json(self, limit: usize) -> Result<BytesMut, Problem> {
        require_json_media_type(&self.request)?;
        self.read_and_reauthenticate(limit).await
    }

    async fn read_bytes(mut self, limit: usize) -> Result<BytesMut, Problem> {
        if self.length.is_some_and(|length| length > limit) {
            return Err(too_large_problem(limit));
        }
        let mut bytes = BytesMut::new();
        while let Some(chunk) = self.payload.next().await {
            let chunk = chunk.map_err(|error| body_error(&error, limit))?;
            if bytes.len() + chunk.len() > limit {
                return Err(too_large_problem(limit));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}

fn too_large_problem(limit: usize) -> Problem {
    Problem::new(
        &problem_kinds::TOO_LARGE,
        format!("The body of this request must have at most {limit} bytes."),
    )
}

fn body_error(error: &PayloadError, limit: usize) -> Problem {
    match error {
        PayloadError::Overflow => too_large_problem(limit),
        _ => Problem::new(
            &problem_kinds::INVALID_REQUEST,
            "The body ended before it was complete.",
        ),
    }
}

/// Parses JSON as a `T`.
pub fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    reject_nul(bytes)?;
    // Every body must be an object; serde would also accept an array of its members in order.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(Problem::invalid(
            "",
            "This must be an object, not an array.",
        ));
    }
    let bytes = &*normalize_integers(bytes);
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let inner = error.inner();
        if inner.is_data() {
            let pointer = json_pointer_from_path(error.path());
            return Problem::invalid(pointer, strip_error_position(&inner.to_string()));
        }
        if serde_json::from_slice::<IgnoredAny>(bytes).is_ok() {
            // The JSON is valid, but an enum value has the wrong type.
            let pointer = json_pointer_from_path(error.path());
            return Problem::invalid(pointer, "a value of this type is not allowed here");
        }
        Problem::new(
            &problem_kinds::INVALID_REQUEST,
            format!("The body is not JSON: {inner}."),
        )
    })?;
    json.end().map_err(|error| {
        Problem::new(
            &problem_kinds::INVALID_REQUEST,
            format!("The body is not JSON: {error}."),
        )
    })?;
    Ok(value)
}

/// Rejects U+0000, which no text needs and not every database can store. In JSON it is always an escape.
fn reject_nul(bytes: &[u8]) -> Result<(), Problem> {
    let is_escape = |at: usize| {
        let backslashes = bytes[..=at]
            .iter()
            .rev()
            .take_while(|byte| **byte == b'\\')
            .count();
        backslashes % 2 == 1
    };
    let has_nul = bytes
        .windows(6)
        .enumerate()
        .any(|(at, part)| part == b"\\u0000" && is_escape(at));
    if has_nul {
        return Err(Problem::new(
            &problem_kinds::INVALID_REQUEST,
            "The body must not contain U+0000.",
        ));
    }
    Ok(())
}

/// Removes line and column from a message, because the pointer is more precise.
fn strip_error_position(text: &str) -> &str {
    text.rfind(" at line ").map_or(text, |at| &text[..at])
}

pub fn json_pointer(member: &str) -> String {
    format!("/{}", member.replace('~', "~0").replace('/', "~1"))
}

/// RFC 6901 pointer to a value.
pub fn json_pointer_from_path(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let segments = path.iter().map(|segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => json_pointer(key),
        Segment::Enum { variant } => json_pointer(variant),
        Segment::Unknown => String::new(),
    });
    segments.collect()
}
