//! Limits of open connections, in total and for each address: a client that opens many must not use up the file
//! descriptors that other requests, the database and the index need.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use a2a_registry_core::config::Config;
use a2a_registry_core::file_descriptors::DescriptorBudget;
use ipnet::IpNet;

use crate::limits::client_address::{client_network, is_in_networks};

#[derive(Debug)]
pub struct ConnectionLimiter {
    max_connections: usize,
    max_per_address: usize,
    exempt: Vec<IpNet>,
    counts: Mutex<ConnectionCounts>,
}

#[derive(Debug, Default)]
struct ConnectionCounts {
    total: usize,
    /// An address without a connection has no entry, so there are never more entries than connections.
    by_address: HashMap<IpAddr, usize>,
}

/// Permit for one open connection, released on drop.
#[derive(Debug)]
pub struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    /// Address that the connection counts for; `None` for a trusted proxy.
    address: Option<IpAddr>,
}

impl ConnectionLimiter {
    /// Limits connections to what the configuration and the process's file descriptors allow.
    pub fn new(config: &Config) -> Self {
        Self::with_budget(config, DescriptorBudget::for_process(config))
    }

    fn with_budget(config: &Config, budget: DescriptorBudget) -> Self {
        let configured = config.limits.connections;
        let max_connections = budget.max_connections();
        let mut max_per_address = config.limits.connections_per_address;
        if max_connections < configured {
            tracing::warn!(
                configured,
                max_connections,
                "fewer connections than limits.connections: the open file limit (ulimit -n) is too low"
            );
            // One address must not use all of a small number of connections.
            max_per_address = max_per_address.min(max_connections / 2).max(1);
        }
        Self {
            max_connections,
            max_per_address,
            exempt: config.server.trusted_proxies.clone(),
            counts: Mutex::default(),
        }
    }

    pub fn max_connections(&self) -> usize {
        self.max_connections
    }

    /// Permit for one more connection from this address; `None` if a limit is reached.
    pub fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionPermit> {
        let peer = peer.to_canonical();
        let address = (!is_in_networks(&self.exempt, peer)).then(|| client_network(peer));
        let mut counts = self.lock_counts();
        if counts.total >= self.max_connections {
            return None;
        }
        if let Some(address) = address {
            let count = counts.by_address.entry(address).or_default();
            if *count >= self.max_per_address {
                return None;
            }
            *count += 1;
        }
        counts.total += 1;
        drop(counts);
        Some(ConnectionPermit {
            limiter: Arc::clone(self),
            address,
        })
    }

    fn lock_counts(&self) -> MutexGuard<'_, ConnectionCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut counts = self.limiter.lock_counts();
        counts.total = counts.total.saturating_sub(1);
        let Some(address) = self.address else { return };
        if let Some(count) = counts.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn connections(most: usize, most_per_address: usize) -> Arc<ConnectionLimiter> {
        let mut config = Config::default();
        config.limits.connections = most;
        config.limits.connections_per_address = most_per_address;
        config.server.trusted_proxies = vec!["192.0.2.100/32".parse().unwrap()];
        Arc::new(ConnectionLimiter::new(&config))
    }

    fn from(connections: &Arc<ConnectionLimiter>, address: &str) -> Option<ConnectionPermit> {
        connections.admit(address.parse().unwrap())
    }

    #[test]
    fn an_address_has_its_places_and_no_more() {
        let connections = connections(100, 2);
        let first = from(&connections, "192.0.2.1").unwrap();
        let _second = from(&connections, "::ffff:192.0.2.1").unwrap();
        assert!(from(&connections, "192.0.2.1").is_none());
        assert!(from(&connections, "192.0.2.2").is_some());
        drop(first);
        assert!(from(&connections, "192.0.2.1").is_some());
    }

    #[test]
    fn one_ipv6_network_counts_as_one_address() {
        let connections = connections(100, 1);
        let _first = from(&connections, "2001:db8::1").unwrap();
        assert!(from(&connections, "2001:db8::2").is_none());
        assert!(from(&connections, "2001:db8:0:1::1").is_some());
    }

    #[test]
    fn a_trusted_proxy_is_bound_by_the_total_only() {
        let connections = connections(4, 1);
        let held: Vec<_> = (0..4)
            .map(|_| from(&connections, "192.0.2.100").unwrap())
            .collect();
        assert!(from(&connections, "192.0.2.100").is_none());
        assert!(from(&connections, "192.0.2.1").is_none());
        drop(held);
        assert!(from(&connections, "192.0.2.1").is_some());
    }

    #[test]
    fn one_address_never_has_all_connections_that_few_descriptors_allow() {
        let config = Config::default();
        let needed = DescriptorBudget::with_limit(&config, None).needed_descriptors();
        // Only a hundred of the ten thousand connections fit.
        let budget = DescriptorBudget::with_limit(&config, Some(needed - 9_900));
        let connections = Arc::new(ConnectionLimiter::with_budget(&config, budget));
        let held: Vec<_> = (0..50)
            .map(|_| from(&connections, "192.0.2.1").unwrap())
            .collect();
        assert!(from(&connections, "192.0.2.1").is_none());
        let others: Vec<_> = (0..50)
            .map(|_| from(&connections, "192.0.2.2").unwrap())
            .collect();
        assert!(from(&connections, "192.0.2.3").is_none());
        drop((held, others));
        assert!(from(&connections, "192.0.2.3").is_some());
    }

    #[test]
    fn what_is_closed_leaves_nothing_behind() {
        let connections = connections(100, 2);
        for last in 1..=50 {
            drop(from(&connections, &format!("192.0.2.{last}")));
        }
        assert_eq!(connections.lock_counts().total, 0);
        assert!(connections.lock_counts().by_address.is_empty());
    }
}
