//! Sends a form to an authorization server that the operator has configured, and reads the response.

use std::fmt;

use data_encoding::BASE64;
use reqwest::header::HeaderValue;
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::exchange::BodyLimits;
use super::{Fetched, Fetcher, NotAToken};

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// The name and password of a client at an authorization server (RFC 6749 section 2.3.1). They are never displayed.
#[derive(Clone)]
pub struct ClientPassword(HeaderValue);

impl ClientPassword {
    /// Takes both as the server has issued them.
    pub fn new(client: &str, password: &str) -> Result<Self, NotAToken> {
        let part = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let pair = BASE64.encode(format!("{}:{}", part(client), part(password)).as_bytes());
        let mut value = HeaderValue::from_str(&format!("Basic {pair}")).map_err(|_| NotAToken)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

impl fmt::Debug for ClientPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientPassword(…)")
    }
}

/// Options of a request, besides its fields.
#[derive(Debug, Clone, Copy, Default)]
pub struct FormOptions<'a> {
    /// Sent to this URL only.
    pub password: Option<&'a ClientPassword>,
    /// Most bytes of the body, of a 200 and of any other status; a longer one of another status counts as none.
    pub body: usize,
}

impl Fetcher {
    /// Sends a form to one URL like [`Fetcher::post_json`]: it is sent once, and a redirect is a failure.
    pub async fn post_form(
        &self,
        url: &Url,
        fields: &[(&str, &str)],
        options: &FormOptions<'_>,
    ) -> Fetched {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(fields);
        let most = BodyLimits {
            body: options.body,
            reason: options.body,
        };
        let authorization = options.password.map(|ClientPassword(value)| value);
        let body = (FORM, form.finish().into_bytes());
        self.post(url, body, authorization, most).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_password_is_escaped_once_and_shown_by_nothing() {
        let password = ClientPassword::new("a b", "hu:sh%").unwrap();
        let pair = BASE64.encode(b"a+b:hu%3Ash%25");
        assert_eq!(password.0.to_str().unwrap(), format!("Basic {pair}"));
        assert!(password.0.is_sensitive());
        assert!(!format!("{password:?}").contains("hu"));
    }
}
