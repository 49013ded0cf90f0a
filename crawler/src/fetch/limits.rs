//! Limits of one fetch.

use std::time::Duration;

/// The limits of one fetch. Tests can set tighter ones; the default is that of production.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// Resolving a name: 2 s.
    pub dns: Duration,
    /// TCP and TLS together: 8 s.
    pub connect: Duration,
    /// From the connection to the end of the response header, including the time to send the request: 5 s.
    pub first_byte: Duration,
    /// The whole fetch, redirects included: 10 s.
    pub total: Duration,
    /// Slowest body that is accepted, in bytes a second on average after [`rate_grace`](Self::rate_grace): 1024.
    pub min_rate: u32,
    /// How long a body may be slower than [`min_rate`](Self::min_rate): 2 s.
    pub rate_grace: Duration,
    /// Most header fields of a response: 64. On HTTP/1 the client library's own limit of 100 applies in any case.
    pub header_fields: usize,
    /// Most bytes of a response header on HTTP/2: 16 KiB. On HTTP/1 the client library's read buffer is the limit.
    pub header_bytes: u32,
    /// Most bytes of a body, both as sent and as decoded: 1 MiB, inclusive.
    pub body_bytes: usize,
    /// Most bytes of a request body: 1 MiB, inclusive.
    pub request_body_bytes: usize,
    /// Most redirects followed: 3.
    pub max_redirects: usize,
    /// Most addresses of a host that are tried, after all of them were checked: 4.
    pub max_addresses: usize,
    /// Idle connections kept for each host, except [in a visit](super::Fetcher::for_visit): 16.
    pub idle_connections: usize,
    /// How long an idle connection is kept: 15 s.
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
