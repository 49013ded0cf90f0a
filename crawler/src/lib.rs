//! Guarded, polite fetching of agent cards.
//!
//! [`guard`] decides which targets may be fetched, [`dns`] resolves names, [`fetch`] makes the requests, [`catalog`]
//! reads lists of agents, [`challenge`] checks proofs of control over a domain. [`schedule`] computes when a source is
//! due, [`planned`] and [`pace`] spread visits evenly, [`liveness`] derives whether a card is reachable,
//! [`circuit_breaker`] suspends that during an outage of our own, [`descriptors`] says how many files a visit opens,
//! and [`worker`] is the loop around it all. The program that stores the sources implements [`Frontier`] and [`Sink`].
//!
//! `robots.txt` is not read: every URL was registered, or is a well-known path or a catalog's entry. The owner of a
//! domain opts out with a DNS record (`policy=none`, see [`challenge::dns_standing`]).
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod address_block;
pub mod catalog;
pub mod challenge;
pub mod circuit_breaker;
mod clock;
pub mod crawl_rate;
pub mod descriptors;
pub mod dns;
pub mod fetch;
pub mod guard;
pub mod liveness;
pub mod schedule;
mod visit;
pub mod visit_calendar;
pub mod worker;

pub use clock::{Clock, SystemClock};
pub use visit::*;
