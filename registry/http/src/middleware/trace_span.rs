//! The span of a request in traces, which continues the trace of the caller.

use a2a_crawler::trace_spans::TRACE_TARGET;
use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use opentelemetry::Context;
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState,
};
use tracing::Span;
use tracing::field::{Empty, display};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use uuid::Uuid;

use crate::middleware::request_id::TraceParent;

/// Path parameter with the id of an agent.
const AGENT_PARAMETER: &str = "agent";

/// The ids of a span in its trace, in the form of a `traceparent`.
#[derive(Debug)]
pub(crate) struct SpanIds {
    pub trace_id: String,
    pub span_id: String,
}

/// Starts the span of a request. It costs nothing unless traces are exported.
pub(crate) fn start_trace_span(headers: &HeaderMap, method: &'static str) -> Span {
    let span = tracing::trace_span!(
        target: TRACE_TARGET,
        "request",
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = Empty,
        http.response.status_code = Empty,
        agent = Empty,
    );
    if !span.is_disabled()
        && let Some(parent) = TraceParent::from_headers(headers).and_then(to_remote_context)
    {
        // This fails only if nothing exports the span.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
    span
}

/// The caller's span. Its sampling flag is not read: the trace id decides.
fn to_remote_context(parent: TraceParent<'_>) -> Option<SpanContext> {
    let trace_id = TraceId::from_hex(parent.trace_id).ok()?;
    let span_id = SpanId::from_hex(parent.parent_id).ok()?;
    let (flags, state) = (TraceFlags::SAMPLED, TraceState::default());
    Some(SpanContext::new(trace_id, span_id, flags, true, state))
}

/// The ids of a span that may be exported, so that log lines name the same ones; `None` for others.
pub(crate) fn span_ids(span: &Span) -> Option<SpanIds> {
    if span.is_disabled() {
        return None;
    }
    let context = span.context();
    let span = context.span();
    let ids = span.span_context();
    ids.is_valid().then(|| SpanIds {
        trace_id: ids.trace_id().to_string(),
        span_id: ids.span_id().to_string(),
    })
}

/// Adds the response to the span of its request, and names it by method and route. The path is not recorded: it may
/// have a secret, and any text.
pub(crate) fn record_response(
    span: &Span,
    request: &HttpRequest,
    (method, route): (&str, &str),
    status: StatusCode,
) {
    if span.is_disabled() {
        return;
    }
    span.record("http.route", route);
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    let agent = request.match_info().get(AGENT_PARAMETER);
    if let Some(agent) = agent.and_then(|text| Uuid::parse_str(text).ok()) {
        span.record("agent", display(agent));
    }
    // The route is known only now, when the span has begun.
    span.context()
        .span()
        .update_name(format!("{method} {route}"));
}
