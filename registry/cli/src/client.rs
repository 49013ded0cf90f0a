//! HTTP client of the command line for a registry. Everything is bounded in time and size; every error is one line
//! that says what to do, and whether a change may have been made.

use std::error::Error as _;
use std::fmt::Display;
use std::time::Duration;

use a2a_client::is_loopback;
use bytes::{Bytes, BytesMut};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::client_error::{ClientError, ProblemDetails};
use super::command_error::CommandError;

/// Time without received data after which a read is aborted.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The same for changes, and for reads that make the registry examine every agent.
const LONG_TIMEOUT: Duration = Duration::from_secs(300);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Limit for the body of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;
/// Characters that are escaped in a path segment: all but those that RFC 3986 section 3.3 allows.
const PATH_SEGMENT_ESCAPES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

/// Response of the registry: parsed, and as received.
#[derive(Debug, Clone)]
pub struct RegistryResponse<T> {
    pub value: T,
    /// The body as received.
    pub raw: Bytes,
}

/// Escapes a path segment.
pub fn encode_path_segment(text: impl Display) -> String {
    utf8_percent_encode(&text.to_string(), PATH_SEGMENT_ESCAPES).to_string()
}

/// HTTP method of a call and its effect: how long the response may take, and what a missing response means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestMethod {
    Get,
    /// A read with its parameters in a body, for which the registry examines every agent.
    PostRead,
    Post,
    Put,
    Patch,
    Delete,
}

impl RequestMethod {
    pub(super) fn http_method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::PostRead | Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
        }
    }

    fn is_change(self) -> bool {
        !matches!(self, Self::Get | Self::PostRead)
    }
}

pub struct Client {
    http: reqwest::Client,
    base_url: String,
    authorization: Option<HeaderValue>,
    /// Time limit that the user has set for all requests.
    timeout_override: Option<Duration>,
}

