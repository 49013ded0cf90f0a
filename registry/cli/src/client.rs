//! The HTTP client of the command line, to a registry. Everything is bounded in time and size; every failure is one line that
//! says what to do, and whether something may have been changed.

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

use super::failure::Failure;
use super::refusal::{ClientError, Problem};

/// Time without a byte after which a read is given up.
const READ_LIMIT: Duration = Duration::from_secs(30);
/// The same for what changes something, and for reads for which the registry looks at every agent.
const LONG_LIMIT: Duration = Duration::from_secs(300);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Limit for the body of a response, in bytes.
const ANSWER_LIMIT: usize = 32 * 1024 * 1024;
/// What a path segment holds unescaped (RFC 3986 section 3.3), apart from letters and digits.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

/// A response of the registry: parsed, and as received.
#[derive(Debug, Clone)]
pub struct RegistryResponse<T> {
    pub value: T,
    /// The body as received.
    pub raw: Bytes,
}

/// A segment of a path, escaped.
pub fn segment(text: impl Display) -> String {
    utf8_percent_encode(&text.to_string(), SEGMENT).to_string()
}

/// The method of a call and its effect: how long the response may take, and what a missing response means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    /// It reads what takes a body to ask for, and the registry looks at every agent for it.
    PostRead,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    pub(super) fn method(self) -> Method {
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
    base: String,
    authorization: Option<HeaderValue>,
    /// The limit that the user has set for all requests.
    limit: Option<Duration>,
}

