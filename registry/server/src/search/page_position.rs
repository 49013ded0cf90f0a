//! What a page token of search holds: where the next page begins. [`Signer`](crate::paging::Signer) signs it.

use a2a_registry_search::{SortPosition, SortValue};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::memory::meanings::Mode;

/// The position at which a page begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PagePosition {
    /// The frozen list, and the offset in it.
    pub(super) frozen: Option<(u64, usize)>,
    /// The sort key of the last hit shown, to continue without a frozen list.
    pub(super) last: LastSortKey,
    /// The mode that the scores are of.
    pub(super) mode: Mode,
    /// The last agent shown, which decides among equal sort keys.
    pub(super) id: Uuid,
    /// Whether the last hit shown was weak.
    #[serde(default)]
    pub(super) weak: bool,
}

/// The sort key of a hit, as a token holds it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum LastSortKey {
    Score(f32),
    Name(String),
    Time(i64),
}

impl PagePosition {
    /// The position after this hit.
    pub(super) fn of(position: &SortPosition, frozen: Option<(u64, usize)>, mode: Mode) -> Self {
        let last = match &position.value {
            SortValue::Score(score) => LastSortKey::Score(*score),
            SortValue::Name(name) => LastSortKey::Name(name.clone()),
            SortValue::Time(time) => LastSortKey::Time(*time),
        };
        Self {
            frozen,
            last,
            mode,
            id: position.id,
            weak: position.weak,
        }
    }

    /// The position for a search that continues without a frozen list.
    pub(super) fn into_sort(self) -> SortPosition {
        let value = match self.last {
            LastSortKey::Score(score) => SortValue::Score(score),
            LastSortKey::Name(name) => SortValue::Name(name),
            LastSortKey::Time(time) => SortValue::Time(time),
        };
        SortPosition {
            weak: self.weak,
            value,
            id: self.id,
        }
    }
}
