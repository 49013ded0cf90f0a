//! Request bodies: the one reader, limited in size and time.

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
use crate::requests::auth::judge_again;
use crate::requests::state::State;
use crate::requests::whole_numbers::plain_integers;

/// The body as a `T`: JSON, at most `limits.json_bytes` bytes.
#[derive(Debug, Clone)]
pub struct Body<T>(pub T);

/// As [`Body`], of at most `BYTES` bytes whatever `limits.json_bytes` says.
#[derive(Debug, Clone)]
pub struct BodyUpTo<T, const BYTES: usize>(pub T);

/// As [`Body`], but optional: a request without a body gets the default.
#[derive(Debug, Clone)]
pub struct OptionalBody<T>(pub T);

/// The bytes of an agent card as they were sent: JSON by its media type, at most [`MAX_CARD_BYTES`].
#[derive(Debug, Clone)]
pub struct CardBody(pub Bytes);

/// A body of any kind that is not read yet, so that the handler can check the headers first.
pub struct UnreadBody {
    request: HttpRequest,
    payload: Payload,
    length: Option<usize>,
    limits: LimitsConfig,
}

impl FromRequest for UnreadBody {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        ready(Ok(Self::take(request, payload)))
    }
}

impl<T: DeserializeOwned + 'static> FromRequest for Body<T> {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let body = UnreadBody::take(request, payload);
        let limit = body.limits.json_bytes;
        async move { parse(&body.read_json(limit).await?).map(Self) }.boxed_local()
    }
}

impl<T: DeserializeOwned + 'static, const BYTES: usize> FromRequest for BodyUpTo<T, BYTES> {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let body = UnreadBody::take(request, payload);
        async move { parse(&body.read_json(BYTES).await?).map(Self) }.boxed_local()
    }
}

impl<T: DeserializeOwned + Default + 'static> FromRequest for OptionalBody<T> {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let json = check_media_type(request);
        let body = UnreadBody::take(request, payload);
        async move {
            let limit = body.limits.json_bytes;
            let bytes = body.read(limit).await?;
            if bytes.is_empty() {
                return Ok(Self(T::default()));
            }
            json?;
            parse(&bytes).map(Self)
        }
        .boxed_local()
    }
}

impl FromRequest for CardBody {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let body = UnreadBody::take(request, payload);
        async move { Ok(Self(body.read_json(MAX_CARD_BYTES).await?.freeze())) }.boxed_local()
    }
}

fn check_media_type(request: &HttpRequest) -> Result<(), Problem> {
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

impl UnreadBody {
    /// Whether the headers declare JSON without content coding.
    pub fn is_json(&self) -> bool {
        is_plain_json(&self.request, self.request.headers())
    }

    pub fn take(request: &HttpRequest, payload: &mut Payload) -> Self {
        let length = request.headers().get(header::CONTENT_LENGTH);
        let state = request.app_data::<actix_web::web::Data<State>>();
        Self {
            request: request.clone(),
            payload: payload.take(),
            length: length.and_then(|length| length.to_str().ok()?.parse().ok()),
            limits: state.map_or_else(LimitsConfig::default, |state| {
                state.context.config().limits.clone()
            }),
        }
    }

    /// Reads the whole body: at most `limit` bytes, in at most `limits.body_seconds`. The caller is authenticated again
    /// afterwards, and refused if its permissions have changed by then.
    pub async fn read(self, limit: usize) -> Result<BytesMut, Problem> {
        let seconds = self.limits.body_seconds;
        let request = self.request.clone();
        let bytes = tokio::time::timeout(Duration::from_secs(seconds), self.collect(limit))
            .await
            .unwrap_or_else(|_| {
                Err(Problem::new(
                    &problem_kinds::REQUEST_TIMEOUT,
                    format!("The body was not complete after {seconds} seconds."),
                ))
            })?;
        judge_again(&request).await?;
        Ok(bytes)
    }

    /// Reads a body that has to be JSON.
    async fn read_json(self, limit: usize) -> Result<BytesMut, Problem> {
        check_media_type(&self.request)?;
        self.read(limit).await
    }

    async fn collect(mut self, limit: usize) -> Result<BytesMut, Problem> {
        if self.length.is_some_and(|length| length > limit) {
            return Err(too_large(limit));
        }
        let mut bytes = BytesMut::new();
        while let Some(chunk) = self.payload.next().await {
            let chunk = chunk.map_err(|error| broken(&error, limit))?;
            if bytes.len() + chunk.len() > limit {
                return Err(too_large(limit));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}

fn too_large(limit: usize) -> Problem {
    Problem::new(
        &problem_kinds::TOO_LARGE,
        format!("The body of this request may hold {limit} bytes at most."),
    )
}

fn broken(error: &PayloadError, limit: usize) -> Problem {
    match error {
        PayloadError::Overflow => too_large(limit),
        _ => Problem::new(
            &problem_kinds::INVALID_REQUEST,
            "The body ended before it was complete.",
        ),
    }
}

/// Reads JSON as a `T`.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    refuse_nul(bytes)?;
    // Every body is an object; serde would also accept an array of its members in order.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(Problem::invalid(
            "",
            "This must be an object, not an array.",
        ));
    }
    let bytes = &*plain_integers(bytes);
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let inner = error.inner();
        if inner.is_data() {
            let pointer = path_pointer(error.path());
            return Problem::invalid(pointer, without_position(&inner.to_string()));
        }
        if serde_json::from_slice::<IgnoredAny>(bytes).is_ok() {
            // Still valid JSON: one of several words was expected, and something else was found.
            let pointer = path_pointer(error.path());
            return Problem::invalid(pointer, "a value of this type does not belong here");
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

/// Refuses U+0000, which no text here needs and not every database can store. In JSON it can only be an escape.
fn refuse_nul(bytes: &[u8]) -> Result<(), Problem> {
    let escaped = |at: usize| {
        let backslashes = bytes[..=at]
            .iter()
            .rev()
            .take_while(|byte| **byte == b'\\')
            .count();
        backslashes % 2 == 1
    };
    let found = bytes
        .windows(6)
        .enumerate()
        .any(|(at, part)| part == b"\\u0000" && escaped(at));
    if found {
        return Err(Problem::new(
            &problem_kinds::INVALID_REQUEST,
            "The body holds U+0000.",
        ));
    }
    Ok(())
}

/// The message without line and column: the pointer is more precise.
fn without_position(text: &str) -> &str {
    text.rfind(" at line ").map_or(text, |at| &text[..at])
}

pub fn pointer(member: &str) -> String {
    format!("/{}", member.replace('~', "~0").replace('/', "~1"))
}

/// RFC 6901 pointer to a value.
pub fn path_pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let segments = path.iter().map(|segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => pointer(key),
        Segment::Enum { variant } => pointer(variant),
        Segment::Unknown => String::new(),
    });
    segments.collect()
}
