//! A response of an agent that was read as a whole.

use reqwest::StatusCode;
use serde_json::Value;

use super::CallError;
use super::foreign_text::{colon_prefixed, shorten_to_line};

pub(super) struct HttpReply {
    /// The status: never 401, 403 or a redirect, which are separate errors.
    pub status: StatusCode,
    /// The address, as it may be shown.
    pub url: String,
    /// Its `Content-Type`, or `no content type`.
    pub content_type: String,
    /// When the agent wants to be asked again (RFC 9110 section 10.2.3).
    pub retry_after: Option<String>,
    pub body: Vec<u8>,
}

impl HttpReply {
    pub fn json(&self) -> Result<Value, CallError> {
        serde_json::from_slice(&self.body).map_err(|_| CallError::NotJson {
            url: self.url.clone(),
            content_type: self.content_type.clone(),
            beginning: match self.body.is_empty() {
                true => "an empty body".to_owned(),
                false => shorten_to_line(&self.body_prefix()),
            },
        })
    }

    pub fn body_prefix(&self) -> String {
        String::from_utf8_lossy(&self.body[..self.body.len().min(1024)]).into_owned()
    }

    /// The error for an unsuccessful status, with the message in the body.
    pub fn http_error(&self) -> CallError {
        CallError::Http {
            url: self.url.clone(),
            status: self.status.as_u16(),
            detail: colon_prefixed(&self.error_message()) + &self.retry_hint(),
        }
    }

    /// When to try again, after `; `, or empty.
    fn retry_hint(&self) -> String {
        match self.retry_after.as_deref().map(shorten_to_line) {
            None => String::new(),
            Some(seconds) if seconds.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("; try again in {seconds} s")
            }
            Some(date) => format!("; try again after {date}"),
        }
    }

    /// The message in an error body: the usual members of a JSON one, or plain text.
    pub fn error_message(&self) -> String {
        let Ok(document) = serde_json::from_slice::<Value>(&self.body) else {
            let plain = self.content_type.starts_with("text/plain");
            return if plain {
                self.body_prefix()
            } else {
                String::new()
            };
        };
        [
            "/error/message",
            "/message",
            "/detail",
            "/title",
            "/error_description",
            "/error",
        ]
        .iter()
        .find_map(|pointer| document.pointer(pointer)?.as_str())
        .unwrap_or_default()
        .to_owned()
    }
}