impl Client {
    /// A client of the registry at `base`, with a token where there is one. `limit` is the time without a byte after which a
    /// request is given up, in place of the usual ones. Nothing is sent yet.
    pub fn new(base: &str, token: Option<&str>, limit: Option<Duration>) -> Result<Self, Failure> {
        let url = Url::parse(base)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                Failure::new(format!(
                    "--registry must be an http or https URL such as http://127.0.0.1:8080, not {base}"
                ))
            })?;
        let authorization = match token.filter(|token| !token.is_empty()) {
            None => None,
            Some(token) => {
                let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
                    Failure::new("the token holds characters that no token has; check --token and A2A_REGISTRY_TOKEN")
                })?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let http = client(&url, redirect::Policy::none())
            .build()
            .map_err(no_client)?;
        Ok(Self {
            limit,
            http,
            base: url.as_str().trim_end_matches('/').to_owned(),
            authorization,
        })
    }

    /// The registry's URL, without a slash at its end.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// A call of a path that begins with `/`.
    pub fn call(&self, verb: Verb, path: String) -> Call<'_> {
        Call {
            client: self,
            verb,
            path,
            query: String::new(),
            headers: Vec::new(),
            body: None,
        }
    }

    /// The status and body at a path, whatever the status is.
    pub async fn probe(&self, path: &str) -> Result<(u16, Bytes), ClientError> {
        let request = self.request(Verb::Get, path);
        let response = self.dispatch(request, Verb::Get).await?;
        let status = response.status().as_u16();
        let limit = self.limit(Verb::Get);
        Ok((status, body(response, ANSWER_LIMIT, limit).await?))
    }

    /// Whether it identifies itself with a token.
    pub fn has_token(&self) -> bool {
        self.authorization.is_some()
    }

    /// Sends a message of the Model Context Protocol, in that revision of it: the tools of a registry only read.
    pub async fn mcp<T: DeserializeOwned>(
        &self,
        revision: &str,
        message: &impl Serialize,
    ) -> Result<RegistryResponse<T>, ClientError> {
        let call = self.call(Verb::PostRead, "/mcp".to_owned()).with(message)?;
        call.header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", revision)
            .answer()
            .await
    }

    fn request(&self, verb: Verb, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.base);
        let request = self.http.request(verb.method(), url);
        match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value.clone()),
            None => request,
        }
    }

    /// The time without a byte after which a read is given up.
    pub fn read_limit(&self) -> Duration {
        self.limit(Verb::Get)
    }

    /// The time without a byte after which a request is given up.
    fn limit(&self, verb: Verb) -> Duration {
        self.limit.unwrap_or(match verb {
            Verb::Get => READ_LIMIT,
            _ => LONG_LIMIT,
        })
    }

    /// The error of a request that was sent, and whose response did not come.
    fn missing_response(&self, verb: Verb, why: MissingResponse) -> ClientError {
        let base = &self.base;
        let what = match why {
            MissingResponse::Late => format!(
                "the registry at {base} did not answer within {} s",
                self.limit(verb).as_secs()
            ),
            MissingResponse::Broken(reason) => {
                format!("the connection to the registry at {base} broke: {reason}")
            }
        };
        match verb.is_change() {
            true => ClientError::OutcomeUnknown(what),
            false => ClientError::NotAnswered(what),
        }
    }

    async fn dispatch(&self, request: RequestBuilder, verb: Verb) -> Result<Response, ClientError> {
        let answered = tokio::time::timeout(self.limit(verb), request.send()).await;
        match answered {
            Err(_) => Err(self.missing_response(verb, MissingResponse::Late)),
            Ok(Ok(response)) => Ok(response),
            // Nothing was sent where there is no connection, or the request could not be made.
            Ok(Err(error)) if error.is_connect() || error.is_builder() => {
                Err(ClientError::Unreachable {
                    base: self.base.clone(),
                    reason: innermost(&error),
                })
            }
            Ok(Err(error)) => {
                Err(self.missing_response(verb, MissingResponse::Broken(innermost(&error))))
            }
        }
    }

    async fn answer(
        &self,
        request: RequestBuilder,
        path: &str,
        verb: Verb,
    ) -> Result<(Bytes, HeaderMap), ClientError> {
        let response = self.dispatch(request, verb).await?;
        let status = response.status();
        let headers = response.headers().clone();
        let kind = header_text(&headers, CONTENT_TYPE.as_str()).unwrap_or_default();
        let retry_after = header_text(&headers, RETRY_AFTER.as_str());
        let location = header_text(&headers, LOCATION.as_str());
        if let Some(location) = location.filter(|_| status.is_redirection()) {
            return Err(ClientError::Moved {
                base: self.base.clone(),
                location,
            });
        }
        let raw = body(response, ANSWER_LIMIT, self.limit(verb)).await;
        if status.is_success() {
            // What was asked for was done, and the answer has only to say what came of it.
            let raw = raw.map_err(|error| match verb.is_change() {
                true => ClientError::OutcomeUnknown(error.to_string()),
                false => error,
            })?;
            return Ok((raw, headers));
        }
        let raw = raw?;
        match serde_json::from_slice::<Problem>(&raw) {
            Ok(mut problem) if kind.starts_with("application/problem+json") => {
                problem.status = status.as_u16();
                Err(ClientError::Refused {
                    problem: Box::new(problem),
                    raw,
                    retry_after,
                })
            }
            // A proxy that gives up says nothing of what the registry behind it does.
            _ if verb.is_change() && status.is_server_error() => {
                let what = self.not_a_registry(path, status, &kind).to_string();
                Err(ClientError::OutcomeUnknown(what))
            }
            _ => Err(self.not_a_registry(path, status, &kind)),
        }
    }

    fn read<T: DeserializeOwned>(
        &self,
        path: &str,
        raw: Bytes,
    ) -> Result<RegistryResponse<T>, ClientError> {
        match serde_json::from_slice(&raw) {
            Ok(value) => Ok(RegistryResponse { value, raw }),
            Err(error) => Err(ClientError::NotARegistry {
                url: format!("{}{path}", self.base),
                status: 200,
                what: format!("a document that is not a registry's response ({error})"),
            }),
        }
    }

    fn not_a_registry(&self, path: &str, status: StatusCode, kind: &str) -> ClientError {
        let what = if kind.is_empty() {
            "no reason".to_owned()
        } else {
            kind.to_owned()
        };
        ClientError::NotARegistry {
            url: format!("{}{path}", self.base),
            status: status.as_u16(),
            what,
        }
    }
}

/// A call of the API, which does nothing until it is sent.
pub struct Call<'a> {
    client: &'a Client,
    verb: Verb,
    path: String,
    query: String,
    headers: Vec<(&'static str, String)>,
    body: Option<Bytes>,
}