impl Client {
    /// Creates a client for the registry at `base`, with a token if there is one. `limit` is the time without received
    /// data after which a request is aborted, instead of the defaults. Nothing is sent yet.
    pub fn new(
        base: &str,
        token: Option<&str>,
        timeout: Option<Duration>,
    ) -> Result<Self, CommandError> {
        let url = Url::parse(base)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                CommandError::new(format!(
                    "--registry must be an http or https URL such as http://127.0.0.1:8080, not {base}"
                ))
            })?;
        let authorization = match token.filter(|token| !token.is_empty()) {
            None => None,
            Some(token) => {
                let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
                    CommandError::new("the token contains invalid characters; check --token and A2A_REGISTRY_TOKEN")
                })?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let http = http_client_builder(&url, redirect::Policy::none())
            .build()
            .map_err(client_build_error)?;
        Ok(Self {
            timeout_override: timeout,
            http,
            base_url: url.as_str().trim_end_matches('/').to_owned(),
            authorization,
        })
    }

    /// Creates a client for another address of the same registry, with the same token if it may be sent there.
    pub fn for_address(&self, base: &str, sends_token: bool) -> Result<Self, CommandError> {
        let other = Self::new(base, None, self.timeout_override)?;
        Ok(Self {
            authorization: self.authorization.clone().filter(|_| sends_token),
            ..other
        })
    }

    /// URL of the registry, without a trailing slash.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Call of a path, which begins with `/`.
    pub fn build_call(&self, method: RequestMethod, path: String) -> ApiCall<'_> {
        ApiCall {
            client: self,
            method,
            path,
            query: String::new(),
            headers: Vec::new(),
            body: None,
        }
    }

    /// Status and body at a path, whatever the status is.
    pub async fn fetch_status_and_body(&self, path: &str) -> Result<(u16, Bytes), ClientError> {
        let request = self.build_request(RequestMethod::Get, path);
        let response = self.send_with_timeout(request, RequestMethod::Get).await?;
        let status = response.status().as_u16();
        let limit = self.timeout_for(RequestMethod::Get);
        Ok((
            status,
            read_body(response, MAX_RESPONSE_BYTES, limit).await?,
        ))
    }

    /// Whether the client has a token.
    pub fn has_token(&self) -> bool {
        self.authorization.is_some()
    }

    /// Sends a message of the Model Context Protocol in the given revision. Tools of a registry only read.
    pub async fn send_mcp_message<T: DeserializeOwned>(
        &self,
        revision: &str,
        message: &impl Serialize,
    ) -> Result<RegistryResponse<T>, ClientError> {
        let call = self
            .build_call(RequestMethod::PostRead, "/mcp".to_owned())
            .with_input(message)?;
        call.with_header("Accept", "application/json, text/event-stream")
            .with_header("MCP-Protocol-Version", revision)
            .send_for_json()
            .await
    }

    fn build_request(&self, method: RequestMethod, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.base_url);
        let request = self.http.request(method.http_method(), url);
        match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value.clone()),
            None => request,
        }
    }

    /// Time without received data after which a read is aborted.
    pub fn read_timeout(&self) -> Duration {
        self.timeout_for(RequestMethod::Get)
    }

    /// Time without received data after which a request is aborted.
    fn timeout_for(&self, method: RequestMethod) -> Duration {
        self.timeout_override.unwrap_or(match method {
            RequestMethod::Get => READ_TIMEOUT,
            _ => LONG_TIMEOUT,
        })
    }

    /// Error of a request that was sent but has no response.
    fn missing_response_error(
        &self,
        method: RequestMethod,
        cause: MissingResponseCause,
    ) -> ClientError {
        let base = &self.base_url;
        let message = match cause {
            MissingResponseCause::TimedOut => format!(
                "the registry at {base} did not answer within {} s",
                self.timeout_for(method).as_secs()
            ),
            MissingResponseCause::Broken(reason) => {
                format!("the connection to the registry at {base} broke: {reason}")
            }
        };
        match method.is_change() {
            true => ClientError::OutcomeUnknown(message),
            false => ClientError::NoResponse(message),
        }
    }

    async fn send_with_timeout(
        &self,
        request: RequestBuilder,
        method: RequestMethod,
    ) -> Result<Response, ClientError> {
        let result = tokio::time::timeout(self.timeout_for(method), request.send()).await;
        match result {
            Err(_) => Err(self.missing_response_error(method, MissingResponseCause::TimedOut)),
            Ok(Ok(response)) => Ok(response),
            // Nothing was sent if there is no connection, or if the request could not be built.
            Ok(Err(error)) if error.is_connect() || error.is_builder() => {
                Err(ClientError::Unreachable {
                    base: self.base_url.clone(),
                    reason: root_cause(&error),
                })
            }
            Ok(Err(error)) => Err(self
                .missing_response_error(method, MissingResponseCause::Broken(root_cause(&error)))),
        }
    }

    async fn send_request(
        &self,
        request: RequestBuilder,
        path: &str,
        method: RequestMethod,
    ) -> Result<(Bytes, HeaderMap), ClientError> {
        let response = self.send_with_timeout(request, method).await?;
        let status = response.status();
        let headers = response.headers().clone();
        let content_type = header_text(&headers, CONTENT_TYPE.as_str()).unwrap_or_default();
        let retry_after = header_text(&headers, RETRY_AFTER.as_str());
        let location = header_text(&headers, LOCATION.as_str());
        if let Some(location) = location.filter(|_| status.is_redirection()) {
            return Err(ClientError::Redirected {
                base: self.base_url.clone(),
                location,
            });
        }
        let raw = read_body(response, MAX_RESPONSE_BYTES, self.timeout_for(method)).await;
        if status.is_success() {
            // The request was carried out; the response only has to describe the result.
            let raw = raw.map_err(|error| match method.is_change() {
                true => ClientError::OutcomeUnknown(error.to_string()),
                false => error,
            })?;
            return Ok((raw, headers));
        }
        let raw = raw?;
        match serde_json::from_slice::<ProblemDetails>(&raw) {
            Ok(mut problem) if content_type.starts_with("application/problem+json") => {
                problem.status = status.as_u16();
                Err(ClientError::Rejected {
                    problem: Box::new(problem),
                    raw,
                    retry_after,
                })
            }
            // A proxy that gives up says nothing about the registry behind it.
            _ if method.is_change() && status.is_server_error() => {
                let what = self
                    .not_a_registry_error(path, status, &content_type)
                    .to_string();
                Err(ClientError::OutcomeUnknown(what))
            }
            _ => Err(self.not_a_registry_error(path, status, &content_type)),
        }
    }

    fn parse_response<T: DeserializeOwned>(
        &self,
        path: &str,
        raw: Bytes,
    ) -> Result<RegistryResponse<T>, ClientError> {
        match serde_json::from_slice(&raw) {
            Ok(value) => Ok(RegistryResponse { value, raw }),
            Err(error) => Err(ClientError::NotARegistry {
                url: format!("{}{path}", self.base_url),
                status: 200,
                what: format!("a document that is not a registry's response ({error})"),
            }),
        }
    }

    fn not_a_registry_error(
        &self,
        path: &str,
        status: StatusCode,
        content_type: &str,
    ) -> ClientError {
        let what = if content_type.is_empty() {
            "no reason".to_owned()
        } else {
            content_type.to_owned()
        };
        ClientError::NotARegistry {
            url: format!("{}{path}", self.base_url),
            status: status.as_u16(),
            what,
        }
    }
}

/// Call of the API, which is not sent until a `send` method is called.
pub struct ApiCall<'a> {
    client: &'a Client,
    method: RequestMethod,
    path: String,
    query: String,
    headers: Vec<(&'static str, String)>,
    body: Option<Bytes>,
}

