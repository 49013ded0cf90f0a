//! Values that must survive a restart.

use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::bulk_rows::lock_for_update;
use super::entity::setting;
use super::{Executor, Store, StoreError, WriteTransaction};

pub async fn setting_value(db: &impl Executor, key: &str) -> Result<Option<String>, StoreError> {
    let row = setting::Entity::find_by_id(key)
        .one(db.connection())
        .await?;
    Ok(row.map(|row| row.value))
}

/// Reads a value that no other write can change until this one ends.
pub async fn lock_setting(
    write: &WriteTransaction,
    key: &str,
) -> Result<Option<String>, StoreError> {
    let row = lock_for_update(write, setting::Entity::find_by_id(key))
        .one(write.connection())
        .await?;
    Ok(row.map(|row| row.value))
}

impl WriteTransaction {
    pub async fn set_setting(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let row = setting::ActiveModel {
            key: Set(key.into()),
            value: Set(value.into()),
        };
        let conflict = OnConflict::column(setting::Column::Key)
            .update_column(setting::Column::Value)
            .to_owned();
        self.insert_rows([row], Some(conflict)).await
    }

    pub async fn delete_setting(&self, key: &str) -> Result<(), StoreError> {
        let rows = setting::Entity::delete_many().filter(setting::Column::Key.eq(key));
        self.delete_rows(rows).await
    }
}

impl Store {
    /// Reads a value, or stores `new_value` if there is none. Processes that start together get the same value.
    pub async fn get_or_insert_setting(
        &self,
        key: &str,
        new_value: &str,
    ) -> Result<String, StoreError> {
        if let Some(value) = setting_value(self, key).await? {
            return Ok(value);
        }
        self.get_or_replace_setting(key, new_value, |_| true).await
    }

    /// Reads a value if `is_valid` accepts it, and otherwise replaces it with `new_value`. Of processes that start
    /// together one writes it, and all get the same value.
    pub async fn get_or_replace_setting(
        &self,
        key: &str,
        new_value: &str,
        is_valid: impl Fn(&str) -> bool,
    ) -> Result<String, StoreError> {
        let write = self.begin_write().await?;
        let row = setting::ActiveModel {
            key: Set(key.into()),
            value: Set(new_value.into()),
        };
        let conflict = OnConflict::column(setting::Column::Key)
            .do_nothing()
            .to_owned();
        // Waits for another process that is inserting it.
        write.insert_rows([row], Some(conflict)).await?;
        let kept = lock_setting(&write, key).await?;
        if let Some(kept) = kept.filter(|kept| is_valid(kept)) {
            write.commit().await?;
            return Ok(kept);
        }
        write.set_setting(key, new_value).await?;
        write.commit().await?;
        Ok(new_value.to_owned())
    }
}
