//! Sample A2A agents, for trying a registry without an agent of one's own.
//!
//! One process serves all of them, with three generations of the protocol. Their cards and replies are data in the
//! folder `agents`: a text that contains the words of a prepared reply gets that reply; any other text gets a message
//! that suggests such texts.
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod agent_handler;
mod agents;
mod card;
mod cors;
mod generation;
mod http;
mod jsonrpc;
mod named_hosts;
mod operation;
mod rpc_error;
mod samples;
mod tasks;
mod user_message;

pub use agents::{SampleAgent, SampleAgents, start_all_sample_agents, start_sample_agents};
pub use named_hosts::NamedHosts;
