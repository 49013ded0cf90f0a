//! Slots for open streams, of events and of tasks alike: those of accounts are counted together, those without an
//! account separately, so that neither can take the others'. One account, or one network without an account, has a
//! share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use a2a_registry_core::error::{AppError, ErrorKind, Result};
use a2a_registry_core::visibility::caller::{Caller, CallerKey};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One account, or one network without an account, may have one in this many slots.
const SHARE: usize = 10;
/// Seconds after which a caller who was refused may try again.
const RETRY_AFTER: u32 = 30;

#[derive(Debug)]
pub struct StreamPlaces {
    accounts: Arc<Semaphore>,
    anonymous: Arc<Semaphore>,
    places: usize,
    share: usize,
    /// A holder without a stream has no entry, so there are never more entries than streams.
    open: Mutex<HashMap<CallerKey, usize>>,
}

/// The slot of one open stream, freed when this is dropped.
#[derive(Debug)]
pub struct StreamPlace {
    places: Arc<StreamPlaces>,
    holder: CallerKey,
    _permit: OwnedSemaphorePermit,
}

impl StreamPlaces {
    /// `places` slots for accounts, half as many for callers without an account, and for one account or network a tenth
    /// of them, at least one.
    pub fn new(places: usize) -> Self {
        let places = places.min(Semaphore::MAX_PERMITS);
        Self {
            accounts: Arc::new(Semaphore::new(places)),
            anonymous: Arc::new(Semaphore::new(places / 2)),
            places,
            share: (places / SHARE).max(1),
            open: Mutex::default(),
        }
    }

    pub fn take(self: &Arc<Self>, caller: &Caller) -> Result<StreamPlace> {
        let none = |kind, detail: &str| AppError {
            retry_after: Some(RETRY_AFTER),
            ..AppError::new(kind, detail)
        };
        let holder = caller.key();
        let places = match holder {
            CallerKey::Account(_) => &self.accounts,
            CallerKey::Network(_) => &self.anonymous,
        };
        let mut open = self.open();
        if open.get(&holder).is_some_and(|count| *count >= self.share) {
            return Err(none(
                ErrorKind::TooManyRequests,
                "You have as many streams open as the registry allows one caller; close one, or read without a stream.",
            ));
        }
        let permit = Arc::clone(places).try_acquire_owned();
        let permit = permit.map_err(|_| {
            none(
                ErrorKind::Unavailable,
                "As many streams are open as the registry allows; try again, or read without a stream.",
            )
        })?;
        *open.entry(holder).or_default() += 1;
        drop(open);
        Ok(StreamPlace {
            places: Arc::clone(self),
            holder,
            _permit: permit,
        })
    }

    pub fn count(&self) -> usize {
        let places = self.places + self.places / 2;
        let free = self.accounts.available_permits() + self.anonymous.available_permits();
        places.saturating_sub(free)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<CallerKey, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.places.open();
        if let Some(count) = open.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::IpAddr;

    use a2a_registry_core::visibility::caller::{Account, Credential};
    use a2a_registry_domain::role::{Role, Roles};
    use uuid::Uuid;

    use super::*;

    fn account(number: u128) -> Caller {
        let roles = Roles::of_one(Role::Reader);
        Caller {
            account: Some(Account {
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

    /// Takes places for callers of which each takes its share, until there is no more; returns how many.
    fn fill(places: &Arc<StreamPlaces>, caller: impl Fn(u8) -> Caller) -> Vec<StreamPlace> {
        let mut taken = Vec::new();
        for number in 0..=u8::MAX {
            loop {
                match places.take(&caller(number)) {
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
        let places = Arc::new(StreamPlaces::new(20));
        let own = [(); 2].map(|()| places.take(&nobody(1)).unwrap());
        let kind = |caller: &Caller| places.take(caller).unwrap_err().kind;
        assert_eq!(kind(&nobody(1)), ErrorKind::TooManyRequests);
        drop(own);
        let anonymous = fill(&places, nobody);
        assert_eq!((anonymous.len(), places.count()), (10, 10));
        let signed_in = fill(&places, |number| account(number.into()));
        assert_eq!((signed_in.len(), places.count()), (20, 30));
        assert_eq!(kind(&account(999)), ErrorKind::Unavailable);
        drop(anonymous);
        assert!(places.take(&account(999)).is_err());
        assert!(places.take(&nobody(1)).is_ok());
        drop(signed_in);
        assert!(places.open().is_empty());
    }
}
