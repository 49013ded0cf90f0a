//! Replicas behind a load balancer that an operator drains before a restart.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{RwLock, RwLockReadGuard};

use super::api::RegistryClient;

/// Replicas to which requests go in turn.
pub struct RoundRobin {
    /// `None` while a replica is taken out.
    replicas: Vec<RwLock<Option<RegistryClient>>>,
    next: AtomicUsize,
}

impl RoundRobin {
    /// Sends requests to all of these.
    pub fn new(replicas: impl IntoIterator<Item = RegistryClient>) -> Self {
        let replicas = replicas.into_iter().map(|api| RwLock::new(Some(api)));
        Self {
            replicas: replicas.collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// The replica whose turn it is, which stays in use until this is dropped.
    pub async fn next_replica(&self) -> RwLockReadGuard<'_, RegistryClient> {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed) % self.replicas.len();
            // One that is about to be taken out is not waited for.
            let replica = self.replicas[at].try_read().ok();
            let replica =
                replica.and_then(|one| RwLockReadGuard::try_map(one, Option::as_ref).ok());
            if let Some(replica) = replica {
                return replica;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Takes a replica out: returns when no request is on its way to it, and none will be.
    pub async fn take_out(&self, at: usize) {
        *self.replicas[at].write().await = None;
    }

    /// Puts a replica back.
    pub async fn put_back(&self, at: usize, api: RegistryClient) {
        *self.replicas[at].write().await = Some(api);
    }
}
