//! Queries that tables have in common.

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, Select, Value};

use crate::rows::padded;
use crate::{Handle, StoreError};

/// The rows of a query whose column has one of these values. Without a value there is none, and the database is not asked.
pub(crate) async fn rows_with<E: EntityTrait, V: Clone + Into<Value>>(
    on: &impl Handle,
    query: Select<E>,
    column: E::Column,
    values: &[V],
) -> Result<Vec<E::Model>, StoreError> {
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let query = query.filter(column.is_in(padded(values)));
    Ok(query.all(on.connection()).await?)
}
