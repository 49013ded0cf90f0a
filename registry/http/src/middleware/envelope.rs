//! The middleware around every request: its id and span, `HEAD`, problem documents, headers, metrics.
//!
//! One thin layer instead of several: for a cached card, each further layer would cost as much as the card itself.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready as poll_ready};

use a2a_registry_core::metrics::{Metrics, Stopwatch, WorkerMetrics};
use actix_web::body::{BodySize, BoxBody, EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform, forward_ready};
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{Error, HttpMessage, HttpRequest, HttpResponse};
use pin_project_lite::pin_project;
use tracing::{Level, Span};

use crate::answers::allowed::Addresses;
use crate::answers::catalog_links::CatalogLinks;
use crate::answers::page_policy::usual_policy;
use crate::middleware::request_id::{RequestIds, TraceParent, X_REQUEST_ID};
use crate::problems::dialect_errors::DialectErrors;
use crate::problems::problem::{PROBLEM_JSON, Problem};
use crate::problems::problem_kinds;
use crate::requests::auth::ForeignAuthorization;
use crate::requests::cookies::{self, NewCookie, Personal};
use crate::requests::visitor::PageRefusal;

/// The headers that a browser may send with a `GET` from another site, without `Authorization`.
const CORS_HEADERS: HeaderValue = HeaderValue::from_static(
    "A2A-Extensions, A2A-Version, Accept, Cache-Control, Content-Type, If-None-Match, Traceparent, X-Request-Id",
);
const NOT_STORED: HeaderValue = HeaderValue::from_static("private, no-store");
const ANYONE: HeaderValue = HeaderValue::from_static("*");
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");
/// Keeps the compression layer from changing bytes that must stay as they are. It is removed here.
const UNTOUCHED: HeaderValue = HeaderValue::from_static("identity");

const FEEDS: &str = "/feeds/";

static REQUEST_IDS: LazyLock<RequestIds> = LazyLock::new(RequestIds::new);

/// Marks a request that came in as `HEAD` and is handled as `GET`.
#[derive(Debug, Clone, Copy)]
pub struct Head;

impl Head {
    /// Whether the request is a `HEAD`. The handler may still give a body of known length.
    pub fn asked(request: &HttpRequest) -> bool {
        request.extensions().contains::<Self>()
    }
}

/// Renders an error as a page, for a client that accepts pages.
#[derive(Debug, Clone, Copy)]
pub struct ErrorPage(pub fn(&HttpRequest, &Problem) -> HttpResponse);

/// Marks a response whose bytes no layer may change.
pub fn leave_untouched(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_ENCODING, UNTOUCHED);
}

#[derive(Debug, Clone)]
pub struct Envelope {
    metrics: Arc<Metrics>,
}

impl Envelope {
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics }
    }
}

impl<S, B> Transform<S, ServiceRequest> for Envelope
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Transform = Enveloped<S>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, service: S) -> Self::Future {
        let metrics = WorkerMetrics::new(Arc::clone(&self.metrics));
        ready(Ok(Enveloped {
            service,
            metrics: Rc::new(metrics),
        }))
    }
}

#[derive(Debug)]
pub struct Enveloped<S> {
    service: S,
    metrics: Rc<WorkerMetrics>,
}

