//! The one way an act is written and shown: the ledger that gathers what changes, and what follows once it is written.

pub mod changes;
pub mod ledger;
pub mod touched;
