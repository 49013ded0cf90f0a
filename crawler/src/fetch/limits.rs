//! How much one fetch may take.

use std::time::Duration;

/// The bounds of one fetch. Every field is a parameter, so that a test can run with tight ones; the
/// default is what production uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// Resolving a name: 2 s.
    pub dns: Duration,
    /// TCP and TLS together: 8 s.
    pub connect: Duration,
    /// From the connection to the end of the answer's head, what is sent included: 5 s.
    pub first_byte: Duration,
    /// Everything, redirects included: 10 s.
    pub total: Duration,
    /// Slowest body that is waited for, in bytes a second on average, after a grace of
    /// [`rate_grace`](Self::rate_grace): 1024.
    pub min_rate: u32,
    /// For how long a body may be slower than [`min_rate`](Self::min_rate): 2 s.
    pub rate_grace: Duration,
    /// Most header fields of an answer: 64. The client library's own limit of 100 holds on HTTP/1
    /// whatever is set here.
    pub headers: usize,
    /// Most bytes of an answer's head on HTTP/2: 16 KiB. On HTTP/1 the client library's read buffer
    /// is the bound.
    pub header_bytes: u32,
    /// Most bytes of a body, as sent and again as decoded: 1 MiB. Exactly this many pass.
    pub body: usize,
    /// Most bytes of a body that is sent: 1 MiB. Exactly this many are sent.
    pub sent: usize,
    /// Most redirects followed: 3.
    pub redirects: usize,
    /// Most addresses of a host that are tried, after all of them were checked: 4.
    pub addresses: usize,
    /// Idle connections kept for each host: 16.
    pub idle_connections: usize,
    /// For how long an idle connection is kept: 15 s.
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
            headers: 64,
            header_bytes: 16 * 1024,
            body: 1024 * 1024,
            sent: 1024 * 1024,
            redirects: 3,
            addresses: 4,
            idle_connections: 16,
            idle_timeout: Duration::from_secs(15),
        }
    }
}
