//! Frozen result order: the state that the first page was computed from, kept so that the following pages continue its
//! order.

use std::sync::{Arc, Weak};

use tantivy::Searcher;
use uuid::Uuid;

use super::answer::Duplicates;
use super::blend::{Blend, Blended};
use super::collect::{Order, PageCollector};
use super::error::IndexError;
use super::facets::Facets;
use super::filtered::FilteredQuery;
use super::groups::Groups;
use super::ranking::ranked;
use super::request::{MAX_ORDER, Meaning};
use super::rescore::Rescorer;
use super::search::PreparedQuery;
use super::{Index, IndexView};

/// State that an order depends on, besides the request and its caller: the same request in the same state gives the
/// same order, in every process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderState {
    /// The last event applied.
    applied: i64,
    /// Digest of the agents that later events exclude.
    excluded: u64,
    /// Digest of the query's vector and the agents' vectors, if the search is semantic.
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
    /// Current state for the order of a search with this semantic part.
    pub fn order_state(&self, meaning: Option<&Meaning>) -> Result<OrderState, IndexError> {
        let meant = meaning.map(|meaning| meaning.digest(&meaning.vectors.snapshot()));
        Ok(OrderState::of(&self.0.view()?, meant))
    }
}

/// A search with the state it ran on. It keeps the state's segments from being freed, so the number and lifetime of
/// frozen orders must be bounded.
pub struct FrozenOrder {
    state: OrderState,
    searcher: Searcher,
    query: FilteredQuery,
    order: Order,
    rescorer: Option<Rescorer>,
    blend: Option<Blend>,
    /// Groups of duplicates to fold. Not kept alive, because they take much memory where there are many duplicates.
    groups: Option<Weak<Groups>>,
}

/// A position of a frozen order.
#[derive(Debug, Clone, PartialEq)]
pub struct FrozenPlace {
    /// Id of the agent.
    pub id: Uuid,
    /// Whether the hit is weak.
    pub weak: bool,
    /// How its score was combined, in a hybrid search.
    pub blended: Option<Box<Blended>>,
    /// Its duplicates among the matches, if they are folded and there are any.
    pub duplicates: Option<Box<Duplicates>>,
}

impl FrozenOrder {
    pub(super) fn new(
        prepared: &PreparedQuery,
        query: FilteredQuery,
        order: Order,
        groups: Option<&Arc<Groups>>,
    ) -> Self {
        let meant = prepared.blend.as_ref().map(|blend| blend.meant.digest());
        Self {
            state: OrderState::of(&prepared.view, meant),
            searcher: prepared.view.searcher.clone(),
            query,
            order,
            rescorer: prepared.rescorer.clone(),
            blend: prepared.blend.clone(),
            groups: groups.map(Arc::downgrade),
        }
    }

    /// The groups to fold, found again if the index has gone on.
    fn groups(&self) -> Result<Option<Arc<Groups>>, IndexError> {
        let Some(known) = &self.groups else {
            return Ok(None);
        };
        Ok(Some(match known.upgrade() {
            Some(groups) => groups,
            None => Arc::new(Groups::of(&self.searcher)?),
        }))
    }

    /// The state the order was computed in.
    pub fn state(&self) -> OrderState {
        self.state
    }

    /// The first positions of the whole order, including those of the first page. Most first pages are never followed
    /// by a second one, so this is computed only on request.
    ///
    /// # Errors
    /// [`IndexError::TooMany`] beyond [`MAX_ORDER`]; [`IndexError::Engine`] if the search library fails.
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
            groups: self.groups()?,
        };
        let rescorer = self.rescorer.as_ref();
        let blend = self.blend.as_ref();
        let entries = ranked(&self.searcher, &self.query, &page, rescorer, blend)?.entries;
        let places = entries.into_iter().map(|entry| FrozenPlace {
            id: entry.position.id,
            weak: entry.position.weak,
            blended: entry.blended.map(Box::new),
            duplicates: entry.duplicates.map(Box::new),
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
