//! Entries of catalogs that are no agents, as callers see them.

mod list;
pub mod routes;

pub use list::{EntryQuery, entry_list};
