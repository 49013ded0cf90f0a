//! Access tokens for sources: how they are obtained, and kept in memory until they expire.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use url::Url;

use super::{BearerToken, ClientSecretBasic, Fetcher, FormOptions};

/// Maximum size in bytes of the response of a token endpoint.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// Maximum number of tokens kept; beyond it the one that expires first is dropped, and requested again when needed.
const MAX_TOKENS: usize = 1000;
/// A token is not used in the last minute before it expires, because a visit takes some time.
const EXPIRY_MARGIN: Duration = Duration::from_secs(60);
/// Maximum time for which a token is kept, so that the end of a client is noticed.
const MAX_LIFETIME: Duration = Duration::from_secs(3600);

/// A token as a token endpoint has issued it.
#[derive(Debug)]
pub(super) struct IssuedToken {
    pub token: BearerToken,
    /// 0 if the endpoint does not say, so that the token is used once.
    pub lifetime_seconds: u64,
}

/// The tokens by the keys of their credentials.
#[derive(Debug, Default)]
pub(super) struct AccessTokens(Mutex<HashMap<i64, StoredToken>>);

#[derive(Debug)]
struct StoredToken {
    token: BearerToken,
    usable_until: Duration,
}

impl AccessTokens {
    fn lock(&self) -> MutexGuard<'_, HashMap<i64, StoredToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token of a credential that is still usable at this monotonic time.
    pub(super) fn find(&self, key: i64, now: Duration) -> Option<BearerToken> {
        let tokens = self.lock();
        let stored = tokens.get(&key).filter(|stored| stored.usable_until > now);
        stored.map(|stored| stored.token.clone())
    }

    pub(super) fn insert(&self, key: i64, issued: IssuedToken, now: Duration) {
        let lifetime = Duration::from_secs(issued.lifetime_seconds).min(MAX_LIFETIME);
        let lifetime = lifetime.saturating_sub(EXPIRY_MARGIN);
        if lifetime.is_zero() {
            return;
        }
        let mut tokens = self.lock();
        tokens.retain(|_, stored| stored.usable_until > now);
        if tokens.len() >= MAX_TOKENS && !tokens.contains_key(&key) {
            let first = tokens.iter().min_by_key(|(_, stored)| stored.usable_until);
            if let Some(first) = first.map(|(key, _)| *key) {
                tokens.remove(&first);
            }
        }
        let stored = StoredToken {
            token: issued.token,
            usable_until: now + lifetime,
        };
        tokens.insert(key, stored);
    }

    pub(super) fn forget(&self, key: i64) {
        self.lock().remove(&key);
    }
}

impl Fetcher {
    /// Asks a token endpoint for an access token. Its response is never shown or logged: it is chosen by a host that
    /// the owner of a source has named, and may repeat the secret.
    pub(super) async fn request_access_token(
        &self,
        token_url: &Url,
        secret: &ClientSecretBasic,
        scope: Option<&str>,
    ) -> Option<IssuedToken> {
        let mut fields = vec![("grant_type", "client_credentials")];
        fields.extend(scope.map(|scope| ("scope", scope)));
        let options = FormOptions {
            client_secret: Some(secret),
            max_body_bytes: MAX_RESPONSE_BYTES,
        };
        let response = self.post_form(token_url, &fields, &options).await.result;
        let response = response.ok().filter(|response| response.status == 200)?;
        parse_token_response(&response.body)
    }
}

/// Parses the response of a token endpoint (RFC 6749 section 5.1).
fn parse_token_response(body: &[u8]) -> Option<IssuedToken> {
    let response: Value = serde_json::from_slice(body).ok()?;
    let is_bearer = |kind: &str| kind.eq_ignore_ascii_case("bearer");
    response
        .get("token_type")?
        .as_str()
        .filter(|kind| is_bearer(kind))?;
    let token = response.get("access_token")?.as_str()?;
    let lifetime = response.get("expires_in").and_then(Value::as_u64);
    Some(IssuedToken {
        token: BearerToken::new(token).ok()?,
        lifetime_seconds: lifetime.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const START: Duration = Duration::from_secs(10_000);

    fn issued(lifetime_seconds: u64) -> IssuedToken {
        IssuedToken {
            token: BearerToken::new("hush-7").unwrap(),
            lifetime_seconds,
        }
    }

    fn is_kept(tokens: &AccessTokens, key: i64, after_seconds: u64) -> bool {
        let now = START + Duration::from_secs(after_seconds);
        tokens.find(key, now).is_some()
    }

    #[test]
    fn a_token_is_used_until_a_minute_before_it_expires_and_at_most_an_hour() {
        let tokens = AccessTokens::default();
        for (key, lifetime) in [(1, 0), (2, 60), (3, 61), (4, 3600), (5, u64::MAX)] {
            tokens.insert(key, issued(lifetime), START);
        }
        assert!(!is_kept(&tokens, 1, 0) && !is_kept(&tokens, 2, 0));
        assert!(is_kept(&tokens, 3, 0) && !is_kept(&tokens, 3, 1));
        for key in [4, 5] {
            assert!(is_kept(&tokens, key, 3539) && !is_kept(&tokens, key, 3540));
        }
        tokens.forget(4);
        assert!(!is_kept(&tokens, 4, 0));
    }

    #[test]
    fn as_many_tokens_as_allowed_are_kept_and_the_first_to_expire_gives_way() {
        let tokens = AccessTokens::default();
        let most = i64::try_from(MAX_TOKENS).unwrap();
        for key in 0..most {
            let lifetime = 1000 + u64::from(key != 7);
            tokens.insert(key, issued(lifetime), START);
        }
        assert_eq!(tokens.lock().len(), MAX_TOKENS);
        tokens.insert(0, issued(1000), START);
        assert!(
            is_kept(&tokens, 7, 0),
            "a token that replaces itself needs no room"
        );
        tokens.insert(0, issued(1001), START);
        tokens.insert(most, issued(1001), START);
        assert_eq!(tokens.lock().len(), MAX_TOKENS);
        assert!(!is_kept(&tokens, 7, 0) && is_kept(&tokens, most, 0));
        let later = START + Duration::from_secs(2000);
        tokens.insert(1, issued(1000), later);
        assert_eq!(tokens.lock().len(), 1, "expired tokens are dropped");
    }

    #[test]
    fn a_token_response_is_read_as_the_standard_says() {
        let parse = |text: &str| {
            let issued = parse_token_response(text.as_bytes())?;
            Some(issued.lifetime_seconds)
        };
        assert_eq!(
            parse(r#"{"access_token":"t","token_type":"bearer","expires_in":60}"#),
            Some(60)
        );
        assert_eq!(
            parse(r#"{"access_token":"t","token_type":"Bearer"}"#),
            Some(0)
        );
        for unusable in [
            "",
            "[]",
            r#"{"access_token":"t"}"#,
            r#"{"access_token":"t","token_type":"mac"}"#,
            r#"{"access_token":"a b","token_type":"bearer"}"#,
            r#"{"access_token":7,"token_type":"bearer"}"#,
            r#"{"error":"invalid_client"}"#,
        ] {
            assert_eq!(parse(unusable), None, "{unusable}");
        }
    }
}
