//! Three sample A2A agents, for trying a registry without an agent of one's own.
//!
//! Each implements another generation of the protocol, listens on its own loopback port, and does something real with
//! the text it receives: it converts amounts, scales recipes or plans trips. Data that would come from outside
//! (exchange rates, timetables) is in fixed tables and called sample data in every answer.

mod agents;
mod card;
mod cors;
mod fault;
mod incoming;
mod jsonrpc;
mod ledger_converter;
mod recipe;
mod tasks;
mod trip;
mod v0;

pub use agents::{SampleAgent, SampleAgents, start_agents};
