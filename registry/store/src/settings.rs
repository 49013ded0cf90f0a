//! Values that must survive a restart.

use sea_orm::ActiveValue::Set;
use sea_orm::EntityTrait;
use sea_orm::sea_query::OnConflict;

use super::entity::setting;
use super::rows::locked;
use super::{Handle, Store, StoreError, Write};

pub async fn setting_get(on: &impl Handle, key: &str) -> Result<Option<String>, StoreError> {
    let row = setting::Entity::find_by_id(key)
        .one(on.connection())
        .await?;
    Ok(row.map(|row| row.value))
}

/// Reads a value that no other write can change until this one ends.
pub async fn setting_locked(write: &Write, key: &str) -> Result<Option<String>, StoreError> {
    let row = locked(write, setting::Entity::find_by_id(key))
        .one(write.connection())
        .await?;
    Ok(row.map(|row| row.value))
}

impl Write {
    pub async fn setting_put(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let row = setting::ActiveModel {
            key: Set(key.into()),
            value: Set(value.into()),
        };
        let conflict = OnConflict::column(setting::Column::Key)
            .update_column(setting::Column::Value)
            .to_owned();
        self.insert_rows([row], Some(conflict)).await
    }
}

impl Store {
    /// Reads a value, or stores `fresh` if there is none. Processes that start together get the same answer.
    pub async fn setting_get_or_put(&self, key: &str, fresh: &str) -> Result<String, StoreError> {
        if let Some(value) = setting_get(self, key).await? {
            return Ok(value);
        }
        self.setting_settle(key, fresh, |_| true).await
    }

    /// Reads a value if `is_right`, or else replaces it by `fresh`. Of processes that start together one writes it, and
    /// all get the same answer.
    pub async fn setting_settle(
        &self,
        key: &str,
        fresh: &str,
        is_right: impl Fn(&str) -> bool,
    ) -> Result<String, StoreError> {
        let write = self.write().await?;
        let row = setting::ActiveModel {
            key: Set(key.into()),
            value: Set(fresh.into()),
        };
        let conflict = OnConflict::column(setting::Column::Key)
            .do_nothing()
            .to_owned();
        // Waits for another process that is inserting it.
        write.insert_rows([row], Some(conflict)).await?;
        let kept = setting_locked(&write, key).await?;
        if let Some(kept) = kept.filter(|kept| is_right(kept)) {
            write.commit().await?;
            return Ok(kept);
        }
        write.setting_put(key, fresh).await?;
        write.commit().await?;
        Ok(fresh.to_owned())
    }
}
