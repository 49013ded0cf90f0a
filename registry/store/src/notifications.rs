//! Notifications of other processes' events, by PostgreSQL's NOTIFY. SQLite has one process and needs none.

use sea_orm::sqlx::postgres::PgListener;
use sea_orm::{ConnectionTrait as _, DbBackend, Statement};

use super::events::NOTIFY_CHANNEL;
use super::{Executor as _, Store, StoreError};

#[derive(Debug)]
pub struct NotificationListener(PgListener);

impl Store {
    /// `None` on SQLite, which needs no listener.
    pub async fn listen_for_events(&self) -> Result<Option<NotificationListener>, StoreError> {
        if !self.is_postgres() {
            return Ok(None);
        }
        let pool = self.postgres_pool();
        let mut listener = PgListener::connect_with(pool).await?;
        listener.listen(NOTIFY_CHANNEL).await?;
        Ok(Some(NotificationListener(listener)))
    }

    /// The number of processes that listen to this database, this one included; 0 on SQLite.
    pub async fn listener_count(&self) -> Result<u64, StoreError> {
        if !self.is_postgres() {
            return Ok(0);
        }
        // A listening connection runs nothing else, so LISTEN is its last statement.
        let statement = Statement::from_sql_and_values(
            DbBackend::Postgres,
            "SELECT count(*) AS listeners FROM pg_stat_activity \
             WHERE datname = current_database() AND query ILIKE 'LISTEN %' || $1 || '%'",
            [NOTIFY_CHANNEL.into()],
        );
        let row = self.connection().query_one_raw(statement).await?;
        let listeners: i64 = match row {
            Some(row) => row.try_get("", "listeners")?,
            None => 0,
        };
        Ok(listeners.unsigned_abs())
    }
}

impl NotificationListener {
    /// Waits for the next append. Fails if the connection is lost; the caller then listens again.
    pub async fn wait_for_notification(&mut self) -> Result<(), StoreError> {
        let heard = self.0.recv().await;
        heard.map(|_| ()).map_err(StoreError::from)
    }
}
