//! `domain vouch`: an admin's vouch for a host, for a registrant of it, for an account as its owner, or for its
//! endpoints.

use a2a_registry_api::limits::MAX_VOUCH_DAYS;
use a2a_registry_api::{NewEndpointVouch, NewOwnerVouch, Vouch};
use clap::Args;
use serde_json::json;

use super::DomainArg;
use crate::client::Client;
use crate::command_error::CommandResult;
use crate::console::Console;

/// Arguments of `domain vouch`.
#[derive(Args, Debug, Clone)]
pub struct VouchArgs {
    #[command(flatten)]
    name: DomainArg,
    /// Reason, stored with the vouch
    #[arg(long, value_name = "TEXT", required_unless_present_any = ["end_owner", "end_endpoints"])]
    reason: Option<String>,
    /// Vouch for a registrant: the admission rules then also decide about card URLs of the host that this account
    /// registers
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// Vouch for an owner: this account may act as the owner of a host that cannot be proved; this is not a proof
    #[arg(long, value_name = "NAME", conflicts_with = "account")]
    owner: Option<String>,
    /// Days until the vouch for the owner expires, at most 365 [default: 180]
    #[arg(long = "expires", value_name = "DAYS", requires = "owner", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_VOUCH_DAYS)))]
    expires_in_days: Option<u32>,
    /// End the vouch for the owner
    #[arg(long, conflicts_with_all = ["reason", "account", "owner", "expires_in_days", "endpoints", "end_endpoints"])]
    end_owner: bool,
    /// Permit the registry to check the endpoints on exactly this scheme, host and port, and gateways to ask about
    /// them by URL
    #[arg(long, conflicts_with_all = ["account", "owner"])]
    endpoints: bool,
    /// End the vouch for the endpoints
    #[arg(long, conflicts_with_all = ["reason", "account", "owner", "expires_in_days", "endpoints"])]
    end_endpoints: bool,
}

pub async fn run_domain_vouch(
    arguments: &VouchArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let domain = &arguments.name.domain;
    if arguments.end_owner {
        client.end_owner_vouch(domain).await?;
        return console.print_result(&json!({"domain": domain, "owner_vouch": null}), || {
            console.print_line(&format!("The owner vouch of {domain} has ended"))
        });
    }
    if arguments.end_endpoints {
        client.end_endpoint_vouch(domain).await?;
        return console.print_result(&json!({"domain": domain, "endpoint_vouch": null}), || {
            console.print_line(&format!(
                "The vouch for the endpoints of {domain} has ended"
            ))
        });
    }
    let reason = arguments.reason.clone().unwrap_or_default();
    if arguments.endpoints {
        return vouch_for_endpoints(domain, reason, client, console).await;
    }
    let Some(owner) = &arguments.owner else {
        let vouch = Vouch {
            reason,
            account: arguments.account.clone(),
        };
        let reply = client.vouch(domain, &vouch).await?;
        return console.print_result(&reply, || {
            console.print_line(&format!(
                "{} is now {}",
                reply.value.domain, reply.value.state
            ))
        });
    };
    let vouch = NewOwnerVouch {
        account: owner.clone(),
        reason,
        expires_in_days: arguments.expires_in_days,
    };
    let reply = client.vouch_for_owner(domain, &vouch).await?;
    let until = reply.value.owner_vouch.as_ref();
    let until = until.map(|vouch| vouch.until.to_readable());
    console.print_result(&reply, || {
        console.print_line(&format!(
            "{owner} may act as owner of {} until {}; this is not a proof",
            reply.value.domain,
            until.unwrap_or_default()
        ))
    })
}

async fn vouch_for_endpoints(
    domain: &str,
    reason: String,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let reply = client
        .vouch_for_endpoints(domain, &NewEndpointVouch { reason })
        .await?;
    console.print_result(&reply, || {
        console.print_line(&format!(
            "The endpoints on {} may be checked, and gateways may ask by their URLs",
            reply.value.domain
        ))
    })
}
