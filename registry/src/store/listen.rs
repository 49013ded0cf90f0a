//! Word of other processes' events: PostgreSQL's NOTIFY. SQLite has one process, so nothing to listen for.

use sea_orm::sqlx::postgres::PgListener;

use super::events::CHANNEL;
use super::{Store, StoreError};

/// A connection of its own that hears of every append.
#[derive(Debug)]
pub struct Listener(PgListener);

impl Store {
    /// Listens for appends; `None` on SQLite.
    ///
    /// # Errors
    /// Where the database is away.
    pub async fn listen(&self) -> Result<Option<Listener>, StoreError> {
        if !self.is_postgres() {
            return Ok(None);
        }
        let failed = |error: sea_orm::sqlx::Error| StoreError(error.to_string());
        let pool = self.postgres_pool();
        let mut listener = PgListener::connect_with(pool).await.map_err(failed)?;
        listener.listen(CHANNEL).await.map_err(failed)?;
        Ok(Some(Listener(listener)))
    }
}

impl Listener {
    /// Completes with the next append.
    ///
    /// # Errors
    /// Where the connection is lost; listen again then.
    pub async fn heard(&mut self) -> Result<(), StoreError> {
        let heard = self.0.recv().await;
        heard
            .map(|_| ())
            .map_err(|error| StoreError(error.to_string()))
    }
}