impl Call<'_> {
    /// Sends this along: as the query of a GET request, else as a JSON body.
    pub fn with<T: Serialize + ?Sized>(mut self, input: &T) -> Result<Self, ClientError> {
        if self.verb == Verb::Get {
            self.query = encode(input)?;
        } else {
            self.body = Some(serde_json::to_vec(input).map_err(unsendable)?.into());
        }
        Ok(self)
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Sends the call, and parses the body of the response.
    pub async fn answer<T: DeserializeOwned>(self) -> Result<RegistryResponse<T>, ClientError> {
        let raw = self.bytes().await?;
        self.client.read(&self.path, raw)
    }

    /// Sends the call; the body of the response is returned as it is.
    pub async fn bytes(&self) -> Result<Bytes, ClientError> {
        Ok(self.send().await?.0)
    }

    /// The same, with one header of the response.
    pub async fn bytes_and_header(
        &self,
        name: &str,
    ) -> Result<(Bytes, Option<String>), ClientError> {
        let (raw, headers) = self.send().await?;
        Ok((raw, header_text(&headers, name)))
    }

    async fn send(&self) -> Result<(Bytes, HeaderMap), ClientError> {
        let path = match self.query.as_str() {
            "" => self.path.clone(),
            query => format!("{}?{query}", self.path),
        };
        let mut request = self.client.request(self.verb, &path);
        if let Some(body) = &self.body {
            request = request.header(CONTENT_TYPE, "application/json");
            request = request.body(body.clone());
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        self.client.answer(request, &path, self.verb).await
    }
}

/// A query in the form of a URL.
pub fn encode<T: Serialize + ?Sized>(query: &T) -> Result<String, ClientError> {
    serde_html_form::to_string(query).map_err(unsendable)
}

fn unsendable(error: impl Display) -> ClientError {
    ClientError::Failed(format!("the request cannot be sent: {error}"))
}

fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Why there is no response to a request that was sent.
enum MissingResponse {
    Late,
    Broken(String),
}

/// An HTTP client for what is at this URL.
pub(super) fn client(url: &Url, redirects: redirect::Policy) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder()
        .user_agent(concat!("a2a-registry/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirects);
    // A proxy has no way to this machine.
    match is_loopback(url) {
        true => builder.no_proxy(),
        false => builder,
    }
}

fn no_client(error: reqwest::Error) -> Failure {
    Failure::new(format!(
        "the HTTP client cannot start: {}",
        innermost(&error)
    ))
}

/// Reads a body to its end, or to `limit` bytes. Each part of it may take as long as `timeout`.
pub(super) async fn body(
    mut response: Response,
    limit: usize,
    timeout: Duration,
) -> Result<Bytes, ClientError> {
    let broke = |why: &str| ClientError::Failed(format!("the response broke off: {why}"));
    let mut read = BytesMut::new();
    loop {
        let chunk = tokio::time::timeout(timeout, response.chunk()).await;
        let chunk = chunk.map_err(|_| broke("no answer in time"))?;
        let chunk = chunk.map_err(|error| broke(&innermost(&error)))?;
        let Some(chunk) = chunk else {
            return Ok(read.freeze());
        };
        if read.len() + chunk.len() > limit {
            return Err(ClientError::Failed(format!(
                "the response is longer than {limit} bytes"
            )));
        }
        read.extend_from_slice(&chunk);
    }
}

/// The cause at the end of the chain, which says the most.
pub(super) fn innermost(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
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
        assert_eq!(segment("127.0.0.1:9001"), "127.0.0.1:9001");
        assert_eq!(segment("a/../b?c#d%"), "a%2F..%2Fb%3Fc%23d%25");
    }

    #[test]
    fn a_base_must_be_a_url() {
        for wrong in ["", "127.0.0.1:8080", "ftp://a.example", "http://"] {
            assert!(Client::new(wrong, None, None).is_err(), "{wrong}");
        }
        assert!(Client::new("http://127.0.0.1:8080", Some("line\nfeed"), None).is_err());
    }
}
