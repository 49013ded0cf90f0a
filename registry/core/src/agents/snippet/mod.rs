//! Ready-made snippets that call an agent directly, in the protocol version of its card.
//!
//! `plan` chooses interface, message and credentials; one file for each language renders them.
//! Card text reaches a snippet only through `pages::quote`.

pub mod command;
pub mod curl;
pub mod javascript;
pub mod plan;
pub mod python;
#[cfg(test)]
mod tests;

use a2a_card::AgentCard;
use a2a_client::choice::{Credential, Dialect, Route};

pub use plan::NoPlan;
pub use plan::fits;
use plan::{Generation, Plan};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// A short name for use in markup: `curl`, `python`, `javascript`, `send`.
    pub id: &'static str,
    pub title: &'static str,
    /// What to install first; empty if nothing.
    pub install: String,
    pub code: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippets {
    pub dialect: &'static str,
    pub url: String,
    pub snippets: Vec<Snippet>,
    /// Environment variables to set first, with their meaning.
    pub variables: Vec<(&'static str, &'static str)>,
    /// What the snippets cannot do.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
pub struct AgentLocation<'a> {
    pub agent: &'a str,
    /// The base URL for an SDK's card resolver.
    pub resolver: &'a str,
    pub registry: &'a str,
}

pub fn snippets(card: &AgentCard, place: AgentLocation<'_>) -> Result<Snippets, NoPlan> {
    let plan = plan::plan(card)?;
    let mut variables = Vec::new();
    for credential in &plan.credentials {
        let variable = plan::variable(credential);
        if !variables.contains(&variable) {
            variables.push(variable);
        }
    }
    let command = command::snippet(&plan, place);
    Ok(Snippets {
        dialect: plan.label(),
        snippets: match plan.route.dialect {
            Dialect::V1Grpc | Dialect::V0Grpc => vec![command],
            Dialect::V01JsonRpc => vec![curl::snippet(&plan), command],
            _ => vec![
                curl::snippet(&plan),
                python::snippet(&plan, place),
                javascript::snippet(&plan, place),
                command,
            ],
        },
        variables,
        notes: plan.notes,
        url: plan.route.url.into(),
    })
}

pub fn label(route: &Route) -> &'static str {
    let plan = Plan {
        route: route.clone(),
        credentials: Vec::new(),
        message: String::new(),
        notes: Vec::new(),
    };
    plan.label()
}

/// The command that sends the agent a message, for an agent that this page cannot call by itself. Unlike a snippet it
/// is printed for every card: the program itself reports what it cannot do.
pub fn send_command(card: &AgentCard, place: AgentLocation<'_>) -> String {
    match plan::plan(card) {
        Ok(plan) => command::snippet(&plan, place).code,
        Err(_) => command::code(&[], &plan::message(card), place),
    }
}
