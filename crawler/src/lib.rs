//! Guarded, polite fetching of agent cards.
//!
//! [`guard`] judges targets, [`dns`] resolves them, [`fetch`] asks them, [`catalog`] reads
//! which agents a domain names, [`challenge`] looks for proofs that a
//! domain is somebody's, [`schedule`] says when to ask again, [`planned`] and [`pace`] keep the stream of visits
//! even, [`liveness`] says what came of it, [`brake`] when that is not to be believed, and [`worker`] is the loop
//! around it all. Who owns the sources implements [`Frontier`] and [`Sink`].

pub mod catalog;
pub mod challenge;
pub mod circuit_breaker;
mod clock;
pub mod dns;
pub mod fetch;
pub mod guard;
pub mod liveness;
pub mod network;
pub mod pace;
pub mod planned;
pub mod schedule;
mod visit;
pub mod worker;

pub use clock::{Clock, SystemClock};
pub use visit::*;
