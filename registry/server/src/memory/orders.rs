//! Frozen result lists: the order of a first page, kept for the pages after it.

use std::sync::{Arc, Mutex, PoisonError};

use a2a_registry_search::{FrozenOrder, FrozenPlace, IndexError};

use crate::memory::meanings::Mode;

/// The frozen result list of a search.
#[derive(Debug)]
pub(crate) struct FrozenResults {
    pub(crate) order: Mutex<FrozenState>,
    pub(crate) total: u64,
    /// The number of groups, if duplicates are folded.
    pub(crate) groups: Option<u64>,
    /// The mode of the search; all its pages keep it, whether or not the encoder answers meanwhile.
    pub(crate) mode: Mode,
    /// The labels of the caller that it was made for.
    pub(crate) labels: Arc<[String]>,
}

impl FrozenResults {
    /// The first [`FROZEN`] hits. Two callers at once may both compute them, with the same result.
    pub(crate) fn places(&self) -> Result<Arc<[FrozenPlace]>, IndexError> {
        let held = || self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let unread = match &*held() {
            FrozenState::Read(places) => return Ok(Arc::clone(places)),
            FrozenState::Unread(order) => Arc::clone(order),
        };
        let places: Arc<[FrozenPlace]> = unread.places(FROZEN)?.into();
        *held() = FrozenState::Read(Arc::clone(&places));
        Ok(places)
    }

    /// The number of hits of the search.
    pub(crate) fn hits(&self) -> u64 {
        self.groups.unwrap_or(self.total)
    }

    /// The number of hits in the list.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.hits()).map_or(FROZEN, |hits| hits.min(FROZEN))
    }
}

/// The state of a frozen list: computed when a second page is requested, then stored as hits.
#[derive(Debug)]
pub(crate) enum FrozenState {
    Unread(Arc<FrozenOrder>),
    Read(Arc<[FrozenPlace]>),
}

/// The most hits of a frozen list.
pub(crate) const FROZEN: usize = 1000;
