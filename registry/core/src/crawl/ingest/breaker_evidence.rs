//! Evidence for the circuit breaker from the fetches of a batch, and the parties that can make each source fail.

use std::net::IpAddr;

use a2a_crawler::address_block::enclosing_address_block;
use a2a_crawler::circuit_breaker::{FailureParty, FetchSample};
use a2a_crawler::guard::SsrfGuard;
use a2a_crawler::{SourceOutcome, SourceResult, VisitOutcome};
use a2a_registry_domain::role::Role;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{account, source};

use crate::context::AppContext;
use crate::crawl::ingest::batch::IngestBatch;
use crate::sources::{domain_host, is_card_source};
use crate::visits::leases::is_exempt_address;
use crate::visits::outage::breaker_open_since;

/// Feeds the fetches of a batch to the circuit breaker; returns whether it is open, so that failures change no state.
pub fn feed_circuit_breaker(
    context: &AppContext,
    batch: &IngestBatch,
    outcomes: &[VisitOutcome],
    now: Timestamp,
) -> bool {
    let mut breaker_open = breaker_open_since(context).is_some();
    for outcome in outcomes.iter().filter(|outcome| batch.has_lease(outcome)) {
        for result in &outcome.sources {
            // Most domains have no catalog, so a missing one is no evidence about our network.
            let row = batch.sources.get(&result.source_key);
            if let Some(row) = row.filter(|row| is_card_source(row)) {
                // If the last fetch of the batch closes it, it was still open for the others.
                breaker_open |= context
                    .crawl_state
                    .record_fetch(to_fetch_sample(context, batch, row, result), now);
            }
        }
    }
    breaker_open
}

fn to_fetch_sample(
    context: &AppContext,
    batch: &IngestBatch,
    row: &source::Model,
    result: &SourceOutcome,
) -> FetchSample {
    FetchSample {
        failed: matches!(result.result, SourceResult::Failed { .. }),
        was_failing: row.failures > 0,
        has_succeeded: row.last_success_at.is_some(),
        parties: failure_parties(context, batch, row),
    }
}

/// The parties that can make a source fail on purpose.
///
/// Its network is that of its last successful response, because the operator of a failing host chooses where it
/// points. Hosts inside `allow_networks` belong to the registry's operator, and are distinguished only by name.
fn failure_parties(
    context: &AppContext,
    batch: &IngestBatch,
    row: &source::Model,
) -> Vec<FailureParty> {
    let mut parties = Vec::new();
    if let FirstRegistrant::Party(name) = first_registrant(batch, row) {
        parties.push(FailureParty::Registrant(name));
    }
    let domain = batch.domains.get(&row.domain_id);
    let domain = domain.map_or("", |domain| domain.name.as_str());
    let address: Option<IpAddr> = row
        .answered_from
        .as_deref()
        .and_then(|address| address.parse().ok());
    if address.is_some_and(|address| is_exempt_address(context, address)) {
        parties.push(FailureParty::Site(domain.into()));
        return parties;
    }
    parties.push(FailureParty::Site(match domain_host(domain) {
        Some(host) => SsrfGuard::registrable_domain(host).into(),
        None => domain.into(),
    }));
    parties.extend(address.map(|address| FailureParty::Network(enclosing_address_block(address))));
    parties
}

/// The first registrant of a source.
#[derive(Debug, PartialEq, Eq)]
enum FirstRegistrant {
    /// A curator or admin, who decides on agents anyway and gains nothing by opening the circuit breaker.
    Staff,
    /// Anyone else: an account, or the network of an anonymous caller.
    Party(String),
}

/// The first registrant of a source: later registrants do not take over its fetches. An entry that only a catalog
/// names belongs to the first registrant of the domain.
fn first_registrant(batch: &IngestBatch, row: &source::Model) -> FirstRegistrant {
    let registrants = batch.coverage_evidence.registrants(row.id);
    let first = registrants
        .iter()
        .min_by_key(|one| (one.registered_at, one.id));
    let domain = batch.domains.get(&row.domain_id);
    let (account, network) = match first {
        Some(first) => (first.account_id, first.network.as_deref()),
        None => (
            domain.and_then(|domain| domain.account_id),
            domain.and_then(|domain| domain.nominated_from.as_deref()),
        ),
    };
    classify_registrant(account.and_then(|id| batch.accounts.get(&id)), network)
}

fn classify_registrant(account: Option<&account::Model>, network: Option<&str>) -> FirstRegistrant {
    if let Some(account) = account {
        let role: Option<Role> = account.role.known_value();
        return if role.is_some_and(Role::is_staff) {
            FirstRegistrant::Staff
        } else {
            FirstRegistrant::Party(account.id.to_string())
        };
    }
    let address: Option<IpAddr> = network.and_then(|network| network.parse().ok());
    // Addresses are cheap, so a block of them counts as one party; all unknown ones together also count as one.
    let block = address.map_or_else(String::new, |address| {
        enclosing_address_block(address).to_string()
    });
    FirstRegistrant::Party(block)
}

#[cfg(test)]
mod tests {
    use a2a_registry_store::StoredEnum;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn staff_is_no_party_and_neighbours_without_an_account_are_one() {
        let account = |role: &str| account::Model {
            roles: None,
            disabled_at: None,
            claims_valid_at: None,
            access_ended_at: None,
            news_seen_at: None,
            id: Uuid::from_u128(7),
            name: "somebody".into(),
            role: StoredEnum::from_text(role.into()),
            created_at: 0,
        };
        for (role, expected) in [
            ("admin", FirstRegistrant::Staff),
            ("curator", FirstRegistrant::Staff),
            (
                "publisher",
                FirstRegistrant::Party(Uuid::from_u128(7).to_string()),
            ),
            (
                "of another version",
                FirstRegistrant::Party(Uuid::from_u128(7).to_string()),
            ),
        ] {
            let network = Some("192.0.2.1");
            assert_eq!(classify_registrant(Some(&account(role)), network), expected);
        }
        for (network, block) in [
            (Some("192.0.2.1"), "192.0.2.0/24"),
            (Some("192.0.2.254"), "192.0.2.0/24"),
            (Some("2001:db8:1:2::"), "2001:db8:1::/48"),
            (Some("2001:db8:1:ffff::"), "2001:db8:1::/48"),
            (Some("no address"), ""),
            (None, ""),
        ] {
            let expected = FirstRegistrant::Party(block.into());
            assert_eq!(classify_registrant(None, network), expected, "{network:?}");
        }
    }
}
