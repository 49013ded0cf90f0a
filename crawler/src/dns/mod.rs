//! Names to addresses, to the texts that owners place under them, and to who serves them.

mod hickory;
mod reason;
mod scripted;
mod txt;

use std::net::IpAddr;

use async_trait::async_trait;

pub use hickory::HickoryResolver;
pub use scripted::StaticResolver;
pub use txt::{MAX_TXT_BYTES, MAX_TXT_RECORDS, TxtAnswer, TxtRecords};

/// Most addresses of one answer that are looked at; a longer answer is a failure, because what is not
/// looked at must not be dialled.
pub const MAX_ADDRESSES: usize = 64;
/// Most name servers of one zone; a longer answer is a failure, as what is cut looks like a change.
pub const MAX_NAME_SERVERS: usize = 32;

/// Looks names up. Implementations neither judge nor filter addresses: the fetcher refuses the whole
/// answer when the guard refuses one address of it.
#[async_trait]
pub trait Resolver: Send + Sync + std::fmt::Debug {
    /// Every address of `host`, which is a lower-case A-label name without a trailing dot. Never empty.
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, DnsError>;

    /// The TXT records of `name`, which may hold underscores, as the name servers have them now: what an
    /// earlier look saw is not remembered here. A resolver that only knows addresses says so, which is a
    /// failure and no absence.
    async fn texts(&self, name: &str) -> TxtAnswer {
        TxtAnswer::Failed(format!("TXT records cannot be looked up here, nor {name}"))
    }

    /// The name servers of `zone`, in lower case without a trailing dot, sorted, each once. Never empty, and at
    /// most [`MAX_NAME_SERVERS`]. A resolver that only knows addresses says so.
    async fn name_servers(&self, zone: &str) -> Result<Vec<String>, DnsError> {
        Err(DnsError::Failure(format!(
            "name servers cannot be looked up here, nor those of {zone}"
        )))
    }
}

/// Why a name has no addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DnsError {
    /// The name does not exist, or exists without an address. This is an answer.
    #[error("the name does not exist in DNS, or has no address")]
    NoSuchHost,
    /// No answer for now: SERVFAIL, a timeout, a broken or endless answer. This is not absence.
    #[error("the name could not be resolved: {0}")]
    Failure(String),
}
