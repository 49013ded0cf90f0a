//! The address blocks of leased domains, so that few hosts of one block are asked at once.

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

/// How long is waited for the addresses of hosts that were never spoken to.
const LOOKUP: Duration = Duration::from_secs(1);

/// Keeps the address blocks of those leased domains whose block is not known; answers which are given back because
/// too many of one block are under way. A host that does not resolve in time has no block: whoever asks it will
/// say why.
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
