//! Freshness of a response (RFC 9111, as a shared cache) and its validators (RFC 9110).
//!
//! `fetch/source.rs` makes conditional requests and handles a 304; the program that stores the source then keeps the
//! card and records the success (`crawl/ingest/source.rs` of the server).

use std::collections::BTreeSet;
use std::time::SystemTime;

use reqwest::header::{
    AGE, AsHeaderName, CACHE_CONTROL, DATE, ETAG, EXPIRES, HeaderMap, LAST_MODIFIED, RETRY_AFTER,
    VARY,
};
use time::OffsetDateTime;

use crate::{Freshness, Validators};

/// Maximum wait that an origin can request: 7 days, in seconds.
pub const MAX_RETRY_AFTER: u32 = 7 * 24 * 60 * 60;
/// Maximum length of a stored `ETag`; a longer one is ignored.
const MAX_ETAG_BYTES: usize = 512;
const MAX_VARY_BYTES: usize = 256;
const MAX_LAST_MODIFIED_BYTES: usize = 64;

/// Reads the freshness of a 200 or a 304. `requested_url` is the URL before redirects. The validators in
/// `sent_validators` stay valid after a 304 that names no others (RFC 9111 section 4.3.4).
pub fn parse_freshness(
    headers: &HeaderMap,
    requested_url: &str,
    sent_validators: Option<&Validators>,
    now: OffsetDateTime,
) -> Freshness {
    let previous = sent_validators.cloned().unwrap_or_default();
    let etag = bounded_header_value(headers, ETAG, MAX_ETAG_BYTES).or(previous.etag);
    let last_modified = bounded_header_value(headers, LAST_MODIFIED, MAX_LAST_MODIFIED_BYTES)
        .or(previous.last_modified);
    let validators = (etag.is_some() || last_modified.is_some()).then(|| Validators {
        url: requested_url.to_owned(),
        etag,
        last_modified,
    });
    Freshness {
        validators,
        max_age: seconds_fresh(headers, now),
        vary: parse_vary(headers),
    }
}

/// The names in `Vary`, or `*` if it is among them; names beyond the limit are dropped.
fn parse_vary(headers: &HeaderMap) -> Option<String> {
    let values = headers
        .get_all(VARY)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let names: BTreeSet<String> = values
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty())
        .collect();
    if names.contains("*") {
        return Some("*".to_owned());
    }
    let mut list = String::new();
    for name in names {
        if list.len() + ", ".len() + name.len() > MAX_VARY_BYTES {
            break;
        }
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push_str(&name);
    }
    Some(list).filter(|list| !list.is_empty())
}

/// Seconds for which a response stays fresh: `s-maxage`, else `max-age`, else `Expires` less `Date`, each less `Age`
/// (RFC 9111 sections 4.2.1 and 4.2.3). Zero if no shared cache may reuse the response or the values are unreadable.
pub fn seconds_fresh(headers: &HeaderMap, now: OffsetDateTime) -> Option<u32> {
    let control = CacheControl::from_headers(headers);
    // A response with `Vary: *` never matches a later request (RFC 9111 section 4.1).
    if control.is_unusable || parse_vary(headers).as_deref() == Some("*") {
        return Some(0);
    }
    let lifetime = match control.s_maxage.or(control.max_age) {
        Some(seconds) => seconds,
        None => {
            let expires = headers.get(EXPIRES)?;
            let Some(expires) = expires.to_str().ok().and_then(parse_http_date) else {
                // An unreadable date, in particular "0", means already expired (RFC 9111 section 5.3).
                return Some(0);
            };
            let date = first_header_value(headers, DATE)
                .and_then(parse_http_date)
                .unwrap_or(now);
            seconds_between(date, expires)
        }
    };
    let age = first_header_value(headers, AGE)
        .and_then(parse_delta_seconds)
        .unwrap_or(0);
    Some(lifetime.saturating_sub(age))
}

/// Seconds of `Retry-After` from `now`, at most [`MAX_RETRY_AFTER`], in either form of RFC 9110 section 10.2.3.
pub fn parse_retry_after(headers: &HeaderMap, now: OffsetDateTime) -> Option<u32> {
    let value = first_header_value(headers, RETRY_AFTER)?.trim();
    let seconds = parse_delta_seconds(value)
        .or_else(|| parse_http_date(value).map(|date| seconds_between(now, date)))?;
    Some(seconds.min(MAX_RETRY_AFTER))
}

