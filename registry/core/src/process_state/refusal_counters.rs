//! Counters of refused credentials and sign-ins of the last minute, by network, until their events are written.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use a2a_crawler::address_block::enclosing_address_block;
use a2a_registry_domain::timestamp::Timestamp;
use ipnet::IpNet;

use crate::error::CredentialRefusal;

/// The target of log lines about refused credentials and sign-ins.
pub const SIGN_IN_LOG: &str = "sign_in";

/// Maximum number of networks counted separately within a minute.
const MAX_NETWORKS: usize = 1_000;
/// Maximum number of networks per minute with their own event: those with the most refusals. All others share one
/// event.
pub const MAX_NETWORK_EVENTS: usize = 20;
/// Maximum number of refusals of a network per minute that are logged individually.
const MAX_LOG_LINES_PER_NETWORK: u64 = 3;
/// Maximum number of refusals of all networks per minute that are logged individually.
const MAX_LOG_LINES: u64 = 60;

#[derive(Debug, Default)]
pub struct CredentialRefusalCounters(Mutex<MinuteRefusalCounts>);

#[derive(Debug, Default)]
struct MinuteRefusalCounts {
    since: Option<Timestamp>,
    networks: HashMap<IpNet, CredentialRefusalCount>,
    /// The refusals of further networks, and of clients without an address.
    others: CredentialRefusalCount,
    logged_lines: u64,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CredentialRefusalCount {
    pub reasons: BTreeMap<&'static str, u64>,
    /// The number of refusals that were logged individually.
    logged: u64,
}

impl CredentialRefusalCount {
    pub fn total(&self) -> u64 {
        self.reasons.values().sum()
    }

    /// The number of refusals that were not logged individually.
    pub fn unlogged(&self) -> u64 {
        self.total().saturating_sub(self.logged)
    }

    fn merge(&mut self, other: &Self) {
        for (reason, count) in &other.reasons {
            *self.reasons.entry(reason).or_default() += count;
        }
        self.logged += other.logged;
    }
}

/// The refusals of an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialRefusalSummary {
    /// The time of the first refusal.
    pub since: Timestamp,
    /// The networks with the most refusals, in descending order.
    pub networks: Vec<(IpNet, CredentialRefusalCount)>,
    pub others: CredentialRefusalCount,
}

impl CredentialRefusalCounters {
    /// Counts a refusal; returns whether it is to be logged individually.
    pub fn record(
        &self,
        now: Timestamp,
        address: Option<IpAddr>,
        reason: CredentialRefusal,
    ) -> bool {
        let mut counts = self.lock();
        counts.since.get_or_insert(now);
        let lines_left = counts.logged_lines < MAX_LOG_LINES;
        let network = address.map(enclosing_address_block);
        let is_full = counts.networks.len() >= MAX_NETWORKS;
        let count = match network {
            Some(network) if !is_full || counts.networks.contains_key(&network) => {
                counts.networks.entry(network).or_default()
            }
            _ => &mut counts.others,
        };
        *count.reasons.entry(reason.as_str()).or_default() += 1;
        let is_logged = lines_left && count.logged < MAX_LOG_LINES_PER_NETWORK;
        if is_logged {
            count.logged += 1;
            counts.logged_lines += 1;
        }
        is_logged
    }

    /// Takes the counts; `None` if there was no refusal.
    pub fn take_summary(&self) -> Option<CredentialRefusalSummary> {
        let taken = std::mem::take(&mut *self.lock());
        let since = taken.since?;
        let mut networks: Vec<(IpNet, CredentialRefusalCount)> =
            taken.networks.into_iter().collect();
        networks.sort_unstable_by_key(|(network, count)| {
            (std::cmp::Reverse(count.total()), network.to_string())
        });
        let mut others = taken.others;
        for (_, count) in networks.drain(networks.len().min(MAX_NETWORK_EVENTS)..) {
            others.merge(&count);
        }
        Some(CredentialRefusalSummary {
            since,
            networks,
            others,
        })
    }

