//! Records the statements that a future sends to the database, so that a test can compare two runs.

use std::sync::{Arc, Mutex, PoisonError};

use sea_orm::DatabaseConnection;

tokio::task_local! {
    static SENT: Arc<Mutex<Vec<String>>>;
}

/// Runs a future, and returns the statements that its task sent meanwhile, in order and without their values.
pub async fn record_statements<T>(work: impl Future<Output = T>) -> (T, Vec<String>) {
    let sent: Arc<Mutex<Vec<String>>> = Arc::default();
    let done = SENT.scope(Arc::clone(&sent), work).await;
    let sent: Vec<String> = sent.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (done, sent)
}

/// Makes a connection record its statements for [`record_statements`].
pub(super) fn enable_statement_recording(connection: &mut DatabaseConnection) {
    connection.set_metric_callback(|info| {
        let record = |sent: &Arc<Mutex<Vec<String>>>| {
            let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
            sent.push(info.statement.sql.clone());
        };
        // Fails outside of `record_statements`, where nothing is recorded.
        let _ = SENT.try_with(record);
    });
}
