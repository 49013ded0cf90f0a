//! Slot sets, with one bit per slot.

/// A number that is never a slot.
pub const NO_SLOT: u32 = u32::MAX;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotBitSet(Vec<u64>);

impl SlotBitSet {
    /// An empty set, with room for slots below `slots`.
    pub fn with_capacity(slots: usize) -> Self {
        Self(vec![0; slots.div_ceil(64)])
    }

    /// Ignores a slot outside the set's bounds.
    #[inline]
    pub fn insert(&mut self, slot: u32) {
        if let Some(word) = self.0.get_mut(slot as usize / 64) {
            *word |= 1 << (slot % 64);
        }
    }

    #[inline]
    pub fn contains(&self, slot: u32) -> bool {
        self.0
            .get(slot as usize / 64)
            .is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    /// The words from slot `first` on, a multiple of 64, for at most `slots` slots.
    pub(super) fn words(&self, first: usize, slots: usize) -> &[u64] {
        let begin = (first / 64).min(self.0.len());
        let end = (begin + slots.div_ceil(64)).min(self.0.len());
        &self.0[begin..end]
    }
}
