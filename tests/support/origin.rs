//! A web server with scripted replies: the hosts on which agents publish their cards.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use actix_web::body::{BodyStream, BoxBody};
use actix_web::dev::ServerHandle;
use actix_web::http::{Method, StatusCode, header};
use actix_web::web::{self, Bytes};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use futures::{StreamExt as _, stream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::DEADLINE;

/// Maximum size of the body of a request.
const MAX_REQUEST_BYTES: usize = 8 * 1024 * 1024;

/// A running origin on a loopback port of its own; dropping it closes the port and every connection.
pub struct Origin {
    address: SocketAddr,
    state: Arc<OriginState>,
    server: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct OriginState {
    replies: Mutex<HashMap<String, OriginReply>>,
    requests: watch::Sender<Vec<ReceivedRequest>>,
}

/// A request that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// The method, in capitals.
    pub method: String,
    /// The path without the query, as sent.
    pub path: String,
    /// The query, as sent; empty when there is none.
    pub query: String,
    /// The headers with lower-case names, in the order sent.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl ReceivedRequest {
    /// The value of the first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find_map(|(key, value)| (key == name).then_some(value.as_str()))
    }
}

/// The reply of an origin on a path.
#[derive(Debug, Clone)]
pub struct OriginReply {
    status: StatusCode,
    headers: Vec<(String, String)>,
    body: ReplyBody,
    etag: Option<String>,
    gate: Option<watch::Receiver<bool>>,
}

#[derive(Debug, Clone)]
enum ReplyBody {
    Complete(Bytes),
    Endless,
    Stalled(Bytes),
}

impl OriginReply {
    fn new(status: StatusCode, content_type: &str, body: ReplyBody) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body,
            etag: None,
            gate: None,
        }
    }

    /// 200 with these bytes as `application/json`.
    pub fn json(body: impl Into<Vec<u8>>) -> Self {
        let body = ReplyBody::Complete(body.into().into());
        Self::new(StatusCode::OK, "application/json", body)
    }

    /// 200 with this text as `text/html`.
    pub fn html(body: &str) -> Self {
        let body = ReplyBody::Complete(body.to_owned().into());
        Self::new(StatusCode::OK, "text/html; charset=utf-8", body)
    }

    /// An empty response with this status.
    pub fn status(status: u16) -> Self {
        let status = StatusCode::from_u16(status).unwrap();
        Self::new(status, "text/plain", ReplyBody::Complete(Bytes::new()))
    }

    /// 302 to this location.
    pub fn redirect(location: &str) -> Self {
        Self::status(302).with_header("location", location)
    }

    /// 200 with a JSON body that continues for as long as the client reads it.
    pub fn endless() -> Self {
        Self::new(StatusCode::OK, "application/json", ReplyBody::Endless)
    }

    /// 200 with a JSON body that begins with these bytes and then neither continues nor ends.
    pub fn stalled(beginning: &str) -> Self {
        let body = ReplyBody::Stalled(beginning.to_owned().into());
        Self::new(StatusCode::OK, "application/json", body)
    }

    /// Sets the status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = StatusCode::from_u16(status).unwrap();
        self
    }

    /// Sets a header, replacing one of the same (lower-case) name.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(key, _)| key != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends this entity tag, and an empty 304 to requests with it in `If-None-Match`.
    pub fn with_etag(mut self, tag: &str) -> Self {
        self.etag = Some(tag.to_owned());
        self.with_header("etag", tag)
    }

    /// Holds the response until `gate` is open.
    pub fn gated_by(mut self, gate: &ResponseGate) -> Self {
        self.gate = Some(gate.open.subscribe());
        self
    }
}

/// A gate that holds responses until a test opens it.
#[derive(Debug, Default)]
pub struct ResponseGate {
    open: watch::Sender<bool>,
}

impl ResponseGate {
    /// Releases every response that this gate holds or will hold.
    pub fn open(&self) {
        self.open.send_replace(true);
    }
}

impl Origin {
    /// An origin on a free port that answers 404 to everything until a reply is set.
    pub fn start() -> Self {
        Self::start_on(0)
    }