impl<S, B> Service<ServiceRequest> for Enveloped<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Future = Enveloping<S::Future>;

    forward_ready!(service);

    fn call(&self, mut request: ServiceRequest) -> Self::Future {
        let watch = Stopwatch::start();
        let id = REQUEST_IDS.of(request.headers());
        let method = method_label(request.method());
        let cors = Cors::of(&request);
        let span = span(&request, &id);
        if request.method() == Method::HEAD {
            // The server leaves the body out by the method it has read, whatever is set here.
            request.head_mut().method = Method::GET;
            request.extensions_mut().insert(Head);
        }
        let counted = InFlightRequest::begin(&self.metrics);
        let inner = {
            let _entered = span.enter();
            self.service.call(request)
        };
        Enveloping {
            inner,
            seen: RequestMeta {
                watch,
                id,
                method,
                cors,
                counted,
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
    cors: Cors,
    counted: InFlightRequest,
}

pin_project! {
    #[derive(Debug)]
    pub struct Enveloping<F> {
        #[pin]
        inner: F,
        seen: RequestMeta,
        span: Span,
    }
}

impl<F, B> Future for Enveloping<F>
where
    F: Future<Output = Result<ServiceResponse<B>, Error>>,
    B: MessageBody + 'static,
{
    type Output = Result<ServiceResponse<EitherBody<B>>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let _entered = this.span.enter();
        let answer = poll_ready!(this.inner.poll(context))?;
        Poll::Ready(Ok(this.seen.finish(answer)))
    }
}

impl RequestMeta {
    fn finish<B: MessageBody + 'static>(
        &self,
        answer: ServiceResponse<B>,
    ) -> ServiceResponse<EitherBody<B>> {
        let mut answer = self.with_document(answer);
        let status = answer.status();
        let cors = self.cors.once_known(answer.request());
        let links = answer.request().app_data::<CatalogLinks>().copied();
        let headers = answer.headers_mut();
        self.head(status, cors, headers);
        if let Some(links) = links.filter(|_| is_html(headers)) {
            links.head(headers);
        }
        keep_personal(&mut answer);
        if answer.response().body().size() == BodySize::Stream && Head::asked(answer.request()) {
            answer = answer
                .map_body(|_, _| EitherBody::right(BoxBody::new(actix_web::body::None::new())));
        }
        let addresses = answer.request().app_data::<&'static Addresses>().copied();
        let route = match (answer.request().match_name(), addresses) {
            (Some(name), Some(addresses)) => addresses.pattern_of(name).unwrap_or("page"),
            _ => "none",
        };
        self.counted
            .0
            .request(route, self.method, status.as_u16(), &self.watch);
        tracing::debug!(
            status = status.as_u16(),
            route,
            milliseconds = self.watch.seconds() * 1000.0,
            "answered"
        );
        answer
    }

    /// Gives every error a problem document, or a page outside of the API to a client that accepts pages.
    fn with_document<B: MessageBody + 'static>(
        &self,
        answer: ServiceResponse<B>,
    ) -> ServiceResponse<EitherBody<B>> {
        let status = answer.status();
        if !(status.is_client_error() || status.is_server_error()) || has_document(&answer) {
            return answer.map_into_left_body();
        }
        let dialects = answer.request().app_data::<&'static [DialectErrors]>();
        let dialect = dialects.and_then(|all| DialectErrors::at(all, answer.request().path()));
        if dialect.is_some() && answer.response().error().is_none() {
            // The handler has written the error itself.
            return answer.map_into_left_body();
        }
        let (request, response) = answer.into_parts();
        let given = response.error().and_then(|error| {
            let refusal = error.as_error::<PageRefusal>();
            let problem = refusal.and_then(PageRefusal::problem);
            error.as_error::<Problem>().or(problem)
        });
        let made;
        let problem = match given {
            Some(problem) => problem,
            None => {
                made = undocumented(status, response.error());
                &made
            }
        };
        self.log(&request, problem);
        let page = request
            .app_data::<ErrorPage>()
            .filter(|_| accepts(&request, "text/html") && !is_public(request.path()));
        let response = match (dialect, page) {
            (Some(dialect), _) => (dialect.render)(&request, problem),
            (None, Some(ErrorPage(render))) => render(&request, problem),
            (None, None) => problem.answer(request.uri().path()),
        };
        ServiceResponse::new(request, response).map_into_right_body()
    }

    fn log(&self, request: &HttpRequest, problem: &Problem) {
        if !problem.kind().status.is_server_error() {
            return;
        }
        let id = self.id.to_str().unwrap_or_default();
        let path = logged(request.uri().path());
        let internal = problem.internal();
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

    fn head(&self, status: StatusCode, cors: Cors, headers: &mut HeaderMap) {
        headers.insert(X_REQUEST_ID, self.id.clone());
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
        headers.insert(header::REFERRER_POLICY, NO_REFERRER);
        if headers
            .get(header::CONTENT_ENCODING)
            .is_some_and(|coding| *coding == UNTOUCHED)
        {
            headers.remove(header::CONTENT_ENCODING);
        }
        if is_html(headers) && !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
            headers.insert(header::CONTENT_SECURITY_POLICY, usual_policy());
        }
        cors.head(status, headers);
    }
}

/// Prevents a response that depends on a session from being stored, and gives a rotated session its new cookie.
fn keep_personal<B>(answer: &mut ServiceResponse<B>) {
    let (personal, cookie) = {
        let mut extensions = answer.request().extensions_mut();
        (
            extensions.contains::<Personal>(),
            extensions.remove::<NewCookie>(),
        )
    };
    let headers = answer.headers_mut();
    if personal {
        headers.insert(header::CACHE_CONTROL, NOT_STORED);
    }
    // A cookie that the handler sets itself is newer.
    if let Some(NewCookie(cookie)) = cookie
        && !headers.get_all(header::SET_COOKIE).any(cookies::is_session)
    {
        headers.append(header::SET_COOKIE, cookie);
    }
}

