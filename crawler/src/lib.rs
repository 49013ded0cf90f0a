//! Guarded, polite fetching of agent cards.
//!
//! [`guard`] decides which targets may be fetched, [`dns`] resolves names, [`fetch`] makes the requests, [`catalog`]
//! reads lists of agents, [`challenge`] checks proofs of control over a domain. [`schedule`] computes when a source
//! is due, [`planned`] and [`pace`] spread visits evenly, [`liveness`] derives whether a card is reachable,
//! [`circuit_breaker`] suspends that during an outage of our own, and [`worker`] is the loop around it all. The
//! program that stores the sources implements [`Frontier`] and [`Sink`].

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
