//! The A2A client against the sample agents and against agents that misbehave, over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod credentials;
mod grpc;
mod grpc_server;
mod oauth;
mod prompt_kit;
mod raw;
mod refusals;
mod samples;
mod scripted;
mod skill;
mod stream_faults;
mod streams;
mod subscriptions;
mod tasks;
mod tokens;
mod v0_1;
mod wire;

use a2a_card::{AgentCard, Interface};

/// A card with one interface.
fn card(url: &str, binding: &str, version: Option<&str>) -> AgentCard {
    AgentCard {
        name: "Agent".to_owned(),
        interfaces: vec![interface(url, binding, version)],
        ..AgentCard::default()
    }
}

fn interface(url: &str, binding: &str, version: Option<&str>) -> Interface {
    Interface {
        url: url.to_owned(),
        binding: binding.to_owned(),
        protocol_version: version.map(str::to_owned),
        tenant: None,
    }
}
