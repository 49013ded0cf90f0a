//! Events: the list and the stream.

pub mod list;
pub mod listener;
pub mod search;
