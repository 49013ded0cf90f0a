//! HTTP client of a hub in the layout of Hugging Face: `/{name}/resolve/{revision}/{file}`, which may redirect to
//! another host. Only the hub itself gets the token.

use std::time::Duration;

use a2a_client::is_loopback;
use bytes::Bytes;
use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION,
    RANGE,
};
use reqwest::{Response, StatusCode, redirect};
use url::Url;

use super::pins::is_commit;
use crate::client::{http_client_builder, root_cause};
use crate::terminal;

/// Time without received data after which a download is aborted.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of redirects followed for one file.
const MAX_REDIRECTS: usize = 5;
/// Header in which the hub names the commit of a file.
const COMMIT_HEADER: &str = "x-repo-commit";
/// Columns of a server's reason that are shown.
const MAX_REASON_COLUMNS: usize = 200;

/// Why a hub, or the host it redirects to, did not deliver a file.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error(
        "--hub must be an https URL without user name and query, or an http URL of this machine"
    )]
    InvalidUrl,
    #[error("the token for the hub contains invalid characters; check what it was read from")]
    InvalidToken,
    #[error("the HTTP client cannot start: {0}")]
    Client(String),
    #[error("{host} cannot be reached ({reason}); check the network, or name a mirror with --hub")]
    Unreachable { host: String, reason: String },
    #[error(
        "{host} answered HTTP {status}; check the name and the revision, and give a token with --hub-token if the \
         model is not public"
    )]
    Denied { host: String, status: u16 },
    #[error("{host} answered HTTP {status}; try again later")]
    Status { host: String, status: u16 },
    #[error("{0} redirects too often, or to an address that is not https; check --hub")]
    BadRedirect(String),
    #[error(
        "{0} answered with an HTML page instead of the file; check --hub, and whether a proxy asks for a sign-in"
    )]
    HtmlPage(String),
    #[error("{0} answered with another part of the file than requested; try again")]
    WrongRange(String),
    #[error(
        "the connection to {host} broke ({reason}); run the same command again: where the digests are given, it \
         continues where it stopped"
    )]
    CutOff { host: String, reason: String },
}

/// A hub, and the token for it.
pub struct Hub {
    http: reqwest::Client,
    base: Url,
    authorization: Option<HeaderValue>,
}

/// A file whose body is about to be received.
pub struct HubFile {
    response: Response,
    host: String,
    /// Position of the first byte of the body in the file.
    pub start: u64,
    /// Size of the whole file, if the host says it.
    pub total: Option<u64>,
    /// The commit that the hub names.
    pub commit: Option<String>,
}

impl Hub {
    /// Creates a client for the hub at `base`. Nothing is sent yet.
    pub fn new(base: &str, token: Option<&str>) -> Result<Self, HubError> {
        let base = Url::parse(base)
            .ok()
            .filter(is_hub_url)
            .ok_or(HubError::InvalidUrl)?;
        let http = http_client_builder(&base, redirect::Policy::none())
            .build()
            .map_err(|error| HubError::Client(root_cause(&error)))?;
        let authorization = token.map(bearer_header).transpose()?;
        Ok(Self {
            http,
            base,
            authorization,
        })
    }

    /// Requests a file from this byte on; `None` if the hub does not have it.
    pub async fn open_file(
        &self,
        name: &str,
        revision: &str,
        path: &str,
        offset: u64,
    ) -> Result<Option<HubFile>, HubError> {
        let mut url = file_url(&self.base, name, revision, path)?;
        let mut authorization = self.authorization.as_ref();
        let mut commit = None;
        for _ in 0..=MAX_REDIRECTS {
            let is_at_hub = url.origin() == self.base.origin();
            // The host to which the hub redirects gets no token, and neither does the target of its redirects.
            authorization = authorization.filter(|_| is_at_hub);
            let response = self.send_request(&url, offset, authorization).await?;
            if is_at_hub {
                commit = commit.or_else(|| read_commit(response.headers()));
            }
            if response.status().is_redirection() {
                url = redirect_target(&self.base, &url, response.headers())?;
                continue;
            }
            if is_at_hub && response.status() == StatusCode::NOT_FOUND {
                return Ok(None);
            }
            return HubFile::new(response, host_text(&url), offset, commit).map(Some);
        }
        Err(HubError::BadRedirect(host_text(&url)))
    }

    async fn send_request(
        &self,
        url: &Url,
        offset: u64,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response, HubError> {
        // The digests are of the files as they are, and so are the positions in them.
        let mut request = self
            .http
            .get(url.clone())
            .header(ACCEPT_ENCODING, "identity");
        if offset > 0 {
            request = request.header(RANGE, format!("bytes={offset}-"));
        }
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value.clone());
        }
        let sent = tokio::time::timeout(READ_TIMEOUT, request.send()).await;
        let reason = match sent {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => reason_text(error),
            Err(_) => "timed out".to_owned(),
        };
        Err(HubError::Unreachable {
            host: host_text(url),
            reason,
        })
    }
}

impl HubFile {
    fn new(
        response: Response,
        host: String,
        offset: u64,
        commit: Option<String>,
    ) -> Result<Self, HubError> {
        let headers = response.headers();
        let (start, total) = match response.status() {
            StatusCode::OK => (0, response.content_length()),
            StatusCode::PARTIAL_CONTENT => match parse_content_range(headers) {
                Some((start, total)) if start == offset => (start, total),
                _ => return Err(HubError::WrongRange(host)),
            },
            StatusCode::RANGE_NOT_SATISFIABLE => return Err(HubError::WrongRange(host)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let status = response.status().as_u16();
                return Err(HubError::Denied { host, status });
            }
            status => {
                let status = status.as_u16();
                return Err(HubError::Status { host, status });
            }
        };
        let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if content_type.is_some_and(|value| value.to_ascii_lowercase().starts_with(b"text/html")) {
            return Err(HubError::HtmlPage(host));
        }
        Ok(Self {
            response,
            host,
            start,
            total,
            commit,
        })
    }

