//! Limits of open event and task streams. Streams of accounts and anonymous streams are counted separately, so that
//! neither group can exhaust the other's capacity. One account, or one anonymous network, may use only a share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use a2a_registry_core::error::{AppError, ErrorKind, Result};
use a2a_registry_core::visibility::caller::{Caller, CallerKey};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One account, or one anonymous network, may use this fraction of the capacity.
const CALLER_SHARE_DIVISOR: usize = 10;
/// Seconds after which a rejected caller may try again.
const RETRY_AFTER_SECONDS: u32 = 30;

#[derive(Debug)]
pub struct StreamLimiter {
    accounts: Arc<Semaphore>,
    anonymous: Arc<Semaphore>,
    capacity: usize,
    max_per_owner: usize,
    /// A caller without a stream has no entry, so there are never more entries than streams.
    open_by_owner: Mutex<HashMap<CallerKey, usize>>,
}

/// Permit for one open stream, released on drop.
#[derive(Debug)]
pub struct StreamPermit {
    limiter: Arc<StreamLimiter>,
    owner: CallerKey,
    _permit: OwnedSemaphorePermit,
}

impl StreamLimiter {
    /// Allows `capacity` streams for accounts, half as many for anonymous callers, and a tenth of these, at least one,
    /// for one account or network.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.min(Semaphore::MAX_PERMITS);
        Self {
            accounts: Arc::new(Semaphore::new(capacity)),
            anonymous: Arc::new(Semaphore::new(capacity / 2)),
            capacity,
            max_per_owner: (capacity / CALLER_SHARE_DIVISOR).max(1),
            open_by_owner: Mutex::default(),
        }
    }

    pub fn acquire(self: &Arc<Self>, caller: &Caller) -> Result<StreamPermit> {
        let limit_error = |kind, detail: &str| AppError {
            retry_after: Some(RETRY_AFTER_SECONDS),
            ..AppError::new(kind, detail)
        };
        let owner = caller.key();
        let semaphore = match owner {
            CallerKey::Account(_) => &self.accounts,
            CallerKey::Network(_) => &self.anonymous,
        };
        let mut open_by_owner = self.lock_open_by_owner();
        if open_by_owner
            .get(&owner)
            .is_some_and(|count| *count >= self.max_per_owner)
        {
            return Err(limit_error(
                ErrorKind::TooManyRequests,
                "You have the maximum number of open streams per caller. Close one, or read without a stream.",
            ));
        }
        let permit = Arc::clone(semaphore).try_acquire_owned();
        let permit = permit.map_err(|_| {
            limit_error(
                ErrorKind::Unavailable,
                "The registry has the maximum number of open streams. Try again later, or read without a stream.",
            )
        })?;
        *open_by_owner.entry(owner).or_default() += 1;
        drop(open_by_owner);
        Ok(StreamPermit {
            limiter: Arc::clone(self),
            owner,
            _permit: permit,
        })
    }

    pub fn count_open_streams(&self) -> usize {
        let capacity = self.capacity + self.capacity / 2;
        let free = self.accounts.available_permits() + self.anonymous.available_permits();
        capacity.saturating_sub(free)
    }

    fn lock_open_by_owner(&self) -> MutexGuard<'_, HashMap<CallerKey, usize>> {
        self.open_by_owner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open_by_owner = self.limiter.lock_open_by_owner();
        if let Some(count) = open_by_owner.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                open_by_owner.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::IpAddr;

    use a2a_registry_core::visibility::caller::{CallerAccount, Credential};
    use a2a_registry_domain::role::{Role, Roles};
    use uuid::Uuid;

    use super::*;

    fn account(number: u128) -> Caller {
        let roles = Roles::from_legacy_role(Role::Reader);
        Caller {
            account: Some(CallerAccount {
                id: Uuid::from_u128(number),
                name: number.to_string(),
                scopes: roles.scopes(),
                roles,
                groups: Vec::new(),
                group_names: Vec::new(),
                credential: Credential::Token(Uuid::nil()),
            }),
            network: None,
        }
    }

    fn nobody(last: u8) -> Caller {
        Caller {
            account: None,
            network: Some(IpAddr::from([192, 0, 2, last])),
        }
    }

    /// Takes permits for callers that each use their full share, until none is left. Returns the permits.
    fn fill(places: &Arc<StreamLimiter>, caller: impl Fn(u8) -> Caller) -> Vec<StreamPermit> {
        let mut taken = Vec::new();
        for number in 0..=u8::MAX {
            loop {
                match places.acquire(&caller(number)) {
                    Ok(place) => taken.push(place),
                    Err(error) if error.kind == ErrorKind::TooManyRequests => break,
                    Err(_) => return taken,
                }
            }
        }
        taken
    }

    #[test]
    fn one_caller_has_a_share_and_no_kind_takes_the_places_of_the_other() {
        let places = Arc::new(StreamLimiter::new(20));
        let own = [(); 2].map(|()| places.acquire(&nobody(1)).unwrap());
        let kind = |caller: &Caller| places.acquire(caller).unwrap_err().kind;
        assert_eq!(kind(&nobody(1)), ErrorKind::TooManyRequests);
        drop(own);
        let anonymous = fill(&places, nobody);
        assert_eq!((anonymous.len(), places.count_open_streams()), (10, 10));
        let signed_in = fill(&places, |number| account(number.into()));
        assert_eq!((signed_in.len(), places.count_open_streams()), (20, 30));
        assert_eq!(kind(&account(999)), ErrorKind::Unavailable);
        drop(anonymous);
        assert!(places.acquire(&account(999)).is_err());
        assert!(places.acquire(&nobody(1)).is_ok());
        drop(signed_in);
        assert!(places.lock_open_by_owner().is_empty());
    }
}
