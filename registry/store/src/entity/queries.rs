//! Statements that tables have in common.

use sea_orm::{
    ColumnTrait, DeleteMany, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, Select,
    UpdateMany, Value,
};

use crate::bulk_rows::pad_keys;
use crate::{Executor, StoreError, WriteTransaction};

/// The rows of a query that have one of these values in a column. Without values the database is not queried.
pub(crate) async fn rows_where_in<E: EntityTrait, V: Clone + Into<Value>>(
    db: &impl Executor,
    query: Select<E>,
    column: E::Column,
    values: &[V],
) -> Result<Vec<E::Model>, StoreError> {
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let query = query.filter(column.is_in(pad_keys(values)));
    Ok(query.all(db.connection()).await?)
}

/// A page of the rows of a query, the highest keys first: those below `before`, if it is given.
pub(crate) fn page_before<E: EntityTrait>(
    query: Select<E>,
    key: E::Column,
    before: Option<impl Into<Value>>,
    limit: u64,
) -> Select<E> {
    let page = query.order_by_desc(key).limit(limit);
    page.apply_if(before, |page, before| page.filter(key.lt(before)))
}

/// A page of the rows of a query, the lowest keys first: those above `after`, if it is given.
pub(crate) fn page_after<E: EntityTrait>(
    query: Select<E>,
    key: E::Column,
    after: Option<impl Into<Value>>,
    limit: u64,
) -> Select<E> {
    let page = query.order_by_asc(key).limit(limit);
    page.apply_if(after, |page, after| page.filter(key.gt(after)))
}

impl WriteTransaction {
    pub(crate) async fn update_rows<E: EntityTrait>(
        &self,
        update: UpdateMany<E>,
    ) -> Result<(), StoreError> {
        update.exec(self.connection()).await?;
        Ok(())
    }

    pub(crate) async fn delete_rows<E: EntityTrait>(
        &self,
        delete: DeleteMany<E>,
    ) -> Result<(), StoreError> {
        delete.exec(self.connection()).await?;
        Ok(())
    }
}
