//! The times of a token.

use serde_json::{Map, Value};

use super::refused::Refused;

/// Seconds by which the clocks of a provider and of this process may differ.
const LEEWAY: i64 = 60;

/// A number of seconds since 1970. Fractions are allowed (RFC 7519 section 2) and cut off.
fn seconds(claims: &Map<String, Value>, name: &str) -> Option<i64> {
    let value = claims.get(name)?;
    let fraction = || {
        let seconds = value.as_f64()?;
        // The limit below which a double is exact.
        (seconds.abs() < 9e15).then_some(seconds as i64)
    };
    value.as_i64().or_else(fraction)
}

/// Checks `exp`, `nbf` and `iat`; returns `iat`. `now` is in seconds since 1970.
pub(super) fn issued_at(claims: &Map<String, Value>, now: i64) -> Result<i64, Refused> {
    let end = seconds(claims, "exp").ok_or(Refused::Expired)?;
    if end.saturating_add(LEEWAY) <= now {
        return Err(Refused::Expired);
    }
    if claims.contains_key("nbf") {
        let begin = seconds(claims, "nbf").ok_or(Refused::NotYet)?;
        if begin.saturating_sub(LEEWAY) > now {
            return Err(Refused::NotYet);
        }
    }
    let issued = seconds(claims, "iat").ok_or(Refused::IssuedAt)?;
    if issued < 0 || issued.saturating_sub(LEEWAY) > now {
        return Err(Refused::IssuedAt);
    }
    Ok(issued)
}
