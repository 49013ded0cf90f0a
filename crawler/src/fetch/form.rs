//! Sends a form to an authorization server that the operator has configured, and reads the response.

use std::fmt;

use data_encoding::BASE64;
use reqwest::header::HeaderValue;
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::single_request::BodyLimits;
use super::{FetchRecord, Fetcher, InvalidToken};

const FORM_MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// The id and secret of a client at an authorization server (RFC 6749 section 2.3.1). They are never displayed.
#[derive(Clone)]
pub struct ClientSecretBasic(HeaderValue);

impl ClientSecretBasic {
    /// Encodes both values as issued by the server.
    pub fn new(client_id: &str, client_secret: &str) -> Result<Self, InvalidToken> {
        let part = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let pair = BASE64.encode(format!("{}:{}", part(client_id), part(client_secret)).as_bytes());
        let mut value =
            HeaderValue::from_str(&format!("Basic {pair}")).map_err(|_| InvalidToken)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

impl fmt::Debug for ClientSecretBasic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientPassword(…)")
    }
}

/// Options of a request, apart from its form fields.
#[derive(Debug, Clone, Copy, Default)]
pub struct FormOptions<'a> {
    /// Credentials, sent to this URL only.
    pub client_secret: Option<&'a ClientSecretBasic>,
    /// Maximum size of the body in bytes, of a 200 and of any other status; a longer one of another status is dropped.
    pub max_body_bytes: usize,
}

impl Fetcher {
    /// Sends a form to one URL like [`Fetcher::post_json`]: it is sent once, and a redirect is a failure.
    pub async fn post_form(
        &self,
        url: &Url,
        fields: &[(&str, &str)],
        options: &FormOptions<'_>,
    ) -> FetchRecord {
        // The serializer is not `Send`, so it ends before the request is sent.
        let form = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        let body_limits = BodyLimits {
            success_bytes: options.max_body_bytes,
            error_bytes: options.max_body_bytes,
        };
        let authorization = options.client_secret.map(|ClientSecretBasic(value)| value);
        let body = (FORM_MEDIA_TYPE, form.into_bytes());
        self.post_body(url, body, authorization, body_limits).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_password_is_escaped_once_and_shown_by_nothing() {
        let password = ClientSecretBasic::new("a b", "hu:sh%").unwrap();
        let pair = BASE64.encode(b"a+b:hu%3Ash%25");
        assert_eq!(password.0.to_str().unwrap(), format!("Basic {pair}"));
        assert!(password.0.is_sensitive());
        assert!(!format!("{password:?}").contains("hu"));
    }
}
