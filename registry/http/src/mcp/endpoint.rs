//! `POST /mcp`: the streamable HTTP transport of the Model Context Protocol, without sessions.
//!
//! Authentication and body parsing are the same as for all requests; the library then handles the message. The caller
//! is a request extension, never an argument, and tools cannot see the token.

use std::sync::Arc;

use a2a_registry_core::config::Config;
use a2a_registry_core::error::AppError;
use a2a_registry_core::visibility::caller::Caller;
use actix_web::body::MessageBody as _;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::{Buf as _, Bytes};
use http_body_util::{BodyExt as _, Full};
use rmcp::model::{ErrorCode, ErrorData, JsonRpcError};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use url::Url;

use crate::mcp::handler::{RegistryTools, ToolServer};
use crate::problems::problem::Problem;
use crate::problems::problem_kinds;
use crate::requests::auth::Anyone;
use crate::requests::body::PendingBody;
use crate::requests::server_state::ServerState;

/// The library's service, with the hosts and origins that it accepts.
pub struct McpService {
    service: StreamableHttpService<ToolServer<RegistryTools>, NeverSessionManager>,
    public_url: String,
}

impl std::fmt::Debug for McpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpService").finish_non_exhaustive()
    }
}

impl McpService {
    pub fn new(state: &ServerState) -> Self {
        let server = ToolServer(RegistryTools {
            context: Arc::clone(&state.context),
        });
        let config = state.context.config();
        let http_config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(config.limits.json_bytes)
            .with_allowed_hosts(allowed_hosts(&config))
            .with_allowed_origins(allowed_origins(&config))
            .enforce_origin_validation();
        let sessions = Arc::new(NeverSessionManager::default());
        Self {
            service: StreamableHttpService::new(move || Ok(server.clone()), sessions, http_config),
            public_url: config.public_url(),
        }
    }

    /// Handles a message with the library, and converts plain text responses to protocol messages.
    async fn handle_message(
        &self,
        message: http::Request<Full<Bytes>>,
    ) -> Result<HttpResponse, Problem> {
        let (head, body) = self.service.handle(message).await.into_parts();
        let status = StatusCode::from_u16(head.status.as_u16())
            .map_err(|error| AppError::internal(error.to_string()))?;
        let Ok(body) = body.collect().await;
        let mut body = body.aggregate();
        let body = body.copy_to_bytes(body.remaining());
        let content_type = head.headers.get(http::header::CONTENT_TYPE);
        let is_json =
            content_type.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        if status.is_success() || is_json {
            let mut response = HttpResponse::build(status);
            response.insert_header((header::CACHE_CONTROL, NO_STORE));
            if let Some(kind) = content_type {
                response.insert_header((header::CONTENT_TYPE, kind.as_bytes()));
            }
            return Ok(response.body(body));
        }
        let detail = String::from_utf8_lossy(&body);
        match status {
            StatusCode::FORBIDDEN => Err(Problem::new(
                &problem_kinds::FORBIDDEN,
                format!(
                    "The host or origin of this request is not this registry's: use {}. If that address is wrong, the \
                    operator must set server.public_url; a proxy must pass the host on in `Host`.",
                    self.public_url
                ),
            )),
            StatusCode::UNSUPPORTED_MEDIA_TYPE if detail.starts_with(INVALID_MESSAGE_PREFIX) => {
                let detail = "The body is not a JSON-RPC message of the Model Context Protocol.";
                json_rpc_rejection(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, detail)
            }
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Err(Problem::new(
                &problem_kinds::WRONG_MEDIA_TYPE,
                "Send the message as JSON, with `Content-Type: application/json`.",
            )),
            status => json_rpc_rejection(status, ErrorCode::INVALID_REQUEST, format!("{detail}.")),
        }
    }
}

/// Local host names, if the registry can be reached by them.
fn local_host_names(config: &Config) -> &'static [&'static str] {
    let address = config.server.listen.ip();
    match address.is_loopback() || address.is_unspecified() {
        true => &["localhost", "127.0.0.1", "[::1]"],
        false => &[],
    }
}

/// Hosts that a request may name. Another host indicates DNS rebinding, such as by a page that tries to reach a
/// registry behind a firewall.
pub(super) fn allowed_hosts(config: &Config) -> Vec<String> {
    let public = Url::parse(&config.public_url()).ok();
    let public = public.as_ref().and_then(Url::host_str).map(str::to_owned);
    let own = local_host_names(config)
        .iter()
        .map(|name| (*name).to_owned());
    public.into_iter().chain(own).collect()
}

/// Origins whose pages may send requests: only those of this registry.
pub(super) fn allowed_origins(config: &Config) -> Vec<String> {
    let public = Url::parse(&config.public_url()).ok();
    let public = public.as_ref().and_then(|url| {
        let port = url.port_or_known_default()?;
        Some(format!("{}://{}:{port}", url.scheme(), url.host_str()?))
    });
    let port = config.server.listen.port();
    let scheme = match config.server.tls_cert {
        Some(_) => "https",
        None => "http",
    };
    let own = local_host_names(config).iter();
    let own = own.map(|name| format!("{scheme}://{name}:{port}"));
    public.into_iter().chain(own).collect()
}

