//! The shapes of the HTTP contract (docs/contract.md): what handlers render, the index keeps ready and the
//! command line reads. Members may be added, never renamed.

mod agent;
mod domain;
mod governance;
pub mod limits;
mod list;

pub use agent::*;
pub use domain::*;
pub use governance::*;
pub use list::*;
