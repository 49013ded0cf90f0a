//! Orders that first pages have shown, held for the pages behind them.

use std::sync::{Arc, Mutex, PoisonError};

use a2a_registry_search::{FrozenOrder, FrozenPlace, IndexError};

use crate::memory::meanings::Mode;

/// The order a first page has shown.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) order: Mutex<Held>,
    pub(crate) total: u64,
    /// How it was found; a page of it is of that mode, whatever the encoder says meanwhile.
    pub(crate) mode: Mode,
}

impl Frozen {
    /// The first [`FROZEN`] places. Two callers at once may both work them out, and find the same.
    pub(crate) fn places(&self) -> Result<Arc<[FrozenPlace]>, IndexError> {
        let held = || self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let unread = match &*held() {
            Held::Read(places) => return Ok(Arc::clone(places)),
            Held::Unread(order) => Arc::clone(order),
        };
        let places: Arc<[FrozenPlace]> = unread.places(FROZEN)?.into();
        *held() = Held::Read(Arc::clone(&places));
        Ok(places)
    }

    /// How many hits the order gives.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.total).map_or(FROZEN, |total| total.min(FROZEN))
    }
}

/// An order as it is held: to be worked out when a second page is asked for, then as places.
#[derive(Debug)]
pub(crate) enum Held {
    Unread(Arc<FrozenOrder>),
    Read(Arc<[FrozenPlace]>),
}

/// Ids of a relevance order that are frozen with its first page.
pub(crate) const FROZEN: usize = 1000;
