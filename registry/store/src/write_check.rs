//! A check whether the database accepts writes.

use sea_orm::{ConnectionTrait, DbBackend, Statement};

use super::{Executor, Store, StoreError};

/// The setting that the check writes on SQLite.
const WRITE_CHECK_SETTING: &str = "write_check";

impl Store {
    /// Checks that the database accepts writes. PostgreSQL is asked. SQLite learns that its file cannot be written, or
    /// that its disk is full, only from a write, so one small row is written; `now` makes it differ from the last one,
    /// because SQLite does not write what is there already. While another write of this process is under way, nothing
    /// is written.
    ///
    /// # Errors
    /// [`ReadOnly`](super::StoreErrorKind::ReadOnly), [`StorageFull`](super::StoreErrorKind::StorageFull), or another
    /// reason why the database cannot be written.
    pub async fn check_writable(&self, now: i64) -> Result<(), StoreError> {
        if self.is_postgres() {
            return self.reject_read_only_session().await;
        }
        if self.is_write_in_progress() {
            return Ok(());
        }
        let write = self.begin_write().await?;
        write
            .set_setting(WRITE_CHECK_SETTING, &now.to_string())
            .await?;
        write.commit().await
    }

    /// Rejects a PostgreSQL server that is a standby, and one whose operator has made its transactions read-only.
    async fn reject_read_only_session(&self) -> Result<(), StoreError> {
        let statement = Statement::from_string(
            DbBackend::Postgres,
            "SELECT current_setting('transaction_read_only') AS read_only",
        );
        let row = self.connection().query_one_raw(statement).await?;
        let read_only: Option<String> = row.map(|row| row.try_get("", "read_only")).transpose()?;
        match read_only.as_deref() {
            Some("on") => Err(StoreError::read_only("its transactions are read-only")),
            _ => Ok(()),
        }
    }
}
