//! Visits: leases, spacing, limits of address blocks, and the circuit breaker.

pub mod leases;
pub mod networks;
pub mod outage;

use a2a_registry_domain::timestamp::SECOND;
use a2a_registry_store::visit_queue::VisitRequest;

use crate::visibility::caller::Caller;

/// The pause between two visits of a host, outside `allow_networks`.
pub const VISIT_SPACING: i64 = 60 * SECOND;

/// A caller's request for visits, which are made in turns (docs/develop/model.md#crawl-schedule).
pub fn visit_request(caller: &Caller, in_bulk: bool) -> VisitRequest {
    let account = caller
        .account
        .as_ref()
        .map(|account| account.id.to_string());
    let network = || caller.network.map(|network| network.to_string());
    VisitRequest {
        requester: account.or_else(network).unwrap_or_default(),
        in_bulk,
    }
}
