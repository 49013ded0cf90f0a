//! Identity tokens of OpenID Connect.

use serde_json::{Map, Value};

use super::token_rejection::TokenRejection;
use super::token_times::check_token_times;

#[derive(Debug, Clone, Copy)]
pub(super) struct ExpectedClaims<'a> {
    pub issuer: &'a str,
    pub client_id: &'a str,
    pub nonce: &'a str,
    /// The current time in seconds since 1970.
    pub now: i64,
}

/// The values of `aud`.
pub(super) fn audiences(claims: &Map<String, Value>) -> Vec<&str> {
    match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Checks verified claims; returns when they were issued.
pub(super) fn check_id_token_claims(
    typ: Option<&str>,
    claims: &Map<String, Value>,
    expected: &ExpectedClaims<'_>,
) -> Result<i64, TokenRejection> {
    // An access token or a logout token is not an identity token, regardless of its claims (RFC 8725 section 3.11).
    if typ.is_some_and(|typ| !typ.eq_ignore_ascii_case("JWT")) {
        return Err(TokenRejection::Type);
    }
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(expected.issuer) {
        return Err(TokenRejection::Issuer);
    }
    let audiences = audiences(claims);
    if !audiences.contains(&expected.client_id) {
        return Err(TokenRejection::Audience);
    }
    let authorized_party = text("azp");
    if (audiences.len() > 1 || claims.contains_key("azp"))
        && authorized_party != Some(expected.client_id)
    {
        return Err(TokenRejection::AuthorizedParty);
    }
    let issued = check_token_times(claims, expected.now)?;
    if text("nonce") != Some(expected.nonce) {
        return Err(TokenRejection::Nonce);
    }
    Ok(issued)
}
