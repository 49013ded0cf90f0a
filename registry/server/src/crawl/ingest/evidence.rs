//! What the looks of a group say about our own network, and in whose hands each of those sources is.

use std::net::IpAddr;

use a2a_crawler::circuit_breaker::{FetchReport, Party};
use a2a_crawler::guard::Guard;
use a2a_crawler::network::block_of;
use a2a_crawler::{SourceOutcome, SourceVerdict, VisitOutcome};
use a2a_registry_domain::role::{Permission, Role};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{account, source};

use crate::context::Context;
use crate::crawl::ingest::group::Group;
use crate::sources::{asks_for_a_card, host_of};
use crate::visits::leasing::is_exempt;
use crate::visits::outage::breaker_open_since;

/// Notes what the looks of a group say about our own network; says whether nothing is to be concluded from
/// failures.
pub(crate) fn note_looks(
    context: &Context,
    group: &Group,
    outcomes: &[VisitOutcome],
    now: Timestamp,
) -> bool {
    let mut breaker_open = breaker_open_since(context).is_some();
    for outcome in outcomes.iter().filter(|outcome| group.holds_lease(outcome)) {
        for result in &outcome.sources {
            // Most domains have no catalog: what is not there says nothing about our network.
            let row = group.sources.get(&result.source_key);
            if let Some(row) = row.filter(|row| asks_for_a_card(row)) {
                // Freed by the last look of a group, it was still held for the others.
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

/// Everybody who can make a source fail on purpose.
///
/// Where it lies is told by its last good answer, since where a failing one points is up to whoever runs it.
/// Hosts inside `allow_networks` are the operator's own, and are told apart by their names alone.
fn parties(context: &Context, group: &Group, row: &source::Model) -> Vec<Party> {
    let mut parties = Vec::new();
    if let Registrant::Party(name) = registrant(group, row) {
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

/// Who brought a source in.
#[derive(Debug, PartialEq, Eq)]
enum Registrant {
    /// Somebody who decides on agents anyhow, and needs no brake to have verdicts frozen.
    Staff,
    /// Anybody else: an account, or the network that somebody without one came from.
    Party(String),
}

/// Who brought a source in first: whoever names it again later takes no part of its looks away. What only a catalog
/// names is its domain's.
fn registrant(group: &Group, row: &source::Model) -> Registrant {
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

fn registrant_of(account: Option<&account::Model>, network: Option<&str>) -> Registrant {
    if let Some(account) = account {
        let role: Option<Role> = account.role.known();
        return if role.is_some_and(|role| role.may(Permission::Curate)) {
            Registrant::Staff
        } else {
            Registrant::Party(account.id.to_string())
        };
    }
    let address: Option<IpAddr> = network.and_then(|network| network.parse().ok());
    // Addresses are cheap where somebody has one; those nobody knows are one party together.
    let block = address.map_or_else(String::new, |address| block_of(address).to_string());
    Registrant::Party(block)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use a2a_registry_store::Kept;

    #[test]
    fn staff_is_no_party_and_neighbours_without_an_account_are_one() {
        let account = |role: &str| account::Model {
            id: Uuid::from_u128(7),
            name: "somebody".into(),
            role: Kept::read(role.into()),
            created_at: 0,
        };
        for (role, expected) in [
            ("admin", Registrant::Staff),
            ("curator", Registrant::Staff),
            (
                "publisher",
                Registrant::Party(Uuid::from_u128(7).to_string()),
            ),
            (
                "of another version",
                Registrant::Party(Uuid::from_u128(7).to_string()),
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
            let expected = Registrant::Party(block.into());
            assert_eq!(registrant_of(None, network), expected, "{network:?}");
        }
    }
}
