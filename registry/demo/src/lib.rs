//! Three sample A2A agents, for trying a registry without an agent of one's own.
//!
//! One program serves all of them, each on its own loopback port, and speaks another generation of the protocol for each.
//! Their cards and answers are data, in the folder `agents`: an agent answers a text that contains the words of a prepared
//! answer, and names such texts to everybody else.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod agents;
mod card;
mod cors;
mod generation;
mod http;
mod jsonrpc;
mod operations;
mod rpc_error;
mod samples;
mod tasks;
mod user_message;

pub use agents::{SampleAgent, SampleAgents, start_sample_agents};
