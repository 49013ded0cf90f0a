//! Access tokens (RFC 9068).

use serde_json::{Map, Value};

use super::id_token::audiences;
use super::token_rejection::TokenRejection;
use super::token_times::check_token_times;

const ACCESS_TOKEN_TYPES: [&str; 2] = ["at+jwt", "application/at+jwt"];

/// Checks verified claims; returns when they were issued. `now` is in seconds since 1970.
pub(super) fn check_access_token_claims(
    typ: Option<&str>,
    claims: &Map<String, Value>,
    issuer: &str,
    accepted_audiences: &[String],
    now: i64,
) -> Result<i64, TokenRejection> {
    // An identity token identifies a person to another client, and grants no access (RFC 8725 section 3.11).
    let is_access_token = |typ: &str| {
        ACCESS_TOKEN_TYPES
            .iter()
            .any(|one| typ.eq_ignore_ascii_case(one))
    };
    if !typ.is_some_and(is_access_token) {
        return Err(TokenRejection::Type);
    }
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(issuer) {
        return Err(TokenRejection::Issuer);
    }
    let is_for_us = |audience: &&str| accepted_audiences.iter().any(|own| own == audience);
    if !audiences(claims).iter().any(is_for_us) {
        return Err(TokenRejection::Audience);
    }
    if text("client_id").is_none() {
        return Err(TokenRejection::AuthorizedParty);
    }
    // A stolen token of this kind must not be usable (RFC 7800), and this registry does not check the proof of
    // possession.
    if claims.contains_key("cnf") {
        return Err(TokenRejection::KeyBound);
    }
    check_token_times(claims, now)
}
