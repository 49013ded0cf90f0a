//! The address blocks of leased domains, which limit how many hosts of one block are visited at once.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2a_crawler::dns::Resolver;
use a2a_crawler::network::block_of;
use a2a_registry_store::StoreError;
use a2a_registry_store::entity::domain;
use tokio::sync::oneshot;
use url::Url;

use crate::context::Context;
use crate::visits::leasing::{is_exempt, networks_record};

/// Timeout of the lookup of hosts that were never contacted.
const LOOKUP: Duration = Duration::from_secs(1);

/// Stores the address blocks of leased domains that have none yet. A transaction for it waits for all leases, so the
/// domains that arrive during one share the next.
#[derive(Debug, Default)]
pub struct NetworkRecorder {
    waiting: Mutex<Vec<WaitingDomain>>,
    writing: tokio::sync::Mutex<()>,
}

/// A domain whose address block is to be stored.
#[derive(Debug)]
struct WaitingDomain {
    id: i64,
    network: String,
    /// Receives whether the domain kept its lease.
    kept: oneshot::Sender<bool>,
}

impl NetworkRecorder {
    /// Stores the address block of a leased domain if it has none yet; `false` if the domain was given back because its
    /// block is at its limit. A host that does not resolve in time gets no block: the visit itself will report why.
    pub async fn record(&self, context: &Context, row: &domain::Model) -> Result<bool, StoreError> {
        let Some(network) = unknown_network(context, row).await else {
            return Ok(true);
        };
        let (kept, is_kept) = oneshot::channel();
        let id = row.id;
        self.waiting().push(WaitingDomain { id, network, kept });
        let writing = self.writing.lock().await;
        let waiting = std::mem::take(&mut *self.waiting());
        let networks: Vec<(i64, String)> = waiting
            .iter()
            .map(|one| (one.id, one.network.clone()))
            .collect();
        let too_many = networks_record(context, &networks).await?;
        drop(writing);
        for one in waiting {
            // A visit that was aborted in the meantime no longer waits.
            let _aborted = one.kept.send(!too_many.contains(&one.id));
        }
        is_kept.await.map_err(|_| {
            StoreError::other("the address blocks of several domains could not be stored")
        })
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<WaitingDomain>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address block of a domain that has none yet; `None` if it does not resolve in time or needs no block.
async fn unknown_network(context: &Context, row: &domain::Model) -> Option<String> {
    if row.network.is_some() {
        return None;
    }
    let address = address_of(context.network.resolver.as_ref(), row).await?;
    let limited = !is_exempt(context, address);
    limited.then(|| block_of(address).to_string())
}

async fn address_of(resolver: &dyn Resolver, row: &domain::Model) -> Option<IpAddr> {
    let url = Url::parse(&format!("{}://{}/", row.scheme, row.name)).ok()?;
    match url.host()? {
        url::Host::Ipv4(address) => Some(address.into()),
        url::Host::Ipv6(address) => Some(address.into()),
        url::Host::Domain(name) => {
            let answer = tokio::time::timeout(LOOKUP, resolver.resolve(name)).await;
            answer.ok()?.ok()?.first().copied()
        }
    }
}
