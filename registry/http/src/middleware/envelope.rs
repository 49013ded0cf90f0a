//! Middleware around every request: request id and span, `HEAD`, problem documents, headers, metrics.
//!
//! It is one thin layer instead of several: for a cached card, each additional layer would cost as much as the card.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready as poll_ready};

use a2a_registry_core::commit::audit_log::AUDIT_LOG;
use a2a_registry_core::metrics::{Metrics, Stopwatch, WorkerRequestMetrics};
use actix_web::body::{BodySize, BoxBody, EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform, forward_ready};
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{Error, HttpMessage, HttpRequest, HttpResponse};
use pin_project_lite::pin_project;
use tracing::field::Empty;
use tracing::{Level, Span};

use crate::answers::catalog_links::CatalogLinkHeader;
use crate::answers::content_security_policy::default_csp;
use crate::answers::route_table::RouteTable;
use crate::limits::client_address::client_address;
use crate::middleware::cors::{CorsPolicy, is_api_path};
use crate::middleware::request_id::{RequestIdGenerator, TraceParent, X_REQUEST_ID};
use crate::middleware::trace_span::{record_response, span_ids, start_trace_span};
use crate::problems::problem::{PROBLEM_JSON, Problem};
use crate::problems::problem_kinds;
use crate::problems::protocol_errors::ProtocolErrorFormat;
use crate::requests::cookies::{self, NewCookie, Uncacheable};
use crate::requests::server_state::server_state;
use crate::requests::visitor::PageRejection;

const NO_STORE: HeaderValue = HeaderValue::from_static("private, no-store");
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");
/// Prevents the compression layer from changing the bytes. The middleware removes it.
const UNTOUCHED_ENCODING: HeaderValue = HeaderValue::from_static("identity");

/// Paths that go on with a secret.
const SECRET_PREFIXES: [&str; 2] = ["/feeds/", "/mail/"];

/// The target of the log line for each request.
const ACCESS_LOG: &str = "access";

static REQUEST_IDS: LazyLock<RequestIdGenerator> = LazyLock::new(RequestIdGenerator::new);

/// Marks a request that came in as `HEAD` and is handled as `GET`.
#[derive(Debug, Clone, Copy)]
pub struct HeadRequest;

impl HeadRequest {
    /// Whether the request is a `HEAD`. The handler may still return a body of known length.
    pub fn is_set(request: &HttpRequest) -> bool {
        request.extensions().contains::<Self>()
    }
}

/// Renders an error as a page, for a client that accepts pages.
#[derive(Debug, Clone, Copy)]
pub struct ErrorPageRenderer(pub fn(&HttpRequest, &Problem) -> HttpResponse);

/// Marks a response whose bytes no layer may change.
pub fn prevent_body_changes(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_ENCODING, UNTOUCHED_ENCODING);
}

#[derive(Debug, Clone)]
pub struct RequestMiddleware {
    metrics: Arc<Metrics>,
}

impl RequestMiddleware {
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics }
    }
}

impl<S, B> Transform<S, ServiceRequest> for RequestMiddleware
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Transform = RequestMiddlewareService<S>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, service: S) -> Self::Future {
        let metrics = WorkerRequestMetrics::new(Arc::clone(&self.metrics));
        ready(Ok(RequestMiddlewareService {
            service,
            metrics: Rc::new(metrics),
        }))
    }
}

#[derive(Debug)]
pub struct RequestMiddlewareService<S> {
    service: S,
    metrics: Rc<WorkerRequestMetrics>,
}

impl<S, B> Service<ServiceRequest> for RequestMiddlewareService<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Future = RequestMiddlewareFuture<S::Future>;

    forward_ready!(service);

    fn call(&self, mut request: ServiceRequest) -> Self::Future {
        let watch = Stopwatch::start();
        let id = REQUEST_IDS.for_request(request.headers());
        let method = method_label(request.method());
        let cors = CorsPolicy::for_request(&request);
        let trace = start_trace_span(request.headers(), method);
        let _traced = trace.clone().entered();
        let span = start_request_span(&request, &id, &trace);
        if request.method() == Method::HEAD {
            // The server omits the body based on the method that it has read; this change does not affect it.
            request.head_mut().method = Method::GET;
            request.extensions_mut().insert(HeadRequest);
        }
        let in_flight = InFlightRequest::start(&self.metrics);
        let inner = {
            let _entered = span.enter();
            self.service.call(request)
        };
        RequestMiddlewareFuture {
            inner,
            seen: RequestMeta {
                watch,
                id,
                method,
                cors,
                in_flight,
                trace,
            },
            span,
        }
    }
}

#[derive(Debug)]
struct RequestMeta {
    watch: Stopwatch,
    id: HeaderValue,
    method: &'static str,
    cors: CorsPolicy,
    in_flight: InFlightRequest,
    /// The span of the request in traces, around that of its log lines.
    trace: Span,
}

pin_project! {
    #[derive(Debug)]
    pub struct RequestMiddlewareFuture<F> {
        #[pin]
        inner: F,
        seen: RequestMeta,
        span: Span,
    }
}

