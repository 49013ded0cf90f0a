//! Three sample A2A agents, for trying a registry without an agent of one's own.
//!
//! One program serves all of them, each on its own loopback port, and speaks another generation of the protocol for each.
//! Their cards and answers are data, in the folder `agents`: an agent answers a text that contains the words of a prepared
//! answer, and names such texts to everybody else.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod agents;
mod card;
mod cors;
mod fault;
mod generation;
mod http;
mod incoming;
mod jsonrpc;
mod operations;
mod samples;
mod tasks;

pub use agents::{SampleAgent, SampleAgents, start_agents};