    /// Takes back a summary whose events could not be written.
    pub fn restore_summary(&self, summary: CredentialRefusalSummary) {
        let mut counts = self.lock();
        let since = counts
            .since
            .map_or(summary.since, |since| since.min(summary.since));
        counts.since = Some(since);
        counts.others.merge(&summary.others);
        for (network, count) in summary.networks {
            let is_full = counts.networks.len() >= MAX_NETWORKS;
            match is_full && !counts.networks.contains_key(&network) {
                true => counts.others.merge(&count),
                false => counts.networks.entry(network).or_default().merge(&count),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, MinuteRefusalCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const REASON: CredentialRefusal = CredentialRefusal::UnknownToken;

    fn address(network: u32, host: u8) -> Option<IpAddr> {
        Some(IpAddr::from((network << 8 | u32::from(host)).to_be_bytes()))
    }

    #[test]
    fn refusals_are_counted_by_network_and_reason() {
        let refusals = CredentialRefusalCounters::default();
        assert_eq!(refusals.take_summary(), None);
        refusals.record(Timestamp(7), address(1, 1), REASON);
        refusals.record(Timestamp(8), address(1, 2), REASON);
        refusals.record(Timestamp(8), address(1, 2), CredentialRefusal::TooMany);
        refusals.record(Timestamp(9), address(2, 1), REASON);
        refusals.record(Timestamp(9), None, REASON);
        let summary = refusals.take_summary().unwrap();
        assert_eq!(summary.since, Timestamp(7));
        let counted: Vec<(String, u64)> = summary
            .networks
            .iter()
            .map(|(network, count)| (network.to_string(), count.total()))
            .collect();
        assert_eq!(
            counted,
            [("0.0.1.0/24".into(), 3), ("0.0.2.0/24".into(), 1)]
        );
        let reasons = [("too_many", 1), ("unknown_token", 2)];
        assert_eq!(summary.networks[0].1.reasons, reasons.into());
        assert_eq!(summary.others.total(), 1);
        assert_eq!(refusals.take_summary(), None);
        refusals.restore_summary(summary.clone());
        refusals.record(Timestamp(20), address(2, 9), REASON);
        let again = refusals.take_summary().unwrap();
        assert_eq!(again.since, summary.since);
        assert_eq!(again.networks[1].1.total(), 2);
    }

    /// With any number of networks, memory, entries and log lines are bounded, and every refusal is counted.
    #[test]
    fn nobody_makes_the_log_or_the_memory_grow() {
        let refusals = CredentialRefusalCounters::default();
        let networks = u32::try_from(MAX_NETWORKS).unwrap() + 500;
        let mut lines = 0;
        for _ in 0..3 {
            for network in 0..networks {
                lines += u64::from(refusals.record(Timestamp(1), address(network, 1), REASON));
            }
        }
        assert_eq!(lines, MAX_LOG_LINES);
        assert_eq!(refusals.lock().networks.len(), MAX_NETWORKS);
        // The networks with the most refusals are named, regardless of order.
        for _ in 0..50 {
            refusals.record(Timestamp(1), address(900, 1), REASON);
        }
        let summary = refusals.take_summary().unwrap();
        assert_eq!(summary.networks.len(), MAX_NETWORK_EVENTS);
        assert_eq!(summary.networks[0].1.total(), 53);
        let named: u64 = summary
            .networks
            .iter()
            .map(|(_, count)| count.total())
            .sum();
        assert_eq!(named + summary.others.total(), u64::from(networks) * 3 + 50);
        let unlogged = |count: &CredentialRefusalCount| count.unlogged();
        let all: u64 = summary
            .networks
            .iter()
            .map(|(_, count)| unlogged(count))
            .sum();
        let all = all + summary.others.unlogged() + lines;
        assert_eq!(all, u64::from(networks) * 3 + 50);
    }

    #[test]
    fn one_network_has_few_lines() {
        let refusals = CredentialRefusalCounters::default();
        let logged = (0..100).filter(|_| refusals.record(Timestamp(1), address(1, 1), REASON));
        assert_eq!(logged.count() as u64, MAX_LOG_LINES_PER_NETWORK);
        assert!(refusals.record(Timestamp(1), address(2, 1), REASON));
    }
}
