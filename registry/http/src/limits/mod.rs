//! Limits per client: anonymous writes, sign-ins, connections, streams and unread bytes.

pub mod anonymous_write_limit;
pub mod client_address;
pub mod connection;
pub mod connections;
pub mod sign_in_limit;
pub mod stream_limit;
pub mod unread_bytes;
