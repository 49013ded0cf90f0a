//! DNS look-ups: addresses, TXT records of proofs, and name servers.

mod extended_errors;
mod hickory;
mod txt;

use std::net::IpAddr;

use async_trait::async_trait;

pub use hickory::HickoryResolver;
pub use txt::{MAX_TXT_BYTES, MAX_TXT_RECORDS, TxtLookup, TxtRecords};

/// Maximum number of addresses in one response; more are a failure, because an unchecked address must not be dialled.
pub const MAX_ADDRESSES: usize = 64;
/// Maximum number of name servers of one zone; a longer list is a failure, because truncation would look like a
/// change.
pub const MAX_NAME_SERVERS: usize = 32;

/// Looks up names. Implementations neither check nor filter addresses: the fetcher rejects the whole response if the
/// guard rejects one of its addresses.
#[async_trait]
pub trait Resolver: Send + Sync + std::fmt::Debug {
    /// All addresses of `host`, a lower-case A-label name without a trailing dot. Never empty.
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, DnsError>;

    /// The TXT records of `name`, which may contain underscores, without a cache of our own. A resolver that supports
    /// only addresses returns a failure, which does not mean absence.
    async fn lookup_txt(&self, name: &str) -> TxtLookup {
        TxtLookup::Failed(format!(
            "this resolver cannot look up the TXT records of {name}"
        ))
    }

    /// The name servers of `zone`, in lower case without a trailing dot, sorted, without duplicates. Never empty, and
    /// at most [`MAX_NAME_SERVERS`]. A resolver that supports only addresses returns a failure.
    async fn lookup_name_servers(&self, zone: &str) -> Result<Vec<String>, DnsError> {
        Err(DnsError::Failure(format!(
            "this resolver cannot look up the name servers of {zone}"
        )))
    }
}

/// Resolver that finds no name, for a process that sends no requests.
#[derive(Debug, Clone, Copy)]
pub struct EmptyResolver;

#[async_trait]
impl Resolver for EmptyResolver {
    async fn resolve(&self, _: &str) -> Result<Vec<IpAddr>, DnsError> {
        Err(DnsError::NoSuchHost)
    }

    async fn lookup_txt(&self, _: &str) -> TxtLookup {
        TxtLookup::Absent
    }

    async fn lookup_name_servers(&self, _: &str) -> Result<Vec<String>, DnsError> {
        Err(DnsError::NoSuchHost)
    }
}

/// Why a look-up returned no addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DnsError {
    /// The name does not exist, or exists without an address. This is a definite answer.
    #[error("the name does not exist in DNS, or has no address")]
    NoSuchHost,
    /// No answer for now: SERVFAIL, a timeout, a broken or endless answer. This does not mean absence.
    #[error("the name could not be resolved: {0}")]
    Failure(String),
    /// No query was sent, because this process has no file descriptors left. This says nothing about the name.
    #[error("the registry has no file descriptors left")]
    OutOfDescriptors,
}
