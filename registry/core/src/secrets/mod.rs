//! Secrets of others that the registry keeps: sealed with a key in a file, so that the database alone opens none.

pub mod key_file;
pub mod source_credentials;
