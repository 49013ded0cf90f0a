//! Backup and restore: a folder with a copy of the database, the installed models and a manifest.
//!
//! The manifest is written last, so a backup that was interrupted has none. A restore changes nothing before it has
//! checked every file against the manifest, and no registry starts on a database that was restored in part.

mod backup_folder;
mod creation;
mod lost_acts;
mod manifest;
mod postgres_tools;
mod restoration;

pub use creation::{BackupRequest, create_backup};
pub use lost_acts::{LostAct, LostActs, find_lost_acts};
pub use manifest::{BackupManifest, DatabaseEngine};
pub use restoration::{PreparedRestore, RestoreResult};

/// Receives the progress of a backup or restore: the current step, and the number of bytes it has written or read.
pub type ProgressCallback<'a> = &'a (dyn Fn(&str, u64) + Sync);
