//! Notifications of other processes' events, by PostgreSQL's NOTIFY. SQLite has one process and needs none.

use sea_orm::sqlx::postgres::PgListener;
use sea_orm::{ConnectionTrait as _, DbBackend, Statement};

use super::events::CHANNEL;
use super::{Handle as _, Store, StoreError};

#[derive(Debug)]
pub struct Listener(PgListener);

impl Store {
    /// `None` on SQLite, which needs no listener.
    pub async fn listen(&self) -> Result<Option<Listener>, StoreError> {
        if !self.is_postgres() {
            return Ok(None);
        }
        let pool = self.postgres_pool();
        let mut listener = PgListener::connect_with(pool).await?;
        listener.listen(CHANNEL).await?;
        Ok(Some(Listener(listener)))
    }

    /// How many processes listen to this database, this one included; 0 on SQLite.
    pub async fn listeners(&self) -> Result<u64, StoreError> {
        if !self.is_postgres() {
            return Ok(0);
        }
        // A listening connection runs nothing else, so LISTEN is its last statement.
        let statement = Statement::from_sql_and_values(
            DbBackend::Postgres,
            "SELECT count(*) AS listeners FROM pg_stat_activity \
             WHERE datname = current_database() AND query ILIKE 'LISTEN %' || $1 || '%'",
            [CHANNEL.into()],
        );
        let row = self.connection().query_one_raw(statement).await?;
        let listeners: i64 = match row {
            Some(row) => row.try_get("", "listeners")?,
            None => 0,
        };
        Ok(listeners.unsigned_abs())
    }
}

impl Listener {
    /// Waits for the next append. Fails if the connection is lost; the caller then listens again.
    pub async fn notified(&mut self) -> Result<(), StoreError> {
        let heard = self.0.recv().await;
        heard.map(|_| ()).map_err(StoreError::from)
    }
}
