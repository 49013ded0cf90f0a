//! Places among the open streams of tasks: those of accounts are counted with the event streams, those without an account
//! beside them, so that neither can take the others'. One account, or one network without an account, has a share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::caller::Caller;

/// One account, or one network without an account, has one of so many places.
const SHARE: usize = 10;

/// Whose a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Account(Uuid),
    /// `None` where the address is not known.
    Network(Option<IpAddr>),
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPlace {
    /// The caller has its share.
    Own,
    /// All places of its kind of callers are taken.
    All,
}

/// The open streams of tasks.
#[derive(Debug)]
pub struct StreamPlaces {
    accounts: Arc<Semaphore>,
    anonymous: Arc<Semaphore>,
    anonymous_places: usize,
    share: usize,
    /// A holder without a stream has no entry, so there are never more than streams.
    open: Mutex<HashMap<Holder, usize>>,
}

/// The place of one open stream, freed when this is dropped.
#[derive(Debug)]
pub struct StreamPlace {
    places: Arc<StreamPlaces>,
    holder: Holder,
    _permit: OwnedSemaphorePermit,
}

impl StreamPlaces {
    /// The places of a registry that has so many for accounts, which its event streams take too: half as many without an
    /// account, and for one account or network a tenth of them, at least one.
    pub fn new(accounts: Arc<Semaphore>, places: usize) -> Self {
        let anonymous_places = places / 2;
        Self {
            accounts,
            anonymous: Arc::new(Semaphore::new(anonymous_places)),
            anonymous_places,
            share: (places / SHARE).max(1),
            open: Mutex::default(),
        }
    }

    /// A place for a stream of the caller.
    ///
    /// # Errors
    /// Where the caller has its share, or all places are taken.
    pub fn take(self: &Arc<Self>, caller: &Caller) -> Result<StreamPlace, NoPlace> {
        let (holder, places) = match &caller.account {
            Some(account) => (Holder::Account(account.id), &self.accounts),
            None => (Holder::Network(caller.network), &self.anonymous),
        };
        let mut open = self.open();
        if open.get(&holder).is_some_and(|count| *count >= self.share) {
            return Err(NoPlace::Own);
        }
        let permit = Arc::clone(places).try_acquire_owned();
        let permit = permit.map_err(|_| NoPlace::All)?;
        *open.entry(holder).or_default() += 1;
        drop(open);
        Ok(StreamPlace {
            places: Arc::clone(self),
            holder,
            _permit: permit,
        })
    }

    /// Open streams without an account.
    pub fn anonymous_open(&self) -> usize {
        self.anonymous_places
            .saturating_sub(self.anonymous.available_permits())
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Holder, usize>> {
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

    use a2a_registry_domain::role::{Role, Roles};

    use super::*;
    use crate::caller::{Account, Credential};

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
                    Err(NoPlace::Own) => break,
                    Err(NoPlace::All) => return taken,
                }
            }
        }
        taken
    }

    #[test]
    fn one_caller_has_a_share_and_no_kind_takes_the_places_of_the_other() {
        let accounts = Arc::new(Semaphore::new(20));
        let places = Arc::new(StreamPlaces::new(Arc::clone(&accounts), 20));
        let own = [(); 2].map(|()| places.take(&nobody(1)).unwrap());
        assert_eq!(places.take(&nobody(1)).unwrap_err(), NoPlace::Own);
        drop(own);
        let anonymous = fill(&places, nobody);
        assert_eq!((anonymous.len(), places.anonymous_open()), (10, 10));
        let signed_in = fill(&places, |number| account(number.into()));
        assert_eq!((signed_in.len(), accounts.available_permits()), (20, 0));
        assert_eq!(places.take(&account(999)).unwrap_err(), NoPlace::All);
        drop(anonymous);
        assert!(places.take(&account(999)).is_err());
        assert!(places.take(&nobody(1)).is_ok());
        drop(signed_in);
        assert!(places.open().is_empty());
    }
}
