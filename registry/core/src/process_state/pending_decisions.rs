//! Decisions that are not written to the database yet.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use a2a_registry_store::entity::access_decision;
use tokio::sync::Notify;
use uuid::Uuid;

/// Maximum number of decisions that wait to be written; further ones are lost.
pub const MAX_PENDING: usize = 20_000;
/// Maximum number of them by one account.
pub const MAX_PENDING_OF_ACCOUNT: usize = 2_000;
/// Maximum number of them by one network without an account, and by all of these together: nobody is behind them who
/// could be asked to send fewer.
pub const MAX_PENDING_OF_NETWORK: usize = 20;
pub const MAX_PENDING_OF_NETWORKS: usize = 200;

#[derive(Debug, Default)]
pub struct PendingDecisions {
    queue: Mutex<DecisionQueue>,
    /// Signals that a decision waits to be written.
    pub added: Notify,
}

#[derive(Debug, Default)]
struct DecisionQueue {
    rows: VecDeque<access_decision::Model>,
    count_by_asker: HashMap<String, usize>,
    /// The number of decisions that askers without an account wait for.
    from_networks: usize,
}

impl PendingDecisions {
    /// Adds a decision; returns whether there was room for it.
    pub fn add(&self, row: access_decision::Model, has_account: bool) -> bool {
        let mut queue = self.lock();
        let own = queue.count_by_asker.get(&row.asker).copied().unwrap_or(0);
        let has_room = match has_account {
            true => own < MAX_PENDING_OF_ACCOUNT,
            false => own < MAX_PENDING_OF_NETWORK && queue.from_networks < MAX_PENDING_OF_NETWORKS,
        };
        if !has_room || queue.rows.len() >= MAX_PENDING {
            return false;
        }
        *queue.count_by_asker.entry(row.asker.clone()).or_default() += 1;
        queue.from_networks += usize::from(!has_account);
        queue.rows.push_back(row);
        drop(queue);
        self.added.notify_one();
        true
    }

    /// The oldest decisions. They stay until they are written, so that they can be looked up meanwhile.
    pub fn oldest(&self, limit: usize) -> Vec<access_decision::Model> {
        self.lock().rows.iter().take(limit).cloned().collect()
    }

    /// Removes decisions that were written.
    pub fn remove(&self, written: &[access_decision::Model]) {
        let ids: HashSet<Uuid> = written.iter().map(|row| row.id).collect();
        let mut queue = self.lock();
        queue.rows.retain(|row| !ids.contains(&row.id));
        let counts = &mut queue.count_by_asker;
        for row in written {
            if let Some(count) = counts.get_mut(&row.asker) {
                *count = count.saturating_sub(1);
            }
        }
        counts.retain(|_, count| *count > 0);
        let networks = queue.count_by_asker.iter();
        let networks = networks.filter(|(asker, _)| !is_account_asker(asker));
        let from_networks: usize = networks.map(|(_, count)| *count).sum();
        queue.from_networks = from_networks;
    }

    pub fn find(&self, id: Uuid) -> Option<access_decision::Model> {
        let queue = self.lock();
        queue.rows.iter().find(|row| row.id == id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, DecisionQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The beginning of an asker that is an account.
pub const ACCOUNT_ASKER_PREFIX: &str = "account:";

fn is_account_asker(asker: &str) -> bool {
    asker.starts_with(ACCOUNT_ASKER_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: usize, asker: &str) -> access_decision::Model {
        access_decision::Model {
            id: Uuid::from_u128(id as u128),
            asker: asker.to_owned(),
            at: 0,
            record: String::new(),
        }
    }

    #[test]
    fn one_asker_cannot_fill_the_queue() {
        let pending = PendingDecisions::default();
        for id in 0..MAX_PENDING_OF_ACCOUNT {
            assert!(pending.add(row(id, "account:a"), true));
        }
        assert!(!pending.add(row(MAX_PENDING, "account:a"), true));
        assert!(pending.add(row(MAX_PENDING + 1, "account:b"), true));
        let written = pending.oldest(1);
        pending.remove(&written);
        assert!(pending.add(row(MAX_PENDING + 2, "account:a"), true));
        assert!(!pending.add(row(MAX_PENDING + 3, "account:a"), true));
        assert!(pending.find(Uuid::from_u128(0)).is_none());
        assert!(pending.find(Uuid::from_u128(1)).is_some());
    }

    #[test]
    fn networks_have_a_small_share_of_the_queue() {
        let pending = PendingDecisions::default();
        let mut added = 0;
        for network in 0..MAX_PENDING_OF_NETWORKS {
            for id in 0..=MAX_PENDING_OF_NETWORK {
                let id = network * 1_000 + id;
                let asker = format!("network:{network}");
                added += usize::from(pending.add(row(id, &asker), false));
            }
        }
        assert_eq!(added, MAX_PENDING_OF_NETWORKS);
        let counted = pending.oldest(MAX_PENDING);
        let of_first = counted.iter().filter(|row| row.asker == "network:0");
        assert_eq!(of_first.count(), MAX_PENDING_OF_NETWORK);
        assert!(pending.add(row(MAX_PENDING * 1_000, "account:a"), true));
        pending.remove(&counted);
        assert!(pending.add(row(MAX_PENDING * 1_001, "network:0"), false));
    }

    #[test]
    fn the_queue_has_a_bound() {
        let pending = PendingDecisions::default();
        let accounts = MAX_PENDING / MAX_PENDING_OF_ACCOUNT;
        for id in 0..MAX_PENDING {
            let asker = format!("account:{}", id % accounts);
            assert!(pending.add(row(id, &asker), true));
        }
        assert!(!pending.add(row(MAX_PENDING, "account:another"), true));
    }
}
