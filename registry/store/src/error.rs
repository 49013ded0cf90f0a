//! Errors of the database, classified by their codes and never by their texts.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use sea_orm::{DbErr, RuntimeErr, sqlx};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The database does not respond in time, or has no free connection. A retry makes sense.
    Away,
    ReadOnly,
    Full,
    /// Another write came first, or a unique value exists already.
    Conflict,
    CorruptRow(CorruptRow),
    /// The stored bytes of the card with this digest have another digest.
    DigestMismatch(String),
    /// A bug in this program, or a broken database.
    Other,
}

/// The place of a value that this program does not know, and the value, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorruptRow {
    pub table: &'static str,
    pub column: &'static str,
    pub id: String,
    pub value: String,
}

impl fmt::Display for CorruptRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            table,
            column,
            id,
            value,
        } = self;
        write!(f, "{table}.{column} of {id} holds {value:?}")
    }
}

/// A database failure. Its text is for the log, never for a caller.
#[derive(Debug, Clone)]
pub struct StoreError {
    kind: StoreErrorKind,
    cause: Arc<dyn Error + Send + Sync>,
}

impl StoreError {
    pub fn other(text: impl Into<String>) -> Self {
        Self::with(StoreErrorKind::Other, text.into())
    }

    pub(super) fn away(text: impl Into<String>) -> Self {
        Self::with(StoreErrorKind::Away, text.into())
    }

    pub(super) fn corrupt(row: CorruptRow) -> Self {
        let text = row.to_string();
        Self::with(StoreErrorKind::CorruptRow(row), text)
    }

    pub(super) fn digest_mismatch(digest: &str) -> Self {
        Self::with(
            StoreErrorKind::DigestMismatch(digest.to_owned()),
            format!("the stored bytes of the card {digest} have another digest"),
        )
    }

    fn with(kind: StoreErrorKind, text: String) -> Self {
        Self {
            kind,
            cause: Arc::from(Box::<dyn Error + Send + Sync>::from(text)),
        }
    }

    pub fn kind(&self) -> &StoreErrorKind {
        &self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

impl From<DbErr> for StoreError {
    fn from(error: DbErr) -> Self {
        let kind = match &error {
            DbErr::ConnectionAcquire(_) => StoreErrorKind::Away,
            DbErr::Conn(RuntimeErr::SqlxError(cause))
            | DbErr::Exec(RuntimeErr::SqlxError(cause))
            | DbErr::Query(RuntimeErr::SqlxError(cause)) => kind_of(cause),
            DbErr::Conn(_) => StoreErrorKind::Away,
            _ => StoreErrorKind::Other,
        };
        Self {
            kind,
            cause: Arc::new(error),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self {
            kind: kind_of(&error),
            cause: Arc::new(error),
        }
    }
}

fn kind_of(error: &sqlx::Error) -> StoreErrorKind {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => StoreErrorKind::Away,
        sqlx::Error::Database(said) => {
            let code = said.code();
            let kind = code.as_deref().and_then(kind_of_code);
            kind.unwrap_or(StoreErrorKind::Other)
        }
        _ => StoreErrorKind::Other,
    }
}

/// The kind of an error code: five characters of PostgreSQL (SQLSTATE, appendix A of its manual), or an extended result
/// code of SQLite as a number.
fn kind_of_code(code: &str) -> Option<StoreErrorKind> {
    if code.len() == 5 {
        return of_sqlstate(code);
    }
    of_sqlite(code.parse().ok()?)
}

fn of_sqlstate(code: &str) -> Option<StoreErrorKind> {
    match code {
        "25006" => Some(StoreErrorKind::ReadOnly),
        "53100" => Some(StoreErrorKind::Full),
        // A deadlock, or a serialization failure.
        "40001" | "40P01" => Some(StoreErrorKind::Conflict),
        // A unique violation. Every other violated constraint is a bug of this program.
        "23505" => Some(StoreErrorKind::Conflict),
        // A timeout of a lock, a statement, or an idle transaction.
        "55P03" | "57014" | "25P03" => Some(StoreErrorKind::Away),
        // The server shuts down, has crashed, or has not started.
        "57P01" | "57P02" | "57P03" => Some(StoreErrorKind::Away),
        _ if code.starts_with("08") || code.starts_with("53") => Some(StoreErrorKind::Away),
        _ => None,
    }
}

fn of_sqlite(code: u32) -> Option<StoreErrorKind> {
    /// `SQLITE_IOERR_WRITE` and `SQLITE_IOERR_SHMSIZE`: the file cannot grow, as under a quota.
    const MAY_NOT_GROW: [u32; 2] = [778, 4_874];
    /// `SQLITE_CONSTRAINT_PRIMARYKEY`, `_UNIQUE` and `_ROWID`. Any other violated constraint is a bug in this program.
    const THERE_ALREADY: [u32; 3] = [1_555, 2_067, 2_579];
    if MAY_NOT_GROW.contains(&code) {
        return Some(StoreErrorKind::Full);
    }
    if THERE_ALREADY.contains(&code) {
        return Some(StoreErrorKind::Conflict);
    }
    // The low byte is the primary result code.
    match code & 0xff {
        // SQLITE_BUSY and SQLITE_LOCKED, after waiting; SQLITE_IOERR and SQLITE_CANTOPEN.
        5 | 6 | 10 | 14 => Some(StoreErrorKind::Away),
        8 => Some(StoreErrorKind::ReadOnly),
        13 => Some(StoreErrorKind::Full),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_both_databases_are_classified() {
        for (code, kind) in [
            ("25006", Some(StoreErrorKind::ReadOnly)),
            ("53100", Some(StoreErrorKind::Full)),
            ("53300", Some(StoreErrorKind::Away)),
            ("08006", Some(StoreErrorKind::Away)),
            ("57P03", Some(StoreErrorKind::Away)),
            ("40P01", Some(StoreErrorKind::Conflict)),
            ("23505", Some(StoreErrorKind::Conflict)),
            ("23503", None),
            ("42P01", None),
            ("8", Some(StoreErrorKind::ReadOnly)),
            // SQLITE_READONLY_DBMOVED.
            ("1032", Some(StoreErrorKind::ReadOnly)),
            ("13", Some(StoreErrorKind::Full)),
            ("778", Some(StoreErrorKind::Full)),
            ("4874", Some(StoreErrorKind::Full)),
            // SQLITE_IOERR_READ and SQLITE_BUSY_SNAPSHOT.
            ("266", Some(StoreErrorKind::Away)),
            ("517", Some(StoreErrorKind::Away)),
            // SQLITE_CONSTRAINT_UNIQUE.
            ("2067", Some(StoreErrorKind::Conflict)),
            // SQLITE_CONSTRAINT_NOTNULL.
            ("1299", None),
            // SQLITE_CORRUPT and SQLITE_ERROR.
            ("11", None),
            ("1", None),
            ("", None),
        ] {
            assert_eq!(kind_of_code(code), kind, "{code}");
        }
    }

    #[test]
    fn the_cause_is_kept_and_shown() {
        let error = StoreError::from(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(
            sqlx::Error::PoolTimedOut,
        ))));
        assert_eq!(error.kind(), &StoreErrorKind::Away);
        assert!(error.source().is_some_and(|cause| cause.is::<DbErr>()));
        let row = CorruptRow {
            table: "agents",
            column: "lifecycle",
            id: "7".into(),
            value: "asleep".into(),
        };
        let error = StoreError::corrupt(row);
        assert_eq!(error.to_string(), "agents.lifecycle of 7 holds \"asleep\"");
    }
}