/// Directives of `Cache-Control` that apply to a shared cache.
#[derive(Debug, Default)]
struct CacheControl {
    /// `no-store`, `no-cache` or `private` in any form, or a lifetime that is not a number, was found.
    is_unusable: bool,
    s_maxage: Option<u32>,
    max_age: Option<u32>,
}

impl CacheControl {
    /// If a directive is repeated, the first one counts (RFC 9111 section 4.2.1).
    fn from_headers(headers: &HeaderMap) -> Self {
        let mut control = Self::default();
        for value in headers.get_all(CACHE_CONTROL) {
            let Ok(value) = value.to_str() else {
                control.is_unusable = true;
                continue;
            };
            for directive in split_unquoted(value) {
                let (name, argument) = directive.split_once('=').unwrap_or((directive, ""));
                match name.trim().to_ascii_lowercase().as_str() {
                    "no-store" | "no-cache" | "private" => control.is_unusable = true,
                    "s-maxage" => control.set_lifetime(argument, |c| &mut c.s_maxage),
                    "max-age" => control.set_lifetime(argument, |c| &mut c.max_age),
                    _ => {}
                }
            }
        }
        control
    }

    fn set_lifetime(&mut self, argument: &str, field: impl Fn(&mut Self) -> &mut Option<u32>) {
        match parse_delta_seconds(argument.trim().trim_matches('"')) {
            Some(seconds) => {
                field(self).get_or_insert(seconds);
            }
            None => self.is_unusable = true,
        }
    }
}

/// The elements of a comma-separated list; commas inside quotes do not separate.
fn split_unquoted(value: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    value
        .split(move |c| {
            quoted ^= c == '"';
            c == ',' && !quoted
        })
        .map(str::trim)
        .filter(|member| !member.is_empty())
}

/// A number of seconds; a number that does not fit 32 bits becomes the largest one (RFC 9111 section 1.2.2).
fn parse_delta_seconds(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u32::MAX))
}

/// Parses the three date forms of RFC 9110 section 5.6.7.
pub fn parse_http_date(text: &str) -> Option<OffsetDateTime> {
    let date: SystemTime = httpdate::parse_http_date(text.trim()).ok()?;
    Some(OffsetDateTime::from(date))
}