impl<F, B> Future for RequestMiddlewareFuture<F>
where
    F: Future<Output = Result<ServiceResponse<B>, Error>>,
    B: MessageBody + 'static,
{
    type Output = Result<ServiceResponse<EitherBody<B>>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let _traced = this.seen.trace.enter();
        let _entered = this.span.enter();
        let response = poll_ready!(this.inner.poll(context))?;
        Poll::Ready(Ok(this.seen.finish_response(response)))
    }
}

impl RequestMeta {
    fn finish_response<B: MessageBody + 'static>(
        &self,
        response: ServiceResponse<B>,
    ) -> ServiceResponse<EitherBody<B>> {
        let mut response = self.with_problem_document(response);
        let status = response.status();
        let cors = self.cors.after_authentication(response.request());
        let links = response.request().app_data::<CatalogLinkHeader>().copied();
        let headers = response.headers_mut();
        self.set_common_headers(status, cors, headers);
        if let Some(links) = links.filter(|_| has_html_content_type(headers)) {
            links.append_to(headers);
        }
        apply_session_headers(&mut response);
        if response.response().body().size() == BodySize::Stream
            && HeadRequest::is_set(response.request())
        {
            response = response
                .map_body(|_, _| EitherBody::right(BoxBody::new(actix_web::body::None::new())));
        }
        let route_table = response
            .request()
            .app_data::<&'static RouteTable>()
            .copied();
        let route = match (response.request().match_name(), route_table) {
            (Some(name), Some(addresses)) => addresses.handler_pattern(name).unwrap_or("page"),
            _ => "none",
        };
        self.in_flight
            .0
            .record_request(route, self.method, status.as_u16(), &self.watch);
        record_response(
            &self.trace,
            response.request(),
            (self.method, route),
            status,
        );
        tracing::debug!(
            target: ACCESS_LOG,
            status = status.as_u16(),
            route,
            milliseconds = self.watch.elapsed_seconds() * 1000.0,
            "answered"
        );
        response
    }

    /// Adds a problem document to every error, or a page if the path is outside of the API and the client accepts
    /// pages.
    fn with_problem_document<B: MessageBody + 'static>(
        &self,
        response: ServiceResponse<B>,
    ) -> ServiceResponse<EitherBody<B>> {
        let status = response.status();
        if !(status.is_client_error() || status.is_server_error()) || has_error_document(&response)
        {
            return response.map_into_left_body();
        }
        let dialects = response
            .request()
            .app_data::<&'static [ProtocolErrorFormat]>();
        let dialect =
            dialects.and_then(|all| ProtocolErrorFormat::for_path(all, response.request().path()));
        if dialect.is_some() && response.response().error().is_none() {
            // The handler has already rendered the error.
            return response.map_into_left_body();
        }
        let (request, response) = response.into_parts();
        let handler_problem = response.error().and_then(|error| {
            let refusal = error.as_error::<PageRejection>();
            let problem = refusal.and_then(PageRejection::problem);
            error.as_error::<Problem>().or(problem)
        });
        // A page that shows a refusal itself has logged it.
        handler_problem.into_iter().for_each(Problem::log_refusal);
        let default_problem;
        let problem = match handler_problem {
            Some(problem) => problem,
            None => {
                default_problem = problem_for_status(status, response.error());
                &default_problem
            }
        };
        self.log_server_error(&request, problem);
        // What fails on the way to the handler is a denial too.
        let denial = is_gateway_question(&request)
            .then(|| Problem::new(&problem_kinds::FORBIDDEN, problem.detail_with_pointer()));
        let problem = denial.as_ref().unwrap_or(problem);
        let page = request
            .app_data::<ErrorPageRenderer>()
            .filter(|_| accepts_media_type(&request, "text/html") && !is_api_path(request.path()));
        let response = match (dialect, page) {
            (Some(dialect), _) => (dialect.render)(&request, problem),
            (None, Some(ErrorPageRenderer(render))) => render(&request, problem),
            (None, None) => problem.to_response(request.uri().path()),
        };
        ServiceResponse::new(request, response).map_into_right_body()
    }

    fn log_server_error(&self, request: &HttpRequest, problem: &Problem) {
        if !problem.kind().status.is_server_error() {
            return;
        }
        let id = self.id.to_str().unwrap_or_default();
        let path = loggable_path(request.uri().path());
        let internal = problem.internal_text();
        if problem.kind().status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(
                request_id = id,
                method = self.method,
                path,
                internal,
                "{problem}"
            );
        } else {
            tracing::warn!(
                request_id = id,
                method = self.method,
                path,
                internal,
                "{problem}"
            );
        }
    }

    fn set_common_headers(&self, status: StatusCode, cors: CorsPolicy, headers: &mut HeaderMap) {
        headers.insert(X_REQUEST_ID, self.id.clone());
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
        headers.insert(header::REFERRER_POLICY, NO_REFERRER);
        if headers
            .get(header::CONTENT_ENCODING)
            .is_some_and(|coding| *coding == UNTOUCHED_ENCODING)
        {
            headers.remove(header::CONTENT_ENCODING);
        }
        if has_html_content_type(headers) && !headers.contains_key(header::CONTENT_SECURITY_POLICY)
        {
            headers.insert(header::CONTENT_SECURITY_POLICY, default_csp());
        }
        cors.set_headers(status, headers);
    }
}

