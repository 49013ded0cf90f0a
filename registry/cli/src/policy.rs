//! `policy`: the rules by which agents are found and called, kept as files.

use std::path::PathBuf;

use a2a_registry_api::{DecisionRequest, NewPolicies, NewPolicy, Policies};
use clap::Subcommand;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, CommandResult, Failure};
use super::list::{Listing, PageArgs};
use super::policy_apply::{ApplyArgs, ApplyOptions, apply};
use super::policy_files::read_all;
use super::{policy_trial, terminal};

/// What `policy` takes.
#[derive(Subcommand, Debug, Clone)]
pub enum PolicyCommand {
    /// Show the policies of a set, the newest by default
    Show {
        /// Number of the set
        #[arg(long, value_name = "N")]
        number: Option<u64>,
    },
    /// List the policy sets that were made, newest first
    History(PageArgs),
    /// Put the policies of files in force: one policy in each, whose name is its identifier
    Apply(ApplyArgs),
    /// Put the policies of an earlier set in force, as a new one
    Rollback {
        /// Number of the earlier set
        number: u64,
        /// Why, for the log
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        options: ApplyOptions,
    },
    /// Show what differs between two sets, or between a set and files
    Diff(policy_trial::DiffArgs),
    /// Show which agents the policies of files would show to whom, and hide from whom
    Preview {
        /// Files named *.cedar, or folders of them
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Test how policies decide; the exit code is 1 if a case is not decided as it must be
    Test(policy_trial::TestArgs),
    /// Show what a policy on a dry run would have changed
    DryRun {
        /// Identifier of the policy
        policy: String,
    },
    /// Print a policy to begin with, or list them
    Template {
        /// Its name
        name: Option<String>,
    },
    /// Say whether the caller may find or call an agent
    Decide {
        /// Id or URN of the agent
        agent: String,
        /// What the caller wants to do
        #[arg(long, default_value = "invoke", value_parser = ["discover", "invoke"])]
        action: String,
    },
}

pub async fn run(command: &PolicyCommand, client: &Client, console: &Console) -> CommandResult {
    match command {
        PolicyCommand::Show { number } => {
            let reply = client.policies(*number).await?;
            console.show(&reply, || show(&reply.value, console))
        }
        PolicyCommand::History(page) => history(page, client, console).await,
        PolicyCommand::Apply(arguments) => {
            let new = NewPolicies {
                policies: read_all(&arguments.files)?,
                reason: arguments.reason.clone().unwrap_or_default(),
                ..NewPolicies::default()
            };
            apply(new, &arguments.options, arguments.dry_run, client, console).await
        }
        PolicyCommand::Rollback {
            number,
            reason,
            options,
        } => {
            let earlier = client.policies(Some(*number)).await?.value.policies;
            let earlier = earlier.into_iter().filter(|policy| !policy.shipped);
            let policies = earlier.map(|policy| NewPolicy {
                id: policy.id,
                text: policy.text,
            });
            let new = NewPolicies {
                policies: policies.collect(),
                reason: reason.clone(),
                ..NewPolicies::default()
            };
            apply(new, options, false, client, console).await
        }
        PolicyCommand::Diff(arguments) => policy_trial::diff(arguments, client, console).await,
        PolicyCommand::Preview { files } => policy_trial::preview(files, client, console).await,
        PolicyCommand::Test(arguments) => policy_trial::test(arguments, client, console).await,
        PolicyCommand::DryRun { policy } => policy_trial::dry_run(policy, client, console).await,
        PolicyCommand::Template { name } => policy_trial::template(name.as_deref(), console),
        PolicyCommand::Decide { agent, action } => decide(agent, action, client, console).await,
    }
}

fn show(set: &Policies, console: &Console) -> Result<(), Failure> {
    console.line(&format!(
        "set {}{}",
        set.number,
        match set.number == set.in_force {
            true => ", in force".to_owned(),
            false => format!("; set {} is in force", set.in_force),
        }
    ))?;
    if let (Some(author), Some(reason)) = (&set.author, &set.reason) {
        console.line(&format!(
            "by {}: {}",
            terminal::line(author),
            terminal::line(reason)
        ))?;
    }
    for policy in &set.policies {
        let mode = match policy.mode.as_str() {
            "enforce" => String::new(),
            other => format!(" ({other})"),
        };
        let shipped = match policy.shipped {
            true => " (shipped)",
            false => "",
        };
        console.line("")?;
        console.line(&format!("# {}{mode}{shipped}", policy.id))?;
        console.lines(policy.text.trim_end())?;
    }
    Ok(())
}

async fn history(page: &PageArgs, client: &Client, console: &Console) -> CommandResult {
    let reply = client.policy_history(page).await?;
    let listing = Listing {
        command: "policy history",
        limit: page.limit,
        header: ["SET", "MADE", "BY", "POLICIES", "REASON"],
        empty: "no policy set was made; the shipped one is in force",
    };
    let list = &reply.value;
    let next = list.next_page_token.as_deref();
    listing.show(console, &reply, &list.sets, next, |set| {
        [
            set.number.to_string(),
            set.created_at.to_readable(),
            set.author.clone(),
            set.policies.to_string(),
            set.reason.clone(),
        ]
    })
}

async fn decide(agent: &str, action: &str, client: &Client, console: &Console) -> CommandResult {
    let request = DecisionRequest {
        action: action.to_owned(),
        agent: agent.to_owned(),
    };
    let reply = client.policy_decision(&request).await?;
    let decision = &reply.value;
    console.show(&reply, || {
        console.line(&match &decision.reason {
            None => format!("allowed by set {}", decision.number),
            Some(reason) => format!(
                "denied by set {}: {}",
                decision.number,
                terminal::line(reason)
            ),
        })?;
        for policy in &decision.policies {
            console.line(&format!("policy   {policy}"))?;
        }
        Ok(())
    })?;
    Ok(CommandOutcome::done_if(decision.allowed))
}
