//! Evidence about our own network from the fetches of a group, and the parties that can make each source fail.

use std::net::IpAddr;

use a2a_crawler::circuit_breaker::{FetchReport, Party};
use a2a_crawler::guard::Guard;
use a2a_crawler::network::block_of;
use a2a_crawler::{SourceOutcome, SourceVerdict, VisitOutcome};
use a2a_registry_domain::role::Role;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{account, source};

use crate::context::Context;
use crate::crawl::ingest::group::Group;
use crate::sources::{asks_for_a_card, host_of};
use crate::visits::leasing::is_exempt;
use crate::visits::outage::breaker_open_since;

/// Feeds the fetches of a group to the circuit breaker; returns whether it is open, so that failures change no state.
pub fn note_fetches(
    context: &Context,
    group: &Group,
    outcomes: &[VisitOutcome],
    now: Timestamp,
) -> bool {
    let mut breaker_open = breaker_open_since(context).is_some();
    for outcome in outcomes.iter().filter(|outcome| group.holds_lease(outcome)) {
        for result in &outcome.sources {
            // Most domains have no catalog: a missing one is no evidence about our network.
            let row = group.sources.get(&result.source_key);
            if let Some(row) = row.filter(|row| asks_for_a_card(row)) {
                // If the last fetch of the group closes it, it was still open for the others.
                breaker_open |= context
                    .stream
                    .note_fetch(evidence(context, group, row, result), now);
            }
        }
    }
    breaker_open
}

fn evidence(
    context: &Context,
    group: &Group,
    row: &source::Model,
    result: &SourceOutcome,
) -> FetchReport {
    FetchReport {
        failed: matches!(result.verdict, SourceVerdict::Failed { .. }),
        was_failing: row.failures > 0,
        has_succeeded: row.last_success_at.is_some(),
        parties: parties(context, group, row),
    }
}

/// The parties that can make a source fail on purpose.
///
/// Its network is that of its last good response, because whoever runs a failing host chooses where it points. Hosts
/// inside `allow_networks` are the operator's own, and are distinguished by name alone.
fn parties(context: &Context, group: &Group, row: &source::Model) -> Vec<Party> {
    let mut parties = Vec::new();
    if let SourceOrigin::Party(name) = registrant(group, row) {
        parties.push(Party::Registrant(name));
    }
    let domain = group.domains.get(&row.domain_id);
    let domain = domain.map_or("", |domain| domain.name.as_str());
    let address: Option<IpAddr> = row
        .answered_from
        .as_deref()
        .and_then(|address| address.parse().ok());
    if address.is_some_and(|address| is_exempt(context, address)) {
        parties.push(Party::Site(domain.into()));
        return parties;
    }
    parties.push(Party::Site(match host_of(domain) {
        Some(host) => Guard::registrable_domain(host).into(),
        None => domain.into(),
    }));
    parties.extend(address.map(|address| Party::Network(block_of(address))));
    parties
}

/// The first registrant of a source.
#[derive(Debug, PartialEq, Eq)]
enum SourceOrigin {
    /// A curator or admin, who decides on agents anyway and gains nothing by opening the circuit breaker.
    Staff,
    /// Anyone else: an account, or the network of an anonymous caller.
    Party(String),
}

/// The first registrant of a source: later registrants do not take over its fetches. An entry that only a catalog names
/// belongs to the domain's first registrant.
fn registrant(group: &Group, row: &source::Model) -> SourceOrigin {
    let registrants = group.standings.registrants(row.id);
    let first = registrants
        .iter()
        .min_by_key(|one| (one.registered_at, one.id));
    let domain = group.domains.get(&row.domain_id);
    let (account, network) = match first {
        Some(first) => (first.account_id, first.network.as_deref()),
        None => (
            domain.and_then(|domain| domain.account_id),
            domain.and_then(|domain| domain.nominated_from.as_deref()),
        ),
    };
    registrant_of(account.and_then(|id| group.accounts.get(&id)), network)
}

fn registrant_of(account: Option<&account::Model>, network: Option<&str>) -> SourceOrigin {
    if let Some(account) = account {
        let role: Option<Role> = account.role.known();
        return if role.is_some_and(Role::is_staff) {
            SourceOrigin::Staff
        } else {
            SourceOrigin::Party(account.id.to_string())
        };
    }
    let address: Option<IpAddr> = network.and_then(|network| network.parse().ok());
    // Addresses are cheap, so a block of them is one party; unknown ones are one party together.
    let block = address.map_or_else(String::new, |address| block_of(address).to_string());
    SourceOrigin::Party(block)
}

#[cfg(test)]
mod tests {
    use a2a_registry_store::Kept;
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
            role: Kept::read(role.into()),
            created_at: 0,
        };
        for (role, expected) in [
            ("admin", SourceOrigin::Staff),
            ("curator", SourceOrigin::Staff),
            (
                "publisher",
                SourceOrigin::Party(Uuid::from_u128(7).to_string()),
            ),
            (
                "of another version",
                SourceOrigin::Party(Uuid::from_u128(7).to_string()),
            ),
        ] {
            let network = Some("192.0.2.1");
            assert_eq!(registrant_of(Some(&account(role)), network), expected);
        }
        for (network, block) in [
            (Some("192.0.2.1"), "192.0.2.0/24"),
            (Some("192.0.2.254"), "192.0.2.0/24"),
            (Some("2001:db8:1:2::"), "2001:db8:1::/48"),
            (Some("2001:db8:1:ffff::"), "2001:db8:1::/48"),
            (Some("no address"), ""),
            (None, ""),
        ] {
            let expected = SourceOrigin::Party(block.into());
            assert_eq!(registrant_of(None, network), expected, "{network:?}");
        }
    }
}
