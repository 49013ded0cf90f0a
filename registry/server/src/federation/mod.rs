//! Federation (ARD section 6): the peers of this registry are searched too, and what they say is taken for what it is, the
//! word of somebody else.

mod ask;
mod checked;
pub(crate) mod merge;
pub mod routes;

pub(crate) use ask::{Asked, ask_peers};

use a2a_registry_api::ard::{REGISTRY_TYPE, Referral};
use url::Url;

use crate::context::Context;

/// The peers of this registry, for a client that asks them itself.
pub(crate) fn referrals(context: &Context) -> Vec<Referral> {
    let peers = context.config.federation.peers.iter();
    let referral = peers.filter_map(|(name, peer)| {
        let url = peer.search_url()?;
        let host = Url::parse(&peer.url).ok()?.host_str()?.to_owned();
        Some(Referral {
            identifier: format!("urn:air:{host}:registry:{name}"),
            display_name: name.clone(),
            media_type: REGISTRY_TYPE.to_owned(),
            url: url.into(),
        })
    });
    referral.collect()
}

/// Whether there are peers to ask.
pub(crate) fn has_peers(context: &Context) -> bool {
    !context.config.federation.peers.is_empty()
}
