//! File descriptors: how many a process needs, how many the system allows, and how many of them clients may use.

use std::thread::available_parallelism;

use a2a_crawler::descriptors::DESCRIPTORS_PER_VISIT;

use crate::config::Config;

/// File descriptors reserved for the database, the index and its merges, checks of proofs, requests to encoders, peers
/// and identity providers, and connections that are about to be refused.
const RESERVED_DESCRIPTORS: u64 = 160;
/// File descriptors for the event loop of each worker.
const DESCRIPTORS_PER_CORE: u64 = 4;
/// Fewer client connections are not worth serving.
const MIN_CONNECTIONS: u64 = 16;

/// The file descriptors of a process by use. Visits, database and index come first: a shortage there makes a visit
/// meaningless or keeps a change out of searches, while a client only gets its connection refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorBudget {
    /// The maximum number that this process may open; `None` without a limit.
    limit: Option<u64>,
    /// The number for visits in progress.
    visits: u64,
    /// The number for the process itself.
    process: u64,
    /// The configured number of client connections.
    connections: u64,
}

impl DescriptorBudget {
    /// Computes the budget of this process and raises its limit as far as needed and permitted: many systems set a low
    /// soft limit.
    pub fn for_process(config: &Config) -> Self {
        let unlimited = Self::with_limit(config, None);
        Self {
            limit: raise_file_limit(unlimited.needed_descriptors()),
            ..unlimited
        }
    }

    pub fn with_limit(config: &Config, limit: Option<u64>) -> Self {
        let cores = available_parallelism().map_or(1, usize::from) as u64;
        let visits = config
            .crawler
            .concurrency
            .saturating_mul(DESCRIPTORS_PER_VISIT);
        Self {
            limit,
            visits: visits as u64,
            process: DESCRIPTORS_PER_CORE
                .saturating_mul(cores)
                .saturating_add(RESERVED_DESCRIPTORS),
            connections: config.limits.connections as u64,
        }
    }

    pub fn needed_descriptors(&self) -> u64 {
        self.reserved_descriptors().saturating_add(self.connections)
    }

    /// Maximum number of open client connections: the configured number, or fewer if fewer descriptors remain.
    pub fn max_connections(&self) -> usize {
        let left = self.limit.map_or(u64::MAX, |limit| {
            limit.saturating_sub(self.reserved_descriptors())
        });
        usize::try_from(left.min(self.connections)).unwrap_or(usize::MAX)
    }

    /// Explains why a process cannot serve with this limit, and what to do; `None` if it can.
    pub fn shortage_message(&self) -> Option<String> {
        let min_connections = MIN_CONNECTIONS.min(self.connections);
        let required = self.reserved_descriptors().saturating_add(min_connections);
        let limit = self.limit.filter(|limit| *limit < required)?;
        Some(format!(
            "a process may open only {limit} files here, and needs at least {required}: {} for visits \
             ({DESCRIPTORS_PER_VISIT} each, crawler.concurrency at once), {} for database and index, {min_connections} for clients; \
             raise the limit (ulimit -n, LimitNOFILE= of a systemd unit, --ulimit nofile= of a container), or lower \
             crawler.concurrency",
            self.visits, self.process
        ))
    }

    /// The budget as a sentence, and whether it limits nothing.
    pub fn summary(&self) -> (bool, String) {
        let needed = self.needed_descriptors();
        match self.limit {
            None => (
                true,
                format!("at most {needed} are needed, without a limit"),
            ),
            Some(limit) if limit >= needed => (
                true,
                format!("at most {needed} are needed, and {limit} may be open"),
            ),
            Some(limit) => (
                false,
                format!(
                    "{limit} may be open, so only {} connections are served instead of limits.connections ({}); \
                     {needed} are needed (ulimit -n, LimitNOFILE)",
                    self.max_connections(),
                    self.connections
                ),
            ),
        }
    }

    fn reserved_descriptors(&self) -> u64 {
        self.visits.saturating_add(self.process)
    }
}

/// Raises the limit of open files of this process to the needed number if the system permits, and returns it. `None`
/// if there is no limit, or it cannot be read.
#[cfg(unix)]
fn raise_file_limit(needed: u64) -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = getrlimit(Resource::Nofile);
    let current = limits.current?;
    if current >= needed {
        return Some(current);
    }
    let new_limit = limits.maximum.map_or(needed, |maximum| maximum.min(needed));
    let limit = Rlimit {
        current: Some(new_limit),
        maximum: limits.maximum,
    };
    match setrlimit(Resource::Nofile, limit) {
        Ok(()) => Some(new_limit),
        Err(_) => Some(current),
    }
}

#[cfg(not(unix))]
fn raise_file_limit(_: u64) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn budget(limit: Option<u64>) -> DescriptorBudget {
        DescriptorBudget::with_limit(&Config::default(), limit)
    }

    #[test]
    fn clients_get_what_visits_database_and_index_leave() {
        let unlimited = budget(None);
        assert_eq!(unlimited.visits, 256, "the default of the crawler");
        assert_eq!(unlimited.max_connections(), 10_000);
        assert!(unlimited.summary().0 && unlimited.shortage_message().is_none());
        let enough = budget(Some(unlimited.needed_descriptors()));
        assert_eq!(enough.max_connections(), 10_000);
        assert!(enough.summary().0);
        let scarce = budget(Some(unlimited.needed_descriptors() - 1));
        assert_eq!(scarce.max_connections(), 9_999);
        assert!(!scarce.summary().0 && scarce.shortage_message().is_none());
    }

    #[test]
    fn with_too_few_a_process_does_not_start() {
        let least = budget(None).reserved_descriptors() + MIN_CONNECTIONS;
        assert_eq!(budget(Some(least)).shortage_message(), None);
        assert_eq!(budget(Some(least)).max_connections(), 16);
        let line = budget(Some(least - 1)).shortage_message().unwrap();
        assert!(line.contains(&least.to_string()), "{line}");
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(budget(Some(0)).max_connections(), 0);
        // Fewer visits need fewer descriptors.
        let mut config = Config::default();
        config.crawler.concurrency = 8;
        assert_eq!(
            DescriptorBudget::with_limit(&config, Some(least - 1)).shortage_message(),
            None
        );
    }
}