/// Whether a gateway asks whether a call is allowed: it knows 200 and 403 alone.
fn is_gateway_question(request: &HttpRequest) -> bool {
    request.method() == Method::GET && request.path() == "/v1/decide"
}

/// Prevents caching of a response that depends on a session, and sets the new cookie of a rotated session.
fn apply_session_headers<B>(response: &mut ServiceResponse<B>) {
    let (is_uncacheable, cookie) = {
        let mut extensions = response.request().extensions_mut();
        (
            extensions.contains::<Uncacheable>(),
            extensions.remove::<NewCookie>(),
        )
    };
    let headers = response.headers_mut();
    if is_uncacheable {
        headers.insert(header::CACHE_CONTROL, NO_STORE);
    }
    // A cookie that the handler sets itself is newer.
    if let Some(NewCookie(cookie)) = cookie
        && !headers
            .get_all(header::SET_COOKIE)
            .any(cookies::is_session_cookie)
    {
        headers.append(header::SET_COOKIE, cookie);
    }
}

fn has_html_content_type(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

/// Whether a client accepts this media type by name: HTML, as browsers do when a person follows a link, or events.
pub(crate) fn accepts_media_type(request: &HttpRequest, kind: &str) -> bool {
    let accept = request.headers().get(header::ACCEPT);
    accept
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains(kind))
}

/// Whether an error already has its problem document, or its page if the client accepts pages.
fn has_error_document<B>(response: &ServiceResponse<B>) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if kind.is_some_and(|kind| kind.as_bytes() == PROBLEM_JSON.as_bytes()) {
        return true;
    }
    has_html_content_type(response.headers()) && accepts_media_type(response.request(), "text/html")
}

/// Problem for a library error, which has no problem document.
fn problem_for_status(status: StatusCode, error: Option<&Error>) -> Problem {
    let kind = problem_kinds::problem_kind_by_status(status);
    let detail = match error {
        Some(error) if status.is_client_error() => error.to_string(),
        _ => kind.title.to_owned(),
    };
    Problem::new(kind, detail)
}

/// Path for logs, without secrets.
fn loggable_path(path: &str) -> &str {
    let mut prefixes = SECRET_PREFIXES.into_iter();
    let secret = prefixes.find(|prefix| path.starts_with(prefix));
    secret.unwrap_or(path)
}

/// Request in progress, counted until it has a response or is dropped.
#[derive(Debug)]
struct InFlightRequest(Rc<WorkerRequestMetrics>);

impl InFlightRequest {
    fn start(metrics: &Rc<WorkerRequestMetrics>) -> Self {
        metrics.count_started_request();
        Self(Rc::clone(metrics))
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.count_finished_request();
    }
}

/// Creates the span of a request, which its log lines carry: for requests that may write if actions are logged, and
/// for all requests if each is logged. For a cached card a span would cost too much.
fn start_request_span(request: &ServiceRequest, id: &HeaderValue, trace: &Span) -> Span {
    macro_rules! request_span {
        ($target:expr, $level:expr) => {{
            let caller = TraceParent::from_headers(request.headers());
            let sent = span_ids(trace);
            let trace_id = sent.as_ref().map(|sent| sent.trace_id.as_str());
            let span_id = sent.as_ref().map(|sent| sent.span_id.clone());
            let request = request.request();
            let config = server_state(request).map(|state| state.context.config());
            let proxies = config.as_ref().map(|config| config.server.trusted_proxies.as_slice());
            let client = client_address(request, proxies.unwrap_or_default());
            tracing::span!(
                target: $target,
                $level,
                "request",
                request_id = id.to_str().unwrap_or_default(),
                method = request.method().as_str(),
                path = loggable_path(request.uri().path()),
                client = client.map(display),
                actor = Empty,
                token = Empty,
                session = Empty,
                issuer = Empty,
                trace_id = trace_id.or(caller.map(|caller| caller.trace_id)),
                parent_id = caller.map(|caller| caller.parent_id),
                span_id = span_id.unwrap_or_else(|| REQUEST_IDS.new_span_id()),
            )
        }};
    }
    if may_write(request) && tracing::enabled!(target: AUDIT_LOG, Level::INFO) {
        request_span!(AUDIT_LOG, Level::INFO)
    } else if tracing::enabled!(target: ACCESS_LOG, Level::DEBUG) {
        request_span!(ACCESS_LOG, Level::DEBUG)
    } else if tracing::enabled!(Level::DEBUG) {
        request_span!(module_path!(), Level::DEBUG)
    } else {
        Span::none()
    }
}

/// Whether a request may cause an action. With a credential a `GET` may too: an identity provider's answer signs in,
/// and an access token creates its account.
fn may_write(request: &ServiceRequest) -> bool {
    let headers = request.headers();
    !request.method().is_safe()
        || headers.contains_key(header::AUTHORIZATION)
        || headers.contains_key(header::COOKIE)
}

fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
