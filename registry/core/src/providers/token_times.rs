//! The times of a token.

use serde_json::{Map, Value};

use super::token_rejection::TokenRejection;

/// Maximum difference between the clocks of a provider and this process, in seconds.
const CLOCK_LEEWAY_SECONDS: i64 = 60;

/// Returns a claim in seconds since 1970. Fractions are allowed (RFC 7519 section 2) and truncated.
fn numeric_date(claims: &Map<String, Value>, name: &str) -> Option<i64> {
    let value = claims.get(name)?;
    let fraction = || {
        let seconds = value.as_f64()?;
        // The limit below which a double is exact.
        (seconds.abs() < 9e15).then_some(seconds as i64)
    };
    value.as_i64().or_else(fraction)
}

/// Checks `exp`, `nbf` and `iat`; returns `iat`. `now` is in seconds since 1970.
pub(super) fn check_token_times(
    claims: &Map<String, Value>,
    now: i64,
) -> Result<i64, TokenRejection> {
    let end = numeric_date(claims, "exp").ok_or(TokenRejection::Expired)?;
    if end.saturating_add(CLOCK_LEEWAY_SECONDS) <= now {
        return Err(TokenRejection::Expired);
    }
    if claims.contains_key("nbf") {
        let begin = numeric_date(claims, "nbf").ok_or(TokenRejection::NotYetValid)?;
        if begin.saturating_sub(CLOCK_LEEWAY_SECONDS) > now {
            return Err(TokenRejection::NotYetValid);
        }
    }
    let issued = numeric_date(claims, "iat").ok_or(TokenRejection::IssuedAt)?;
    if issued < 0 || issued.saturating_sub(CLOCK_LEEWAY_SECONDS) > now {
        return Err(TokenRejection::IssuedAt);
    }
    Ok(issued)
}
