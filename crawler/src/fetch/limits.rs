//! Limits of one fetch.

use std::time::Duration;

/// Limits of one fetch. The default is for production; tests can set tighter limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// Time for resolving a name: 2 s.
    pub dns: Duration,
    /// Time for TCP and TLS together: 8 s.
    pub connect: Duration,
    /// Time from the connection to the end of the response header, including sending the request: 5 s.
    pub first_byte: Duration,
    /// Time for the whole fetch, including redirects: 10 s.
    pub total: Duration,
    /// Minimum rate of a body, in bytes a second on average after [`rate_grace`](Self::rate_grace): 1024.
    pub min_rate: u32,
    /// Time for which a body may be slower than [`min_rate`](Self::min_rate): 2 s.
    pub rate_grace: Duration,
    /// Maximum number of header fields of a response: 64. On HTTP/1 the client library's own limit of 100 also
    /// applies.
    pub header_fields: usize,
    /// Maximum size of a response header in bytes on HTTP/2: 16 KiB. On HTTP/1 the client library's read buffer is the
    /// limit.
    pub header_bytes: u32,
    /// Maximum size of a body in bytes, both as sent and as decoded: 1 MiB, inclusive.
    pub body_bytes: usize,
    /// Maximum size of a request body in bytes: 1 MiB, inclusive.
    pub request_body_bytes: usize,
    /// Maximum number of redirects followed: 3.
    pub max_redirects: usize,
    /// Maximum number of addresses tried for a host, after all of them were checked: 4.
    pub max_addresses: usize,
    /// Idle connections kept for each host, except [during a visit](super::Fetcher::for_visit): 16.
    pub idle_connections: usize,
    /// Time for which an idle connection is kept: 15 s.
    pub idle_timeout: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            dns: Duration::from_secs(2),
            connect: Duration::from_secs(8),
            first_byte: Duration::from_secs(5),
            total: Duration::from_secs(10),
            min_rate: 1024,
            rate_grace: Duration::from_secs(2),
            header_fields: 64,
            header_bytes: 16 * 1024,
            body_bytes: 1024 * 1024,
            request_body_bytes: 1024 * 1024,
            max_redirects: 3,
            max_addresses: 4,
            idle_connections: 16,
            idle_timeout: Duration::from_secs(15),
        }
    }
}