pub(crate) async fn handle_mcp(
    request: HttpRequest,
    caller: Anyone,
    body: PendingBody,
    service: web::Data<McpService>,
    state: web::Data<ServerState>,
) -> Result<HttpResponse, Problem> {
    let config = state.context.config();
    if !config.mcp.enabled {
        return Err(AppError::no_resource().into());
    }
    let body = body
        .read_and_reauthenticate(config.limits.json_bytes)
        .await?
        .freeze();
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(&body) {
        let detail = format!("The body is not JSON: {error}.");
        return json_rpc_rejection(StatusCode::BAD_REQUEST, ErrorCode::PARSE_ERROR, detail);
    }
    if supports_batches(&request)
        && let Ok(messages) = serde_json::from_slice::<Vec<&RawValue>>(&body)
    {
        return handle_message_batch(&request, &caller, &service, messages).await;
    }
    service
        .handle_message(to_rmcp_request(&request, caller.caller, body)?)
        .await
}

/// Whether the client's protocol revision supports batches. Only 2025-03-26 does, and it is the default revision.
fn supports_batches(request: &HttpRequest) -> bool {
    let revision = request.headers().get("mcp-protocol-version");
    revision.is_none_or(|revision| revision.as_bytes() == b"2025-03-26")
}

/// Handles the messages of a batch one by one, and returns the responses to requests.
async fn handle_message_batch(
    request: &HttpRequest,
    caller: &Caller,
    service: &McpService,
    messages: Vec<&RawValue>,
) -> Result<HttpResponse, Problem> {
    if messages.is_empty() || messages.len() > MAX_BATCH {
        let detail = format!("A batch must have 1 to {MAX_BATCH} messages.");
        return json_rpc_rejection(StatusCode::BAD_REQUEST, ErrorCode::INVALID_REQUEST, detail);
    }
    let mut responses = Vec::new();
    for one in messages {
        let one = to_rmcp_request(request, caller.clone(), one.get().to_owned().into())?;
        let answer = service.handle_message(one).await?;
        // A notification has no response. All other responses are completely in memory.
        if let Ok(body) = answer.into_body().try_into_bytes()
            && !body.is_empty()
        {
            responses.push(body);
        }
    }
    if responses.is_empty() {
        return Ok(HttpResponse::Accepted().finish());
    }
    let answers = responses.join(&b","[..]);
    let body = [b"[", answers.as_slice(), b"]"].concat();
    Ok(json_response(StatusCode::OK, body))
}

/// Error response for a failure outside of any message, as for all requests.
pub(crate) fn mcp_problem_response(request: &HttpRequest, problem: &Problem) -> HttpResponse {
    problem.to_response(request.uri().path())
}

/// Converts the request for the library: adds the caller, removes the credentials.
fn to_rmcp_request(
    request: &HttpRequest,
    caller: Caller,
    body: Bytes,
) -> Result<http::Request<Full<Bytes>>, Problem> {
    let mut message = http::Request::post(request.uri().to_string());
    for (name, value) in request.headers() {
        if !STRIPPED_HEADERS.contains(name) {
            message = message.header(name.as_str(), value.as_bytes());
        }
    }
    message = message.header(header::ACCEPT.as_str(), rmcp_accept_header(request));
    let mut message = message
        .body(Full::new(body))
        .map_err(|error| AppError::internal(error.to_string()))?;
    message.extensions_mut().insert(caller);
    Ok(message)
}

/// `Accept` header for the library. The protocol requires clients to accept both of its media types. All responses
/// here are JSON, so a client may leave the other type out.
fn rmcp_accept_header(request: &HttpRequest) -> String {
    let values = request.headers().get_all(header::ACCEPT);
    let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    let accept = values.join(", ");
    let lower = accept.to_ascii_lowercase();
    let takes_json = JSON_MEDIA_RANGES.iter().any(|range| lower.contains(range));
    match takes_json || accept.is_empty() {
        true => "application/json, text/event-stream".to_owned(),
        false => accept,
    }
}

/// Media ranges that include JSON.
const JSON_MEDIA_RANGES: [&str; 3] = ["*/*", "application/*", "application/json"];
/// Headers that are not passed to the library: credentials, and those that [`accept_header`] replaces.
static STRIPPED_HEADERS: [header::HeaderName; 4] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::PROXY_AUTHORIZATION,
    header::ACCEPT,
];
/// Maximum number of messages of a batch: each response may be as long as a card.
const MAX_BATCH: usize = 20;
/// Prefix of the library's response to JSON that is not a message.
const INVALID_MESSAGE_PREFIX: &str = "fail to deserialize";
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// JSON-RPC error for a message that could not be parsed.
fn json_rpc_rejection(
    status: StatusCode,
    code: ErrorCode,
    detail: impl Into<String>,
) -> Result<HttpResponse, Problem> {
    let error = JsonRpcError::new(None, ErrorData::new(code, detail.into(), None));
    let body = serde_json::to_vec(&error).map_err(|error| AppError::internal(error.to_string()))?;
    Ok(json_response(status, body))
}

fn json_response(status: StatusCode, body: Vec<u8>) -> HttpResponse {
    HttpResponse::build(status)
        .insert_header((header::CACHE_CONTROL, NO_STORE))
        .content_type("application/json")
        .body(body)
}
