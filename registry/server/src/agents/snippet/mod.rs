//! Ready-made snippets that talk to an agent itself, in the dialect its card asks for.
//!
//! `plan` decides what is to be said to which address; one file for each language says it.
//! Card text reaches a snippet only through [`quote`](crate::pages::quote).

mod command;
mod curl;
mod javascript;
mod plan;
mod python;
#[cfg(test)]
mod tests;

use a2a_card::AgentCard;
use a2a_client::choice::{Credential, Dialect};

pub(crate) use plan::NoPlan;
use plan::{Generation, Plan};

/// One snippet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snippet {
    /// A short name for use in markup: `curl`, `python`, `javascript`, `send`.
    pub id: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// What to install before; empty where nothing is.
    pub install: String,
    /// The text to copy.
    pub code: String,
}

/// Everything that is shown about calling an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snippets {
    /// The way chosen, in words.
    pub dialect: &'static str,
    /// The address spoken to, as it stands in the snippets.
    pub url: String,
    /// The snippets.
    pub snippets: Vec<Snippet>,
    /// Environment variables to set before, with what goes in.
    pub variables: Vec<(&'static str, &'static str)>,
    /// What the snippets leave out.
    pub notes: Vec<String>,
}

/// Where an agent is found in this registry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentLocation<'a> {
    /// The agent's id.
    pub agent: &'a str,
    /// The base URL for an SDK's card resolver.
    pub resolver: &'a str,
    /// The registry's own URL.
    pub registry: &'a str,
}

/// The snippets for an agent.
///
/// # Errors
/// Why there are none: the card lists no interface, or none that the snippets speak.
pub(crate) fn snippets(card: &AgentCard, place: AgentLocation<'_>) -> Result<Snippets, NoPlan> {
    let plan = plan::plan(card)?;
    let mut variables = Vec::new();
    for credential in &plan.credentials {
        let variable = plan::variable(credential);
        if !variables.contains(&variable) {
            variables.push(variable);
        }
    }
    Ok(Snippets {
        dialect: plan.label(),
        snippets: vec![
            curl::snippet(&plan),
            python::snippet(&plan, place),
            javascript::snippet(&plan, place),
            command::snippet(&plan, place),
        ],
        variables,
        notes: plan.notes,
        url: plan.route.url.into(),
    })
}
