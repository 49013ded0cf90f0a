//! Errors of the database, classified by their codes and never by their texts.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use sea_orm::{DbErr, RuntimeErr, sqlx};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The database does not respond in time, or has no free connection. A retry may succeed.
    Unavailable,
    ReadOnly,
    StorageFull,
    /// Another write came first, or a unique value exists already.
    Conflict,
    CorruptRow(CorruptRow),
    /// The stored bytes of the card with this digest do not match it.
    DigestMismatch(String),
    /// A bug in this program, or a broken database.
    Other,
}

/// The location of a value that this program does not know, and the value, for the log.
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
        Self::from_text(StoreErrorKind::Other, text.into())
    }

    pub(super) fn unavailable(text: impl Into<String>) -> Self {
        Self::from_text(StoreErrorKind::Unavailable, text.into())
    }

    pub(super) fn read_only(text: impl Into<String>) -> Self {
        Self::from_text(StoreErrorKind::ReadOnly, text.into())
    }

    pub(super) fn corrupt_row(row: CorruptRow) -> Self {
        let text = row.to_string();
        Self::from_text(StoreErrorKind::CorruptRow(row), text)
    }

    pub(super) fn digest_mismatch(digest: &str) -> Self {
        Self::from_text(
            StoreErrorKind::DigestMismatch(digest.to_owned()),
            format!("the stored bytes of the card {digest} do not match their digest"),
        )
    }

    fn from_text(kind: StoreErrorKind, text: String) -> Self {
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
            DbErr::ConnectionAcquire(_) => StoreErrorKind::Unavailable,
            DbErr::Conn(RuntimeErr::SqlxError(cause))
            | DbErr::Exec(RuntimeErr::SqlxError(cause))
            | DbErr::Query(RuntimeErr::SqlxError(cause)) => sqlx_error_kind(cause),
            DbErr::Conn(_) => StoreErrorKind::Unavailable,
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
            kind: sqlx_error_kind(&error),
            cause: Arc::new(error),
        }
    }
}

fn sqlx_error_kind(error: &sqlx::Error) -> StoreErrorKind {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => StoreErrorKind::Unavailable,
        sqlx::Error::Database(said) => {
            let code = said.code();
            let kind = code.as_deref().and_then(error_code_kind);
            kind.unwrap_or(StoreErrorKind::Other)
        }
        _ => StoreErrorKind::Other,
    }
}

/// The kind of an error code: five characters of PostgreSQL (SQLSTATE, appendix A of its manual), or an extended
/// result code of SQLite as a number.
fn error_code_kind(code: &str) -> Option<StoreErrorKind> {
    if code.len() == 5 {
        return sqlstate_kind(code);
    }
    sqlite_code_kind(code.parse().ok()?)
}

fn sqlstate_kind(code: &str) -> Option<StoreErrorKind> {
    match code {
        "25006" => Some(StoreErrorKind::ReadOnly),
        "53100" => Some(StoreErrorKind::StorageFull),
        // A deadlock, or a serialization failure.
        "40001" | "40P01" => Some(StoreErrorKind::Conflict),
        // A unique violation. Every other violated constraint is a bug of this program.
        "23505" => Some(StoreErrorKind::Conflict),
        // A timeout of a lock, a statement, or an idle transaction.
        "55P03" | "57014" | "25P03" => Some(StoreErrorKind::Unavailable),
        // The server shuts down, has crashed, or has not started.
        "57P01" | "57P02" | "57P03" => Some(StoreErrorKind::Unavailable),
        _ if code.starts_with("08") || code.starts_with("53") => Some(StoreErrorKind::Unavailable),
        _ => None,
    }
}

fn sqlite_code_kind(code: u32) -> Option<StoreErrorKind> {
    /// `SQLITE_IOERR_WRITE` and `SQLITE_IOERR_SHMSIZE`: the file cannot grow, as under a quota.
    const CANNOT_GROW_CODES: [u32; 2] = [778, 4_874];
    /// `SQLITE_CONSTRAINT_PRIMARYKEY`, `_UNIQUE` and `_ROWID`. Any other violated constraint is a bug in this program.
    const DUPLICATE_KEY_CODES: [u32; 3] = [1_555, 2_067, 2_579];
    if CANNOT_GROW_CODES.contains(&code) {
        return Some(StoreErrorKind::StorageFull);
    }
    if DUPLICATE_KEY_CODES.contains(&code) {
        return Some(StoreErrorKind::Conflict);
    }
    // The low byte is the primary result code.
    match code & 0xff {
        // SQLITE_BUSY and SQLITE_LOCKED, after waiting; SQLITE_IOERR and SQLITE_CANTOPEN.
        5 | 6 | 10 | 14 => Some(StoreErrorKind::Unavailable),
        8 => Some(StoreErrorKind::ReadOnly),
        13 => Some(StoreErrorKind::StorageFull),
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
            ("53100", Some(StoreErrorKind::StorageFull)),
            ("53300", Some(StoreErrorKind::Unavailable)),
            ("08006", Some(StoreErrorKind::Unavailable)),
            ("57P03", Some(StoreErrorKind::Unavailable)),
            ("40P01", Some(StoreErrorKind::Conflict)),
            ("23505", Some(StoreErrorKind::Conflict)),
            ("23503", None),
            ("42P01", None),
            ("8", Some(StoreErrorKind::ReadOnly)),
            // SQLITE_READONLY_DBMOVED.
            ("1032", Some(StoreErrorKind::ReadOnly)),
            ("13", Some(StoreErrorKind::StorageFull)),
            ("778", Some(StoreErrorKind::StorageFull)),
            ("4874", Some(StoreErrorKind::StorageFull)),
            // SQLITE_IOERR_READ and SQLITE_BUSY_SNAPSHOT.
            ("266", Some(StoreErrorKind::Unavailable)),
            ("517", Some(StoreErrorKind::Unavailable)),
            // SQLITE_CONSTRAINT_UNIQUE.
            ("2067", Some(StoreErrorKind::Conflict)),
            // SQLITE_CONSTRAINT_NOTNULL.
            ("1299", None),
            // SQLITE_CORRUPT and SQLITE_ERROR.
            ("11", None),
            ("1", None),
            ("", None),
        ] {
            assert_eq!(error_code_kind(code), kind, "{code}");
        }
    }

    #[test]
    fn the_cause_is_kept_and_shown() {
        let error = StoreError::from(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(
            sqlx::Error::PoolTimedOut,
        ))));
        assert_eq!(error.kind(), &StoreErrorKind::Unavailable);
        assert!(error.source().is_some_and(|cause| cause.is::<DbErr>()));
        let row = CorruptRow {
            table: "agents",
            column: "lifecycle",
            id: "7".into(),
            value: "asleep".into(),
        };
        let error = StoreError::corrupt_row(row);
        assert_eq!(error.to_string(), "agents.lifecycle of 7 holds \"asleep\"");
    }
}