    /// An origin on a given port, for example that of an earlier origin.
    pub fn start_on(port: u16) -> Self {
        let state = Arc::new(OriginState::default());
        let (sender, receiver) = std::sync::mpsc::channel();
        let shared = Arc::clone(&state);
        // A separate thread, so that an origin neither ends with a test's runtime nor blocks it.
        let thread = std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let server = HttpServer::new(move || {
                    App::new()
                        .app_data(web::Data::from(Arc::clone(&shared)))
                        .app_data(web::PayloadConfig::new(MAX_REQUEST_BYTES))
                        .default_service(web::to(handle_request))
                })
                .workers(1)
                .disable_signals()
                .bind(("127.0.0.1", port))
                .unwrap();
                let address = server.addrs()[0];
                let server = server.run();
                sender.send((address, server.handle())).unwrap();
                server.await.unwrap();
            });
        });
        let (address, server) = receiver.recv().expect("an origin must be able to listen");
        Self {
            address,
            state,
            server,
            thread: Some(thread),
        }
    }

    /// The listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the reply for the path (without query) from now on.
    pub fn set_reply(&self, path: &str, reply: OriginReply) {
        self.state
            .replies
            .lock()
            .unwrap()
            .insert(path.to_owned(), reply);
    }

    /// The requests for the path that have arrived so far.
    pub fn requests_to(&self, path: &str) -> Vec<ReceivedRequest> {
        let requests = self.state.requests.borrow();
        requests
            .iter()
            .filter(|request| request.path == path)
            .cloned()
            .collect()
    }

    /// All requests that have arrived so far, and a notification of each further one.
    pub fn subscribe_requests(&self) -> watch::Receiver<Vec<ReceivedRequest>> {
        self.state.requests.subscribe()
    }

    /// Waits until the `count`th request (from 1) for the path arrives, and returns it.
    ///
    /// # Panics
    ///
    /// If it has not arrived before [`DEADLINE`]; the message lists all requests.
    pub async fn wait_for_request(&self, path: &str, count: usize) -> ReceivedRequest {
        let mut receiver = self.state.requests.subscribe();
        let wanted = |all: &Vec<ReceivedRequest>| {
            let mut matching = all.iter().filter(|request| request.path == path);
            matching.nth(count - 1).cloned()
        };
        match timeout(DEADLINE, receiver.wait_for(|all| wanted(all).is_some())).await {
            Ok(Ok(all)) => wanted(&all).unwrap(),
            _ => panic!(
                "request {count} for {path} never arrived; these did: {:#?}",
                *self.state.requests.borrow()
            ),
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        // The call itself sends the command; its future may be dropped, and the thread ends once the server has
        // stopped.
        drop(self.server.stop(false));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn handle_request(
    request: HttpRequest,
    state: web::Data<OriginState>,
    body: Bytes,
) -> HttpResponse<BoxBody> {
    let path = request.uri().path().to_owned();
    let headers = request.headers().iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let received = ReceivedRequest {
        method: request.method().to_string(),
        path: path.clone(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        headers: headers.collect(),
        body,
    };
    let known = received.header("if-none-match").map(str::to_owned);
    state.requests.send_modify(|all| all.push(received));

    let reply = state.replies.lock().unwrap().get(&path).cloned();
    let Some(mut reply) = reply else {
        return HttpResponse::NotFound().finish();
    };
    if let Some(preflight) = preflight_response(&request, &reply) {
        return preflight;
    }
    if let Some(gate) = &mut reply.gate {
        // An error means that the test dropped the gate, so nothing is held any more.
        let _ = gate.wait_for(|open| *open).await;
    }
    let unchanged = reply.etag.is_some() && reply.etag == known;
    let mut response = HttpResponse::build(if unchanged {
        StatusCode::NOT_MODIFIED
    } else {
        reply.status
    });
    for (name, value) in &reply.headers {
        if !unchanged || name != header::CONTENT_TYPE.as_str() {
            response.insert_header((name.as_str(), value.as_str()));
        }
    }
    if unchanged {
        return response.finish();
    }
    match reply.body {
        ReplyBody::Complete(bytes) => response.body(bytes),
        ReplyBody::Endless => {
            let opening = stream::once(async { Bytes::from_static(b"{\"name\":\"") });
            let rest = stream::repeat(Bytes::from_static(&[b'a'; 16 * 1024]));
            streaming_response(&mut response, opening.chain(rest))
        }
        ReplyBody::Stalled(bytes) => {
            let opening = stream::once(async { bytes });
            streaming_response(&mut response, opening.chain(stream::pending()))
        }
    }
}

/// The response to a CORS preflight request, with the CORS headers of the reply; `None` if the reply has none.
fn preflight_response(request: &HttpRequest, reply: &OriginReply) -> Option<HttpResponse<BoxBody>> {
    let asks = request
        .headers()
        .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut allowed = reply
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("access-control-"))
        .peekable();
    if !asks || request.method() != Method::OPTIONS || allowed.peek().is_none() {
        return None;
    }
    let mut response = HttpResponse::NoContent();
    for (name, value) in allowed {
        response.insert_header((name.as_str(), value.as_str()));
    }
    Some(response.finish())
}

fn streaming_response(
    response: &mut actix_web::HttpResponseBuilder,
    body: impl futures::Stream<Item = Bytes> + 'static,
) -> HttpResponse<BoxBody> {
    let body = body.map(Ok::<_, std::convert::Infallible>);
    response.body(BodyStream::new(Box::pin(body)))
}
