//! Events: the list and the stream.

pub mod filter;
pub mod list;
pub mod listener;