impl ApiCall<'_> {
    /// Adds the input: as the query of a GET request, otherwise as a JSON body.
    pub fn with_input<T: Serialize + ?Sized>(mut self, input: &T) -> Result<Self, ClientError> {
        if self.method == RequestMethod::Get {
            self.query = encode_query(input)?;
        } else {
            self.body = Some(
                serde_json::to_vec(input)
                    .map_err(request_encoding_error)?
                    .into(),
            );
        }
        Ok(self)
    }

    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Sends the call and parses the response body.
    pub async fn send_for_json<T: DeserializeOwned>(
        self,
    ) -> Result<RegistryResponse<T>, ClientError> {
        let raw = self.send_for_bytes().await?;
        self.client.parse_response(&self.path, raw)
    }

    /// Sends the call and returns the response body as received.
    pub async fn send_for_bytes(&self) -> Result<Bytes, ClientError> {
        Ok(self.send().await?.0)
    }

    /// The same, with one response header.
    pub async fn send_for_bytes_and_header(
        &self,
        name: &str,
    ) -> Result<(Bytes, Option<String>), ClientError> {
        let (raw, headers) = self.send().await?;
        Ok((raw, header_text(&headers, name)))
    }

    /// Sends the call, and parses the response body; returned with its entity tag.
    pub async fn send_for_tagged<T: DeserializeOwned>(self) -> Result<(T, String), ClientError> {
        let (raw, tag) = self.send_for_bytes_and_header("etag").await?;
        let value = self.client.parse_response(&self.path, raw)?.value;
        Ok((value, tag.unwrap_or_default()))
    }

    async fn send(&self) -> Result<(Bytes, HeaderMap), ClientError> {
        let path = match self.query.as_str() {
            "" => self.path.clone(),
            query => format!("{}?{query}", self.path),
        };
        let mut request = self.client.build_request(self.method, &path);
        if let Some(body) = &self.body {
            request = request.header(CONTENT_TYPE, "application/json");
            request = request.body(body.clone());
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        self.client.send_request(request, &path, self.method).await
    }
}

/// Encodes a query for a URL.
pub fn encode_query<T: Serialize + ?Sized>(query: &T) -> Result<String, ClientError> {
    serde_html_form::to_string(query).map_err(request_encoding_error)
}

fn request_encoding_error(error: impl Display) -> ClientError {
    ClientError::Failed(format!("the request cannot be sent: {error}"))
}

fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Why a request that was sent has no response.
enum MissingResponseCause {
    TimedOut,
    Broken(String),
}

/// HTTP client builder for this URL.
pub(super) fn http_client_builder(
    url: &Url,
    redirects: redirect::Policy,
) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder()
        .user_agent(concat!("a2a-registry/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirects);
    // A proxy cannot reach this machine.
    match is_loopback(url) {
        true => builder.no_proxy(),
        false => builder,
    }
}

fn client_build_error(error: reqwest::Error) -> CommandError {
    CommandError::new(format!(
        "the HTTP client cannot start: {}",
        root_cause(&error)
    ))
}

/// Reads a body to its end, or to `limit` bytes. Each chunk may take as long as `timeout`.
pub(super) async fn read_body(
    mut response: Response,
    limit: usize,
    timeout: Duration,
) -> Result<Bytes, ClientError> {
    let read_error = |why: &str| ClientError::Failed(format!("the response was cut off: {why}"));
    let mut received = BytesMut::new();
    loop {
        let chunk = tokio::time::timeout(timeout, response.chunk()).await;
        let chunk = chunk.map_err(|_| read_error("timed out"))?;
        let chunk = chunk.map_err(|error| read_error(&root_cause(&error)))?;
        let Some(chunk) = chunk else {
            return Ok(received.freeze());
        };
        if received.len() + chunk.len() > limit {
            return Err(ClientError::Failed(format!(
                "the response is longer than {limit} bytes"
            )));
        }
        received.extend_from_slice(&chunk);
    }
}

/// Root cause of an error, which is the most specific.
pub(super) fn root_cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "timed out".to_owned();
    }
    let mut cause = error.source();
    let mut text = None;
    while let Some(next) = cause {
        text = Some(next.to_string());
        cause = next.source();
    }
    text.unwrap_or_else(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_keep_to_themselves() {
        assert_eq!(encode_path_segment("127.0.0.1:9001"), "127.0.0.1:9001");
        assert_eq!(encode_path_segment("a/../b?c#d%"), "a%2F..%2Fb%3Fc%23d%25");
    }

    #[test]
    fn a_base_must_be_a_url() {
        for wrong in ["", "127.0.0.1:8080", "ftp://a.example", "http://"] {
            assert!(Client::new(wrong, None, None).is_err(), "{wrong}");
        }
        assert!(Client::new("http://127.0.0.1:8080", Some("line\nfeed"), None).is_err());
    }
}