    /// The next bytes of the body; `None` at its end.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, HubError> {
        let received = tokio::time::timeout(READ_TIMEOUT, self.response.chunk()).await;
        let reason = match received {
            Ok(Ok(chunk)) => return Ok(chunk),
            Ok(Err(error)) => reason_text(error),
            Err(_) => "timed out".to_owned(),
        };
        Err(self.cut_off_error(reason))
    }

    pub fn cut_off_error(&self, reason: String) -> HubError {
        HubError::CutOff {
            host: self.host.clone(),
            reason,
        }
    }
}

fn is_hub_url(url: &Url) -> bool {
    let is_secure = match url.scheme() {
        "https" => url.has_host(),
        "http" => is_loopback(url),
        _ => false,
    };
    let has_login = !url.username().is_empty() || url.password().is_some();
    is_secure && !has_login && url.query().is_none() && url.fragment().is_none()
}

fn file_url(base: &Url, name: &str, revision: &str, path: &str) -> Result<Url, HubError> {
    let mut url = base.clone();
    url.path_segments_mut()
        .map_err(|()| HubError::InvalidUrl)?
        .pop_if_empty()
        .extend(name.split('/'))
        .extend(["resolve", revision])
        .extend(path.split('/'));
    Ok(url)
}

fn redirect_target(base: &Url, from: &Url, headers: &HeaderMap) -> Result<Url, HubError> {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let target = location.and_then(|location| from.join(location).ok());
    // A hub elsewhere has no reason to name this machine.
    let is_permitted = |target: &Url| match target.scheme() {
        "https" => true,
        "http" => is_loopback(target) && is_loopback(base),
        _ => false,
    };
    target
        .filter(is_permitted)
        .ok_or_else(|| HubError::BadRedirect(host_text(from)))
}

fn bearer_header(token: &str) -> Result<HeaderValue, HubError> {
    let mut value =
        HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| HubError::InvalidToken)?;
    value.set_sensitive(true);
    Ok(value)
}

fn read_commit(headers: &HeaderMap) -> Option<String> {
    let commit = headers.get(COMMIT_HEADER)?.to_str().ok()?;
    is_commit(commit).then(|| commit.to_owned())
}

/// The first position and the whole size in a `Content-Range` such as `bytes 5-9/10`.
fn parse_content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.parse().ok()?, total.parse().ok()))
}

/// Host and port. The rest of a URL to which a hub redirects is a secret for some minutes.
fn host_text(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn reason_text(error: reqwest::Error) -> String {
    terminal::escape_and_truncate(&root_cause(&error.without_url()), MAX_REASON_COLUMNS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_hub_is_secure_or_on_this_machine() {
        for (text, expected) in [
            ("https://huggingface.co", true),
            ("https://mirror.example:8443/api/hub/", true),
            ("http://127.0.0.1:9000", true),
            ("http://localhost", true),
            ("http://mirror.example", false),
            ("ftp://127.0.0.1", false),
            ("https://ann:secret@mirror.example", false),
            ("https://mirror.example?x=1", false),
        ] {
            assert_eq!(is_hub_url(&url(text)), expected, "{text}");
        }
        for wrong in ["", "huggingface.co", "https://ann:secret@mirror.example"] {
            let error = Hub::new(wrong, None).err().unwrap();
            assert!(matches!(error, HubError::InvalidUrl), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        assert!(bearer_header("line\nfeed").is_err());
    }

    #[test]
    fn paths_stay_below_the_hub() {
        let base = url("https://mirror.example/hub/");
        let file = |name, path| String::from(file_url(&base, name, "main", path).unwrap());
        assert_eq!(
            file("acme/tiny", "1_Pooling/config.json"),
            "https://mirror.example/hub/acme/tiny/resolve/main/1_Pooling/config.json"
        );
        assert_eq!(
            file("acme", "../a?b#c%2e/x.json"),
            "https://mirror.example/hub/acme/resolve/main/a%3Fb%23c%252e/x.json"
        );
    }

    #[test]
    fn redirects_lead_to_secure_hosts_only() {
        let from = url("https://hub.example/a/resolve/main/x");
        let target = |base: &str, location: &'static str| {
            let headers = [(LOCATION, HeaderValue::from_static(location))];
            let target = redirect_target(&url(base), &from, &headers.into_iter().collect());
            target.ok().map(String::from)
        };
        let (remote, local) = ("https://hub.example", "http://127.0.0.1:1");
        assert_eq!(
            target(remote, "/b/x").as_deref(),
            Some("https://hub.example/b/x")
        );
        assert!(target(remote, "https://cdn.example/x").is_some());
        for refused in ["http://cdn.example/x", "http://127.0.0.1/x", "file:///x"] {
            assert_eq!(target(remote, refused), None, "{refused}");
        }
        assert!(target(local, "http://127.0.0.2:2/x").is_some());
        assert_eq!(target(local, "http://cdn.example/x"), None);
    }

    #[test]
    fn ranges_are_read_or_refused() {
        let parse = |text: &'static str| {
            let headers = [(CONTENT_RANGE, HeaderValue::from_static(text))];
            parse_content_range(&headers.into_iter().collect())
        };
        assert_eq!(parse("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(parse("bytes 5-9/*"), Some((5, None)));
        for wrong in ["bytes */10", "5-9/10", "bytes 5/10", "bytes -5-9/10"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
