//! Bulk inserts within the limits of one statement, and row locks.

use sea_orm::sea_query::{LockType, OnConflict};
use sea_orm::{ActiveModelTrait, EntityTrait, Iterable, QuerySelect, Select};

use super::{Executor, StoreError, WriteTransaction};

/// Maximum number of values bound in one statement: SQLite allows 32,766 and PostgreSQL 65,535.
pub(super) const MAX_BOUND_VALUES: usize = 30_000;
/// Maximum number of rows in one statement. Statements of a few sizes are prepared once and reused, which saves more
/// time than fewer, larger statements would.
pub(super) const MAX_STATEMENT_ROWS: usize = 64;

/// Maximum number of keys that are padded: with more, a statement takes longer to run than to prepare.
const MAX_PADDED_KEYS: usize = 4_096;

impl WriteTransaction {
    /// Inserts any number of rows in their order; `conflict` handles existing ones.
    pub(super) async fn insert_rows<A>(
        &self,
        rows: impl IntoIterator<Item = A>,
        conflict: Option<OnConflict>,
    ) -> Result<(), StoreError>
    where
        A: ActiveModelTrait + Send,
    {
        let columns = <A::Entity as EntityTrait>::Column::iter().count();
        let mut rows: Vec<A> = rows.into_iter().collect();
        while !rows.is_empty() {
            let rest = rows.split_off(next_statement_row_count(rows.len(), columns));
            let insert = A::Entity::insert_many(rows);
            match &conflict {
                Some(conflict) => {
                    insert
                        .on_conflict(conflict.clone())
                        .exec_without_returning(self.connection())
                        .await?;
                }
                None => {
                    insert.exec_without_returning(self.connection()).await?;
                }
            }
            rows = rest;
        }
        Ok(())
    }
}

/// Locks the rows that a query inside a write reads until the write ends, so that no other write changes them between
/// reading and writing. SQLite has one writer at a time and needs no lock.
pub(super) fn lock_for_update<E: EntityTrait>(db: &impl Executor, query: Select<E>) -> Select<E> {
    if db.locks_rows() {
        query.lock(LockType::Update)
    } else {
        query
    }
}

/// Pads keys for a condition `IN (…)` up to a power of two by repeating the last one: statements of a few sizes are
/// prepared once and reused, while one for each number of keys would evict all others.
pub(super) fn pad_keys<T: Clone>(keys: &[T]) -> Vec<T> {
    let mut padded = keys.to_vec();
    if let Some(last) = keys.last()
        && keys.len() <= MAX_PADDED_KEYS
    {
        padded.resize(keys.len().next_power_of_two(), last.clone());
    }
    padded
}

/// Whether a text column can store the text: PostgreSQL cannot store U+0000, and rejects queries that contain it.
pub(super) fn is_storable_text(text: &str) -> bool {
    !text.contains('\0')
}

/// The number of rows in the next statement while `remaining` rows are left: within both limits, a power of two or one
/// and a half times that.
pub(super) fn next_statement_row_count(remaining: usize, columns: usize) -> usize {
    let limit = remaining
        .clamp(1, MAX_STATEMENT_ROWS)
        .min(MAX_BOUND_VALUES / columns.max(1))
        .max(1);
    let power = 1 << limit.ilog2();
    if limit >= power + power / 2 {
        return power + power / 2;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_padded_with_one_of_them_to_a_few_sizes() {
        assert_eq!(pad_keys::<i64>(&[]), [0_i64; 0]);
        assert_eq!(pad_keys(&[7]), [7]);
        assert_eq!(pad_keys(&[1, 2, 3]), [1, 2, 3, 3]);
        for count in 1..=5_000_usize {
            let keys: Vec<usize> = (0..count).collect();
            let padded = pad_keys(&keys);
            assert_eq!(padded[..count], keys);
            assert!(padded[count..].iter().all(|key| *key == count - 1));
            let is_padded = padded.len().is_power_of_two() && padded.len() < 2 * count.max(1);
            assert!(
                is_padded || count > MAX_PADDED_KEYS && padded.len() == count,
                "{count}"
            );
        }
    }

    #[test]
    fn statements_stay_within_the_limits_and_insert_every_row() {
        for columns in [1, 7, 25, 1_000, 30_000] {
            let mut left = 1_613;
            while left > 0 {
                let inserted = next_statement_row_count(left, columns);
                assert!((1..=left).contains(&inserted));
                assert!(inserted * columns <= MAX_BOUND_VALUES && inserted <= MAX_STATEMENT_ROWS);
                left -= inserted;
            }
        }
    }

    #[test]
    fn a_few_sizes_of_statements_are_enough_for_any_number_of_rows() {
        let sizes: Vec<usize> = (1..=500)
            .filter(|left| next_statement_row_count(*left, 40) == *left)
            .collect();
        assert_eq!(sizes, [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]);
        let statements = |mut left: usize| {
            let mut count = 0;
            while left > 0 {
                left -= next_statement_row_count(left, 40);
                count += 1;
            }
            count
        };
        assert!((1..=64).all(|left| statements(left) <= 3));
    }
}
