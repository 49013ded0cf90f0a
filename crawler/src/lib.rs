//! Guarded, polite fetching of agent cards.
//!
//! [`guard`] decides which targets may be fetched, [`dns`] resolves names, [`fetch`] makes the requests, [`catalog`]
//! reads lists of agents, [`challenge`] checks proofs of control over a domain. [`schedule`] computes when a source is
//! due, [`visit_calendar`] and [`crawl_rate`] spread visits evenly, [`liveness`] derives whether a card is reachable,
//! [`circuit_breaker`] suspends that during an outage of our own, [`descriptors`] says how many file descriptors a
//! visit uses, [`endpoint_check`] asks agents whether they answer, [`foreign_text`] makes text of others safe to
//! display, [`trace_spans`] names the spans for traces, and [`worker`] runs the visits. The program that stores the
//! sources implements [`CrawlFrontier`] and [`OutcomeSink`].
//!
//! `robots.txt` is not read: every URL was registered, is a well-known path or is an entry of a catalog. The owner of
//! a domain opts out with a DNS record (`policy=none`, see [`challenge::dns_persistent`]).
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
pub mod endpoint_check;
pub mod fetch;
pub mod foreign_text;
pub mod guard;
pub mod liveness;
pub mod schedule;
pub mod trace_spans;
mod visit;
pub mod visit_calendar;
pub mod worker;

pub use clock::{Clock, SystemClock};
pub use visit::*;
