//! The target of the browser redirect: a port of this machine that receives one code (RFC 8252 section 7.3).

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

use super::OauthError;

/// Longest wait for a person to sign in.
pub const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Size limit and time limit of a browser request.
const MAX_REQUEST_BYTES: usize = 16 * 1024;
const BROWSER_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of concurrent connections; browsers open some that they do not use.
const MAX_CONNECTIONS: usize = 16;

const CALLBACK_PATH: &str = "/callback";

/// A port on 127.0.0.1, chosen by the system, to which the browser is redirected. Dropping it closes the port.
pub struct LoopbackRedirect {
    listener: TcpListener,
    url: Url,
}

type OauthRedirectResult = Result<String, (String, Option<String>)>;

impl LoopbackRedirect {
    /// Opens a free port.
    pub async fn open() -> Result<Self, OauthError> {
        let port_error = |reason: String| OauthError::PortUnavailable { reason };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.map_err(|error| port_error(error.to_string()))?;
        let address = listener.local_addr();
        let address = address.map_err(|error| port_error(error.to_string()))?;
        let url = Url::parse(&format!("http://{address}{CALLBACK_PATH}"));
        let url = url.map_err(|error| port_error(error.to_string()))?;
        Ok(Self { listener, url })
    }

    /// The address to which the browser is redirected.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Waits for the code, at most [`SIGN_IN_TIMEOUT`]. Requests without the right `state`, or from another than the
    /// known `issuer` (RFC 9207), are rejected, and the port stays open for the right request. Errors name `server`.
    pub async fn wait_for_code(
        self,
        state: &str,
        issuer: Option<&str>,
        server: &str,
    ) -> Result<String, OauthError> {
        let waited = timeout(SIGN_IN_TIMEOUT, self.wait_for_redirect(state, issuer)).await;
        match waited {
            Ok(Some(Ok(code))) => Ok(code),
            Ok(Some(Err((code, description)))) => Err(OauthError::from_error_code(
                server,
                &code,
                description.as_deref(),
            )),
            Ok(None) | Err(_) => Err(OauthError::SignInTimedOut {
                limit: SIGN_IN_TIMEOUT,
            }),
        }
    }

    async fn wait_for_redirect(
        self,
        state: &str,
        issuer: Option<&str>,
    ) -> Option<OauthRedirectResult> {
        let (sender, mut receiver) = mpsc::channel(1);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                redirect_result = receiver.recv() => {
                    // The page with the result is written before the code is passed on.
                    connections.abort_all();
                    return redirect_result;
                }
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    let Ok((stream, _)) = accepted else { continue };
                    let expected = (state.to_owned(), issuer.map(str::to_owned));
                    let sender = sender.clone();
                    connections.spawn(async move {
                        let served = timeout(BROWSER_REQUEST_TIMEOUT, serve_oauth_redirect(stream, &expected.0, expected.1.as_deref()));
                        if let Ok(Some(returned)) = served.await {
                            let _ = sender.send(returned).await;
                        }
                    });
                }
                _ = connections.join_next(), if !connections.is_empty() => {}
            }
        }
    }
}

/// Responds to one request; returns its result if it is the right one.
async fn serve_oauth_redirect(
    mut stream: TcpStream,
    state: &str,
    issuer: Option<&str>,
) -> Option<OauthRedirectResult> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > MAX_REQUEST_BYTES || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let redirect_result = parse_oauth_redirect(&String::from_utf8_lossy(&head), state, issuer);
    let (status, message) = match &redirect_result {
        Some(Ok(_)) => ("200 OK", "You are signed in. You can close this window."),
        Some(Err(_)) => (
            "200 OK",
            "The sign-in was rejected. You can close this window.",
        ),
        None => (
            "400 Bad Request",
            "This request does not belong to a sign-in that was started here.",
        ),
    };
    let page =
        format!("<!doctype html><meta charset=\"utf-8\"><title>Sign-in</title><p>{message}</p>");
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         content-security-policy: default-src 'none'\r\nreferrer-policy: no-referrer\r\ncache-control: no-store\r\n\
         connection: close\r\n\r\n{page}",
        page.len()
    );
    // The code is valid even if the browser has disconnected.
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
    redirect_result
}

/// Parses the right request; `None` for any other.
fn parse_oauth_redirect(
    head: &str,
    state: &str,
    issuer: Option<&str>,
) -> Option<OauthRedirectResult> {
    let mut words = head.lines().next()?.split(' ');
    let target = words
        .next()
        .filter(|method| *method == "GET")
        .and(words.next())?;
    let url = Url::parse("http://127.0.0.1").ok()?.join(target).ok()?;
    if url.path() != CALLBACK_PATH || url.host_str() != Some("127.0.0.1") {
        return None;
    }
    let query_value = |name: &str| {
        let mut values = url.query_pairs().filter(|(key, _)| key == name);
        let first = values.next().map(|(_, value)| value.into_owned());
        // A repeated parameter is rejected as a possible attack.
        first.filter(|value| values.next().is_none() && !value.is_empty())
    };
    if query_value("state")? != state
        || issuer.is_some_and(|issuer| query_value("iss").as_deref() != Some(issuer))
    {
        return None;
    }
    match query_value("error") {
        Some(code) => Some(Err((code, query_value("error_description")))),
        None => query_value("code").map(Ok),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn get(target: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    }

    #[test]
    fn only_the_answer_to_this_sign_in_is_taken() {
        let right = get("/callback?code=c&state=s&iss=https://l.example");
        assert_eq!(
            parse_oauth_redirect(&right, "s", None),
            Some(Ok("c".to_owned()))
        );
        assert_eq!(
            parse_oauth_redirect(&right, "s", Some("https://l.example")),
            Some(Ok("c".to_owned()))
        );
        assert_eq!(
            parse_oauth_redirect(&right, "s", Some("https://m.example")),
            None
        );
        assert_eq!(
            parse_oauth_redirect(
                &get("/callback?code=c&state=s"),
                "s",
                Some("https://l.example")
            ),
            None
        );
        for wrong in [
            "/callback?code=c",
            "/callback?code=c&state=t",
            "/callback?code=c&state=s&state=s",
            "/callback?code=c&code=d&state=s",
            "/callback?code=&state=s",
            "/?code=c&state=s",
            "//evil.example/callback?code=c&state=s",
            "http://evil.example/callback?code=c&state=s",
        ] {
            assert_eq!(
                parse_oauth_redirect(&get(wrong), "s", None),
                None,
                "{wrong}"
            );
        }
        assert_eq!(
            parse_oauth_redirect(&right.replace("GET", "POST"), "s", None),
            None
        );
        assert_eq!(parse_oauth_redirect("", "s", None), None);
        let refused =
            parse_oauth_redirect(&get("/callback?error=access_denied&state=s"), "s", None);
        assert_eq!(refused, Some(Err(("access_denied".to_owned(), None))));
    }
}
