//! Request ids and W3C trace contexts, which link a request to its log lines.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

/// Request id header, in requests and responses. Bodies never contain the id, so that equal responses are
/// byte-identical.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Maximum length of an id from a caller.
const MAX_ID_LENGTH: usize = 64;

#[derive(Debug)]
pub struct RequestIdGenerator {
    prefix: u64,
    next: AtomicU64,
}

impl RequestIdGenerator {
    /// Creates a generator with a random prefix, so that two processes produce different ids.
    pub(crate) fn new() -> Self {
        Self {
            prefix: RandomState::new().hash_one(std::process::id()),
            next: AtomicU64::new(1),
        }
    }

    /// The caller's id if it is a plain word of at most 64 characters, otherwise a new one.
    pub fn for_request(&self, headers: &HeaderMap) -> HeaderValue {
        if let Some(id) = headers.get(X_REQUEST_ID)
            && is_valid_request_id(id.as_bytes())
        {
            return id.clone();
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        HeaderValue::from_bytes(&format_request_id(self.prefix, number))
            .unwrap_or_else(|_| HeaderValue::from_static("unknown"))
    }

    /// A new span id: 16 hexadecimal digits, never all zero.
    pub fn new_span_id(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // An odd factor maps different numbers to different products.
        let mixed = (self.prefix | 1).wrapping_mul(number);
        format!("{:016x}", if mixed == 0 { 1 } else { mixed })
    }
}

/// Formats two numbers as 16 hexadecimal digits each, joined by a dash. Every request has such an id; standard
/// formatting would cost more than the rest of its generation.
fn format_request_id(first: u64, second: u64) -> [u8; 33] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'-'; 33];
    for (number, offset) in [(first, 0), (second, 17)] {
        for (digit, byte) in text[offset..offset + 16].iter_mut().enumerate() {
            let four_bits = (number >> (60 - 4 * digit)) & 15;
            *byte = DIGITS[usize::try_from(four_bits).unwrap_or_default()];
        }
    }
    text
}

fn is_valid_request_id(id: &[u8]) -> bool {
    (1..=MAX_ID_LENGTH).contains(&id.len())
        && id
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Trace of a request from the caller's `traceparent` (W3C Trace Context section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent<'a> {
    /// Trace id: 32 hexadecimal digits.
    pub trace_id: &'a str,
    /// Caller's span id: 16 hexadecimal digits.
    pub parent_id: &'a str,
}

impl<'a> TraceParent<'a> {
    /// Parses `traceparent`; `None` if the header is absent, repeated or malformed.
    pub fn from_headers(headers: &'a HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all("traceparent");
        let line = lines.next()?.to_str().ok()?;
        if lines.next().is_some() {
            return None;
        }
        let mut parts = line.splitn(5, '-');
        let version = validate_hex_text(parts.next()?, 2)?;
        let trace_id = validate_hex_text(parts.next()?, 32)?;
        let parent_id = validate_hex_text(parts.next()?, 16)?;
        validate_hex_text(parts.next()?, 2)?;
        let more = parts.next().is_some();
        let all_zero = |text: &str| text.bytes().all(|byte| byte == b'0');
        if version == "ff" || (version == "00" && more) || all_zero(trace_id) || all_zero(parent_id)
        {
            return None;
        }
        Some(Self {
            trace_id,
            parent_id,
        })
    }
}

fn validate_hex_text(text: &str, length: usize) -> Option<&str> {
    let fits = text.len() == length
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    fits.then_some(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        );
        headers
    }

    #[test]
    fn takes_over_plain_ids_only() {
        let ids = RequestIdGenerator::new();
        assert_eq!(
            ids.for_request(&headers("x-request-id", "ab-1.c_D")),
            "ab-1.c_D"
        );
        let long = "a".repeat(65);
        for odd in ["", "a b", "<x>", long.as_str()] {
            assert_ne!(ids.for_request(&headers("x-request-id", odd)), odd);
        }
        assert_ne!(
            ids.for_request(&HeaderMap::new()),
            ids.for_request(&HeaderMap::new())
        );
        let written = format_request_id(0x0123_4567_89ab_cdef, 0xf0);
        assert_eq!(&written, b"0123456789abcdef-00000000000000f0");
    }

    #[test]
    fn reads_a_traceparent() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let parent = "00f067aa0ba902b7";
        let good = headers("traceparent", &format!("00-{trace}-{parent}-01"));
        assert_eq!(
            TraceParent::from_headers(&good),
            Some(TraceParent {
                trace_id: trace,
                parent_id: parent
            })
        );
        let later = headers("traceparent", &format!("01-{trace}-{parent}-01-more"));
        assert!(TraceParent::from_headers(&later).is_some());
        for bad in [
            format!("00-{trace}-{parent}-01-more"),
            format!("ff-{trace}-{parent}-01"),
            format!("00-{}-{parent}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{}-{parent}-01", trace.to_uppercase()),
            format!("00-{trace}-{parent}"),
        ] {
            assert_eq!(
                TraceParent::from_headers(&headers("traceparent", &bad)),
                None,
                "{bad}"
            );
        }
    }
}
