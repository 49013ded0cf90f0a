//! Federation (ARD section 6): the peers of this registry are searched too, and their results are treated as
//! third-party claims.

pub mod merge;
pub mod peer_queries;
pub mod result_validation;

pub use peer_queries::{PeerResponse, PeerResponses, query_peers};

use std::collections::HashSet;

use a2a_registry_api::ard::{REGISTRY_TYPE, Referral};
use a2a_registry_api::{PeerCandidate, PeerList, PeerView};
use a2a_registry_store::peer_candidates::proved_peer_candidates;
use url::Url;

use crate::agents::catalog_entry::urn_publisher;
use crate::config::PeerConfig;
use crate::context::AppContext;
use crate::error::Result;

/// Maximum number of candidates in a list.
const MAX_CANDIDATES: usize = 100;
/// Maximum number of rows read to fill the list: some are of denied domains, or of registries that are already peers.
const MAX_CANDIDATE_ROWS: u64 = 1_000;

/// Lists the peers of this registry for a client that queries them itself. Their identifiers are under this registry's
/// own host, because it may not assign identifiers in another domain. If the host cannot be part of an identifier,
/// such as an IPv6 address, the list is empty.
pub fn peer_referrals(context: &AppContext) -> Vec<Referral> {
    let config = context.config();
    let own = Url::parse(&config.public_url()).ok();
    let host = own.as_ref().and_then(Url::host_str).unwrap_or_default();
    let peers = config.federation.peers.iter();
    let referral = peers.filter_map(|(name, peer)| {
        let url = peer.search_url()?;
        let identifier = format!("urn:air:{host}:peer:{name}");
        urn_publisher(&identifier)?;
        Some(Referral {
            identifier,
            display_name: name.clone(),
            media_type: REGISTRY_TYPE.to_owned(),
            url: url.into(),
        })
    });
    referral.collect()
}

/// The peers with their state, and the registries that could be peers.
pub async fn list_peers(context: &AppContext) -> Result<PeerList> {
    let now = context.monotonic_time();
    let configured = &context.config().federation.peers;
    let peers = configured.iter().map(|(name, peer)| {
        let (left_alone, last_failure) = context.federation.breaker_state(name, now);
        PeerView {
            name: name.clone(),
            url: peer.base_url(),
            share_private: peer.share_private,
            left_alone,
            last_failure,
        }
    });
    let mut candidate_rows = proved_peer_candidates(&context.store, MAX_CANDIDATE_ROWS).await?;
    // A domain may name a registry in both of its catalogs.
    candidate_rows.dedup_by(|next, row| next.identifier == row.identifier);
    let peer_urls: HashSet<String> = configured.values().map(PeerConfig::base_url).collect();
    let candidates = candidate_rows.into_iter().filter_map(|row| {
        // A registry is a candidate only if its publisher's own catalog names it.
        let domain = urn_publisher(&row.identifier)?.to_owned();
        let peer = PeerConfig {
            url: row.url.clone(),
            share_private: false,
        };
        let is_new = !peer_urls.contains(&peer.base_url()) && !context.rules().denies(&domain);
        is_new.then_some(PeerCandidate {
            identifier: row.identifier,
            display_name: row.display_name,
            url: row.url,
            domain,
        })
    });
    Ok(PeerList {
        peers: peers.collect(),
        candidates: candidates.take(MAX_CANDIDATES).collect(),
    })
}

pub fn has_peers(context: &AppContext) -> bool {
    !context.config().federation.peers.is_empty()
}
