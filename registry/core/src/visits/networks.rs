//! The address blocks of leased domains, which limit how many hosts of one block are visited at once.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use a2a_crawler::address_block::enclosing_address_block;
use a2a_registry_store::StoreError;
use a2a_registry_store::entity::domain;
use tokio::sync::oneshot;
use url::Url;

use crate::context::AppContext;
use crate::visits::leases::{is_exempt_address, record_domain_networks};

/// Timeout of the lookup of hosts that were never contacted.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);

/// Stores the address blocks of leased domains that have none yet. Its transaction waits for all leases, so domains
/// that arrive meanwhile share the next transaction.
#[derive(Debug, Default)]
pub struct DomainNetworkRecorder {
    pending: Mutex<Vec<PendingDomainNetwork>>,
    write_lock: tokio::sync::Mutex<()>,
}

/// A domain whose address block is to be stored.
#[derive(Debug)]
struct PendingDomainNetwork {
    id: i64,
    network: String,
    /// Receives whether the domain kept its lease.
    lease_kept: oneshot::Sender<bool>,
}

impl DomainNetworkRecorder {
    /// Stores the address block of a leased domain if it has none yet; `false` if the domain was given back because its
    /// block is at its limit. A host that does not resolve in time gets no block: the visit itself will report why.
    pub async fn record(
        &self,
        context: &AppContext,
        row: &domain::Model,
    ) -> Result<bool, StoreError> {
        let Some(network) = resolve_domain_network(context, row).await else {
            return Ok(true);
        };
        let (lease_kept, is_kept) = oneshot::channel();
        let id = row.id;
        self.lock_pending().push(PendingDomainNetwork {
            id,
            network,
            lease_kept,
        });
        let write_guard = self.write_lock.lock().await;
        let pending = std::mem::take(&mut *self.lock_pending());
        let networks: Vec<(i64, String)> = pending
            .iter()
            .map(|one| (one.id, one.network.clone()))
            .collect();
        let too_many = record_domain_networks(context, &networks).await?;
        drop(write_guard);
        for one in pending {
            // A visit that was aborted in the meantime no longer waits.
            let _aborted = one.lease_kept.send(!too_many.contains(&one.id));
        }
        is_kept
            .await
            .map_err(|_| StoreError::other("cannot store the address blocks of several domains"))
    }

    fn lock_pending(&self) -> MutexGuard<'_, Vec<PendingDomainNetwork>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address block of a domain that has none yet; `None` if it does not resolve in time or needs no block.
async fn resolve_domain_network(context: &AppContext, row: &domain::Model) -> Option<String> {
    if row.network.is_some() {
        return None;
    }
    let url = Url::parse(&format!("{}://{}/", row.scheme, row.name)).ok()?;
    resolve_network(context, &url).await
}

/// The address block of a URL's host; `None` if it does not resolve in time, or no limit applies to its block.
pub async fn resolve_network(context: &AppContext, url: &Url) -> Option<String> {
    let address = match url.host()? {
        url::Host::Ipv4(address) => IpAddr::from(address),
        url::Host::Ipv6(address) => address.into(),
        url::Host::Domain(name) => {
            let answer = context.network.resolver.resolve(name);
            let answer = tokio::time::timeout(LOOKUP_TIMEOUT, answer).await;
            *answer.ok()?.ok()?.first()?
        }
    };
    let limited = !is_exempt_address(context, address);
    limited.then(|| enclosing_address_block(address).to_string())
}