fn is_html(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

/// Whether a client accepts this media type by its name: pages, as browsers do when a person follows a link, or events.
pub(crate) fn accepts(request: &HttpRequest, kind: &str) -> bool {
    let accept = request.headers().get(header::ACCEPT);
    accept
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains(kind))
}

/// Whether an error has its document, or its page if the client accepts pages.
fn has_document<B>(answer: &ServiceResponse<B>) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE);
    if kind.is_some_and(|kind| kind.as_bytes() == PROBLEM_JSON.as_bytes()) {
        return true;
    }
    is_html(answer.headers()) && accepts(answer.request(), "text/html")
}

/// The problem for an error of a library, which has none.
fn undocumented(status: StatusCode, error: Option<&Error>) -> Problem {
    let kind = problem_kinds::by_status(status);
    let detail = match error {
        Some(error) if status.is_client_error() => error.to_string(),
        _ => kind.title.to_owned(),
    };
    Problem::new(kind, detail)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cors {
    No,
    PublicGet,
    /// A public GET with an `Authorization`, which may be a foreign one.
    SignedGet,
    Preflight,
}

impl Cors {
    fn of(request: &ServiceRequest) -> Self {
        let asked_for = |method: &Method| matches!(*method, Method::GET | Method::HEAD);
        let path = request.path();
        if asked_for(request.method()) {
            return match request.headers().contains_key(header::AUTHORIZATION) {
                _ if !is_public(path) => Self::No,
                false => Self::PublicGet,
                true => Self::SignedGet,
            };
        }
        if request.method() != Method::OPTIONS || !is_public(path) {
            return Self::No;
        }
        let wanted = request.headers().get(header::ACCESS_CONTROL_REQUEST_METHOD);
        let reads = wanted.is_some_and(|wanted| matches!(wanted.as_bytes(), b"GET" | b"HEAD"));
        let addresses = request.app_data::<&'static Addresses>();
        if reads && addresses.is_some_and(|addresses| addresses.takes_get(path)) {
            Self::Preflight
        } else {
            Self::No
        }
    }

    /// The CORS headers once the caller is known.
    fn once_known(self, request: &HttpRequest) -> Self {
        match self {
            Self::SignedGet if request.extensions().contains::<ForeignAuthorization>() => {
                Self::PublicGet
            }
            other => other,
        }
    }

    fn head(self, status: StatusCode, headers: &mut HeaderMap) {
        match self {
            Self::No | Self::SignedGet => {}
            Self::PublicGet => {
                headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANYONE);
            }
            Self::Preflight if status.is_success() => {
                headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANYONE);
                headers.insert(
                    header::ACCESS_CONTROL_ALLOW_METHODS,
                    HeaderValue::from_static("GET, HEAD"),
                );
                headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, CORS_HEADERS);
                headers.insert(
                    header::ACCESS_CONTROL_MAX_AGE,
                    HeaderValue::from_static("86400"),
                );
            }
            Self::Preflight => {}
        }
    }
}

/// A path as it may be logged: that of a feed is a secret.
fn logged(path: &str) -> &str {
    match path.starts_with(FEEDS) {
        true => FEEDS,
        false => path,
    }
}

/// Whether a path is of the API or the cards, and not of pages or operations.
fn is_public(path: &str) -> bool {
    path.starts_with("/v1/")
        || path == "/openapi.json"
        || path.starts_with("/ard/")
        || path.starts_with("/.well-known/")
        || (path.starts_with("/agents/") && path.contains("/.well-known/"))
}

/// A request in progress, counted until its response or its end.
#[derive(Debug)]
struct InFlightRequest(Rc<WorkerMetrics>);

impl InFlightRequest {
    fn begin(metrics: &Rc<WorkerMetrics>) -> Self {
        metrics.request_begins();
        Self(Rc::clone(metrics))
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.request_ends();
    }
}

/// The span of a request, which its log lines carry. Requests that may write have one wherever acts are logged; for a
/// cached card it would cost too much.
fn span(request: &ServiceRequest, id: &HeaderValue) -> Span {
    macro_rules! request_span {
        ($level:expr) => {{
            let trace = TraceParent::of(request.headers());
            tracing::span!(
                $level,
                "request",
                request_id = id.to_str().unwrap_or_default(),
                method = request.method().as_str(),
                path = logged(request.uri().path()),
                trace_id = trace.map(|trace| trace.trace_id),
                parent_id = trace.map(|trace| trace.parent_id),
                span_id = REQUEST_IDS.span_id(),
            )
        }};
    }
    if !request.method().is_safe() && tracing::enabled!(Level::INFO) {
        request_span!(Level::INFO)
    } else if tracing::enabled!(Level::DEBUG) {
        request_span!(Level::DEBUG)
    } else {
        Span::none()
    }
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
