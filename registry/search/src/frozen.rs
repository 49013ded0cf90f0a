//! The state a first page was answered from, held so that the pages behind it follow its order.

use tantivy::Searcher;
use uuid::Uuid;

use super::blend::{Blend, Blended};
use super::collect::{Order, PageCollector};
use super::error::IndexError;
use super::facets::Facets;
use super::filtered::FilteredQuery;
use super::ranking::ranked;
use super::request::{MAX_ORDER, Meaning};
use super::rescore::Rescorer;
use super::{Index, IndexView};

/// What an order depends on beside what is asked and by whom: who asks the same in the same state finds the same order,
/// in whichever process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderState {
    /// The last event applied.
    applied: i64,
    /// Which agents are left out because of later ones.
    excluded: u64,
    /// What the query means and the vectors it is compared with, where meaning counts.
    meant: Option<u64>,
}

impl OrderState {
    pub(super) fn of(view: &IndexView, meant: Option<u64>) -> Self {
        Self {
            applied: view.applied,
            excluded: view.excluded_digest,
            meant,
        }
    }
}

impl std::fmt::Display for OrderState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            applied,
            excluded,
            meant,
        } = self;
        write!(f, "{applied} {excluded:x}")?;
        meant.map_or(Ok(()), |meant| write!(f, " {meant:x}"))
    }
}

impl Index {
    /// The state that a search with this meaning would find its order in now.
    pub fn order_state(&self, meaning: Option<&Meaning>) -> Result<OrderState, IndexError> {
        let meant = meaning.map(|meaning| meaning.digest(&meaning.vectors.snapshot()));
        Ok(OrderState::of(&self.0.view()?, meant))
    }
}

/// A search with the state it ran on. It keeps that state's segments from being freed, so whoever holds many
/// of them bounds their number and their time.
pub struct FrozenOrder {
    state: OrderState,
    searcher: Searcher,
    query: FilteredQuery,
    order: Order,
    rescorer: Option<Rescorer>,
    blend: Option<Blend>,
}

/// A place of a frozen order.
#[derive(Debug, Clone, PartialEq)]
pub struct FrozenPlace {
    /// The agent.
    pub id: Uuid,
    /// How its score was combined, in a hybrid search.
    pub blended: Option<Box<Blended>>,
}

impl FrozenOrder {
    pub(super) fn new(
        state: OrderState,
        searcher: Searcher,
        query: FilteredQuery,
        order: Order,
        rescorer: Option<Rescorer>,
        blend: Option<Blend>,
    ) -> Self {
        Self {
            state,
            searcher,
            query,
            order,
            rescorer,
            blend,
        }
    }

    /// The state it was found in.
    pub fn state(&self) -> OrderState {
        self.state
    }

    /// The first places of the whole order, beginning with those of the first page. Most first pages are never
    /// followed by a second one, so this is worked out only when one is asked for.
    ///
    /// # Errors
    /// [`IndexError::TooMany`] beyond [`MAX_ORDER`]; where the search library fails.
    pub fn places(&self, limit: usize) -> Result<Vec<FrozenPlace>, IndexError> {
        if limit > MAX_ORDER {
            return Err(IndexError::TooMany {
                what: "ids of the order",
                limit: MAX_ORDER,
            });
        }
        let page = PageCollector {
            order: self.order,
            top: limit,
            after: None,
            facets: Facets::default(),
            apart: None,
        };
        let rescorer = self.rescorer.as_ref();
        let blend = self.blend.as_ref();
        let entries = ranked(&self.searcher, &self.query, &page, rescorer, blend)?.entries;
        let places = entries.into_iter().map(|entry| FrozenPlace {
            id: entry.position.id,
            blended: entry.blended.map(Box::new),
        });
        Ok(places.collect())
    }
}

impl std::fmt::Debug for FrozenOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrozenOrder")
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}
