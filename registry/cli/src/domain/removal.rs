//! `domain rm`: a whole domain, or only what the caller has registered of it; with `--erase` its cards too.

use a2a_registry_api::{DomainView, Erasure, SourceView};
use serde_json::json;

use crate::client::Client;
use crate::client_error::not_found_as_none;
use crate::command_error::{CommandError, CommandResult};
use crate::confirm::confirm_irreversible_action;
use crate::console::Console;

/// Removes it after confirmation, and prints what remains.
pub async fn run_domain_removal(
    domain: &str,
    source: Option<&str>,
    yes: bool,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let view = client.domain(domain).await?.value;
    let (document, message) = match source {
        Some(named) => {
            let source = find_own_source(&view, named)?;
            let what = format!(
                "withdrawing your registration of {} at {}",
                source.url, view.domain
            );
            confirm_irreversible_action(&what, yes)?;
            client.delete_source(&view.domain, &source.id).await?;
            let line = format!("your registration of {} is withdrawn", source.url);
            (
                json!({"domain": view.domain, "source": source.url, "removed": true}),
                line,
            )
        }
        None => {
            let (domain, agents) = (&view.domain, view.agents.len());
            let action = if view.complete {
                format!("removing {domain} and permanently retiring its agents ({agents})")
            } else {
                format!(
                    "withdrawing your registrations of {domain} and permanently retiring the agents that only you \
                     have registered (agents visible to you: {agents})"
                )
            };
            confirm_irreversible_action(&action, yes)?;
            client.delete_domain(&view.domain).await?;
            find_domain_removal_result(&view, client).await?
        }
    };
    console.print_result(&document, || console.print_line(&message))
}

/// Erases a domain after confirmation. The domain may have been removed before, so it is not looked up.
pub async fn run_domain_erasure(
    domain: &str,
    reason: &str,
    yes: bool,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let action =
        format!("removing {domain}, permanently retiring its agents and erasing their cards");
    confirm_irreversible_action(&action, yes)?;
    let request = Erasure {
        reason: reason.to_owned(),
    };
    client.erase_domain(domain, &request).await?;
    console.print_result(&json!({"domain": domain, "erased": true}), || {
        console.print_line(&format!(
            "{domain} and the cards of its agents are erased; backups still contain them"
        ))
    })
}

/// Result of the removal. A domain with sources of others stays, and only the caller's registrations are withdrawn.
/// `removed` is null if the caller no longer sees the domain and never saw all of it.
async fn find_domain_removal_result(
    view: &DomainView,
    client: &Client,
) -> Result<(serde_json::Value, String), CommandError> {
    let domain = &view.domain;
    let still_exists = not_found_as_none(client.domain(domain).await)?.is_some();
    let (removed, message) = if still_exists {
        (
            Some(false),
            format!("your registrations of {domain} are withdrawn; those of other accounts stay"),
        )
    } else if view.complete {
        (
            Some(true),
            format!("{domain} is removed and its agents are retired"),
        )
    } else {
        (
            None,
            format!(
                "your registrations of {domain} are withdrawn, and agents that only you registered are retired"
            ),
        )
    };
    Ok((json!({"domain": domain, "removed": removed}), message))
}

/// Source of the caller with that URL or id.
fn find_own_source<'a>(
    view: &'a DomainView,
    url_or_id: &str,
) -> Result<&'a SourceView, CommandError> {
    let mut own = view.sources.iter().filter(|source| source.own);
    own.find(|source| source.url == url_or_id || source.id == url_or_id)
        .ok_or_else(|| {
            CommandError::Negative(format!(
                "you have registered no source {url_or_id} of {}; `a2a-registry domain show {}` lists them",
                view.domain, view.domain
            ))
        })
}