/// Seconds from one time to another; zero if the end is before the start.
fn seconds_between(from: OffsetDateTime, until: OffsetDateTime) -> u32 {
    let seconds = (until - from).whole_seconds().max(0);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

/// The first value of a header field, as visible ASCII.
fn first_header_value(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn bounded_header_value(
    headers: &HeaderMap,
    name: impl AsHeaderName,
    limit: usize,
) -> Option<String> {
    first_header_value(headers, name)
        .filter(|value| !value.is_empty() && value.len() <= limit)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use reqwest::header::{HeaderName, HeaderValue};
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(1994-11-06 08:49:37 UTC);

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .fold(HeaderMap::new(), |mut map, (name, value)| {
                map.append(name, value);
                map
            })
    }

    #[test]
    fn lifetimes_come_in_the_order_of_the_rfc() {
        for (pairs, expected) in [
            (&[][..], None),
            (&[("cache-control", "public")], None),
            (&[("cache-control", "max-age=60")], Some(60)),
            (&[("cache-control", "Max-Age=60 , S-MaxAge=30")], Some(30)),
            (&[("cache-control", "max-age=\"60\"")], Some(60)),
            (&[("cache-control", "max-age=60, max-age=10")], Some(60)),
            (
                &[("cache-control", "public"), ("cache-control", "max-age=5")],
                Some(5),
            ),
            (&[("cache-control", "max-age=60"), ("age", "20")], Some(40)),
            (&[("cache-control", "max-age=60"), ("age", "90")], Some(0)),
            (&[("cache-control", "max-age=60"), ("age", "x")], Some(60)),
            (
                &[("cache-control", "max-age=99999999999999")],
                Some(u32::MAX),
            ),
            (&[("cache-control", "max-age=60, no-store")], Some(0)),
            (&[("cache-control", "no-cache")], Some(0)),
            (
                &[("cache-control", "no-cache=\"set-cookie, x\", max-age=60")],
                Some(0),
            ),
            (&[("cache-control", "private, max-age=60")], Some(0)),
            (&[("cache-control", "max-age=-1")], Some(0)),
            (&[("cache-control", "max-age")], Some(0)),
            (
                &[("cache-control", "ext=\"max-age=1, no-store\", max-age=7")],
                Some(7),
            ),
            (
                &[
                    ("expires", "Sun, 06 Nov 1994 09:49:37 GMT"),
                    ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ],
                Some(3600),
            ),
            (&[("expires", "Sunday, 06-Nov-94 08:50:37 GMT")], Some(60)),
            (&[("expires", "Sun Nov  6 08:50:37 1994")], Some(60)),
            (&[("expires", "Sun, 06 Nov 1994 08:49:36 GMT")], Some(0)),
            (&[("expires", "0")], Some(0)),
            (
                &[
                    ("cache-control", "max-age=1"),
                    ("expires", "Sun, 06 Nov 1994 09:49:37 GMT"),
                ],
                Some(1),
            ),
        ] {
            assert_eq!(seconds_fresh(&headers(pairs), NOW), expected, "{pairs:?}");
        }
    }

    #[test]
    fn what_an_answer_differs_by_is_recorded_within_a_bound() {
        let recorded =
            |pairs| parse_freshness(&headers(pairs), "https://a.example.com/", None, NOW).vary;
        assert_eq!(recorded(&[]), None);
        assert_eq!(recorded(&[("vary", " , ")]), None);
        assert_eq!(
            recorded(&[
                ("vary", "Accept-Encoding, A2A-Version"),
                ("vary", "accept-encoding")
            ]),
            Some("a2a-version, accept-encoding".to_owned())
        );
        let any = [("vary", "accept, *"), ("cache-control", "max-age=60")];
        assert_eq!(recorded(&any), Some("*".to_owned()));
        assert_eq!(seconds_fresh(&headers(&any), NOW), Some(0));
        let mut map = HeaderMap::new();
        for n in 0..100 {
            map.append(
                VARY,
                HeaderValue::from_str(&format!("x-field-{n}")).unwrap(),
            );
        }
        let list = parse_vary(&map).unwrap();
        assert!((200..=MAX_VARY_BYTES).contains(&list.len()), "{list}");
    }

    #[test]
    fn retry_after_is_read_in_both_forms_and_capped() {
        for (value, expected) in [
            ("120", Some(120)),
            ("0", Some(0)),
            ("604800", Some(MAX_RETRY_AFTER)),
            ("604801", Some(MAX_RETRY_AFTER)),
            ("99999999999999999999", Some(MAX_RETRY_AFTER)),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some(120)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("Sat, 06 Nov 2094 08:49:37 GMT", Some(MAX_RETRY_AFTER)),
            ("soon", None),
            ("-5", None),
        ] {
            assert_eq!(
                parse_retry_after(&headers(&[("retry-after", value)]), NOW),
                expected,
                "{value}"
            );
        }
        assert_eq!(parse_retry_after(&HeaderMap::new(), NOW), None);
    }

    #[test]
    fn a_304_refreshes_what_it_names_and_keeps_the_rest() {
        let sent = Validators {
            url: "https://a.example.com/".to_owned(),
            etag: Some("\"1\"".to_owned()),
            last_modified: Some("then".to_owned()),
        };
        let kept = parse_freshness(&HeaderMap::new(), &sent.url, Some(&sent), NOW);
        assert_eq!(kept.validators.as_ref(), Some(&sent));
        let answer = headers(&[("etag", "W/\"2\""), ("cache-control", "max-age=9")]);
        let refreshed = parse_freshness(&answer, &sent.url, Some(&sent), NOW);
        let validators = refreshed.validators.unwrap();
        assert_eq!(validators.etag.as_deref(), Some("W/\"2\""));
        assert_eq!(validators.last_modified.as_deref(), Some("then"));
        assert_eq!(refreshed.max_age, Some(9));
    }

    #[test]
    fn an_oversized_validator_is_ignored() {
        for (length, kept) in [(MAX_ETAG_BYTES, true), (MAX_ETAG_BYTES + 1, false)] {
            let mut map = HeaderMap::new();
            map.insert(ETAG, HeaderValue::from_str(&"e".repeat(length)).unwrap());
            let found = parse_freshness(&map, "https://a.example.com/", None, NOW);
            assert_eq!(found.validators.is_some(), kept);
        }
    }
}
