//! The address blocks of leased domains, which limit how many hosts of one block are visited at once.

use std::net::IpAddr;
use std::time::Duration;

use a2a_crawler::dns::Resolver;
use a2a_crawler::network::block_of;
use a2a_registry_store::StoreError;
use a2a_registry_store::entity::domain;
use futures::future::join_all;
use url::Url;

use crate::context::Context;
use crate::visits::leasing::{is_exempt, networks_record};

/// Timeout of the lookup of hosts that were never contacted.
const LOOKUP: Duration = Duration::from_secs(1);

/// Stores the address blocks of the leased domains that have none yet; returns the domains given back because their
/// block is at its limit. A host that does not resolve in time gets no block: the visit itself will report why.
pub(crate) async fn record_networks(
    context: &Context,
    leased: impl Iterator<Item = &domain::Model>,
) -> Result<Vec<i64>, StoreError> {
    let resolver = context.network.resolver.as_ref();
    let unknown = leased.filter(|row| row.network.is_none());
    let lookups = unknown.map(|row| async move {
        let address = address_of(resolver, row).await?;
        let limited = !is_exempt(context, address);
        limited.then(|| (row.id, block_of(address).to_string()))
    });
    let found: Vec<_> = join_all(lookups).await.into_iter().flatten().collect();
    networks_record(context, &found).await
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
