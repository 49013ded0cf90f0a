//! The one way an act is written and shown: what it changes is held and read, gathered in a ledger and written with its
//! events in one transaction; then this process forgets what is wrong now and its index follows.

pub mod ledger;
pub mod locks;
pub mod pins;
pub mod publish;
pub mod state;
pub mod touched;
