//! Three sample A2A agents, so that a registry can be tried without any agent of one's own.
//!
//! Each speaks another generation of the protocol, listens on a loopback port of its own, and does
//! something real with the text it is sent: amounts are converted, recipes scaled, trips planned. What
//! they would need the world for (exchange rates, timetables) comes from fixed tables and is called
//! sample data in every answer.

mod agents;
mod card;
mod fault;
mod incoming;
mod jsonrpc;
mod ledger;
mod recipe;
mod tasks;
mod trip;
mod v0;

pub use agents::{SampleAgent, SampleAgents, start_agents};
