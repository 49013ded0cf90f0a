//! Identity tokens of OpenID Connect.

use serde_json::{Map, Value};

use super::refused::Refused;
use super::times::issued_at;

#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    pub issuer: &'a str,
    pub client_id: &'a str,
    pub nonce: &'a str,
    /// The time in seconds since 1970.
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
pub(super) fn check(
    typ: Option<&str>,
    claims: &Map<String, Value>,
    expected: &Expected<'_>,
) -> Result<i64, Refused> {
    // An access token or a logout token is not an identity token, whatever else it says (RFC 8725 section 3.11).
    if typ.is_some_and(|typ| !typ.eq_ignore_ascii_case("JWT")) {
        return Err(Refused::Type);
    }
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(expected.issuer) {
        return Err(Refused::Issuer);
    }
    let audiences = audiences(claims);
    if !audiences.contains(&expected.client_id) {
        return Err(Refused::Audience);
    }
    let party = text("azp");
    if (audiences.len() > 1 || claims.contains_key("azp")) && party != Some(expected.client_id) {
        return Err(Refused::Party);
    }
    let issued = issued_at(claims, expected.now)?;
    if text("nonce") != Some(expected.nonce) {
        return Err(Refused::Nonce);
    }
    Ok(issued)
}
