//! `policy`: the rules that decide who can find and call agents, kept as files.

use std::path::PathBuf;

use a2a_registry_api::{
    DecisionRequest, DecisionSubject, NewPolicies, Policies, PolicyDecision, RecordedDecision,
};
use clap::{Args, Subcommand};

use super::client::Client;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::list_format::{ListFormat, PageArgs};
use super::policy_apply::{ApplyPoliciesArgs, PolicyApplyOptions, apply_policies};
use super::policy_files::{custom_policies, read_policies};
use super::{policy_checks, terminal};

/// Subcommands of `policy`.
#[derive(Subcommand, Debug, Clone)]
pub enum PolicyCommand {
    /// Show the policies of a set, the newest by default
    Show {
        /// Number of the set
        #[arg(long, value_name = "N")]
        number: Option<u64>,
    },
    /// List all policy sets, newest first
    History(PageArgs),
    /// Put policies from files in force: one policy in each file, which is named after its identifier
    Apply(ApplyPoliciesArgs),
    /// Put the policies of an earlier set in force, as a new set
    Rollback {
        /// Number of the earlier set
        number: u64,
        /// Reason, for the log
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        options: PolicyApplyOptions,
    },
    /// Show the differences between two sets, or between a set and files
    Diff(policy_checks::PolicyDiffArgs),
    /// Show which agents would become visible or hidden, and for whom, under the policies in files
    Preview {
        /// Files named *.cedar, or folders of them
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Test policy decisions; the exit code is 1 if a case has another result than expected
    Test(policy_checks::PolicyTestArgs),
    /// Show what a policy on a dry run would have changed
    DryRun {
        /// Identifier of the policy
        policy: String,
    },
    /// Print a policy template, or list the templates
    Template {
        /// Name of the template
        name: Option<String>,
    },
    /// Show whether you, or another account or group, may find or call an agent
    Decide(DecideArgs),
    /// Show the record of a decision
    Decision {
        /// Id of the decision
        decision: String,
    },
}

/// Arguments of `policy decide`.
#[derive(Args, Debug, Clone)]
pub struct DecideArgs {
    /// Id or URN of the agent
    #[arg(required_unless_present = "url")]
    agent: Option<String>,
    /// Action to decide on
    #[arg(long, default_value = "invoke", value_parser = ["discover", "invoke"])]
    action: String,
    /// Exact URL of an approved interface, in place of the agent
    #[arg(long, value_name = "URL", conflicts_with = "agent")]
    url: Option<String>,
    /// Check this account instead of yours (`anonymous` for clients without a token)
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// Check a member of this group instead; may be repeated
    #[arg(long, value_name = "GROUP", conflicts_with = "account")]
    group: Vec<String>,
}

pub async fn run_policy(
    command: &PolicyCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    match command {
        PolicyCommand::Show { number } => {
            let reply = client.fetch_policy_set(*number).await?;
            console.print_result(&reply, || print_policy_set(&reply.value, console))
        }
        PolicyCommand::History(page) => list_policy_sets(page, client, console).await,
        PolicyCommand::Apply(arguments) => {
            let new = NewPolicies {
                policies: read_policies(&arguments.files)?,
                reason: arguments.reason.clone().unwrap_or_default(),
                ..NewPolicies::default()
            };
            apply_policies(new, &arguments.options, arguments.dry_run, client, console).await
        }
        PolicyCommand::Rollback {
            number,
            reason,
            options,
        } => {
            let earlier = client.fetch_policy_set(Some(*number)).await?.value;
            let new = NewPolicies {
                policies: custom_policies(earlier).collect(),
                reason: reason.clone(),
                ..NewPolicies::default()
            };
            apply_policies(new, options, false, client, console).await
        }
        PolicyCommand::Diff(arguments) => {
            policy_checks::diff_policies(arguments, client, console).await
        }
        PolicyCommand::Preview { files } => {
            policy_checks::preview_policies(files, client, console).await
        }
        PolicyCommand::Test(arguments) => {
            policy_checks::test_policies(arguments, client, console).await
        }
        PolicyCommand::DryRun { policy } => {
            policy_checks::report_policy_dry_run(policy, client, console).await
        }
        PolicyCommand::Template { name } => {
            policy_checks::print_policy_template(name.as_deref(), console)
        }
        PolicyCommand::Decide(arguments) => query_policy_decision(arguments, client, console).await,
        PolicyCommand::Decision { decision } => {
            let reply = client.recorded_decision(decision).await?;
            console.print_result(&reply, || print_recorded_decision(&reply.value, console))
        }
    }
}

fn print_policy_set(set: &Policies, console: &Console) -> Result<(), CommandError> {
    console.print_line(&format!(
        "set {}{}",
        set.number,
        match set.number == set.in_force {
            true => ", in force".to_owned(),
            false => format!("; set {} is in force", set.in_force),
        }
    ))?;
    if let (Some(author), Some(reason)) = (&set.author, &set.reason) {
        console.print_line(&format!(
            "by {}: {}",
            terminal::escape_line(author),
            terminal::escape_line(reason)
        ))?;
    }
    for policy in &set.policies {
        let mode = match policy.mode.as_str() {
            "enforce" => String::new(),
            other => format!(" ({other})"),
        };
        let built_in_mark = match policy.shipped {
            true => " (shipped)",
            false => "",
        };
        console.print_line("")?;
        console.print_line(&format!("# {}{mode}{built_in_mark}", policy.id))?;
        console.print_lines(policy.text.trim_end())?;
    }
    Ok(())
}

async fn list_policy_sets(page: &PageArgs, client: &Client, console: &Console) -> CommandResult {
    let reply = client.policy_history(page).await?;
    let list_format = ListFormat {
        command: "policy history",
        limit: page.limit,
        header: ["SET", "MADE", "BY", "POLICIES", "REASON"],
        empty_message: "no policy set was created; the shipped one is in force",
    };
    let list = &reply.value;
    let next = list.next_page_token.as_deref();
    list_format.print_page(console, &reply, &list.sets, next, |set| {
        [
            set.number.to_string(),
            set.created_at.to_readable(),
            set.author.clone(),
            set.policies.to_string(),
            set.reason.clone(),
        ]
    })
}

async fn query_policy_decision(
    arguments: &DecideArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let is_about_another = arguments.account.is_some() || !arguments.group.is_empty();
    let subject = DecisionSubject {
        account: arguments.account.clone(),
        groups: arguments.group.clone(),
    };
    let request = DecisionRequest {
        action: arguments.action.clone(),
        agent: arguments.agent.clone(),
        url: arguments.url.clone(),
        subject: is_about_another.then_some(subject),
    };
    let reply = client.policy_decision(&request).await?;
    let decision = &reply.value;
    console.print_result(&reply, || print_decision(decision, console))?;
    Ok(CommandOutcome::done_if(decision.allowed))
}

fn print_decision(decision: &PolicyDecision, console: &Console) -> Result<(), CommandError> {
    console.print_line(&match &decision.reason {
        None => format!("allowed by set {}", decision.number),
        Some(reason) => format!(
            "denied by set {}: {}",
            decision.number,
            terminal::escape_line(reason)
        ),
    })?;
    for policy in &decision.policies {
        console.print_line(&format!("policy   {policy}"))?;
    }
    console.print_line(&format!("decision {}", decision.id))
}

fn print_recorded_decision(
    record: &RecordedDecision,
    console: &Console,
) -> Result<(), CommandError> {
    console.print_line(&format!(
        "{} of {} for {}, asked by {} at {}",
        record.action,
        record.resource,
        record.subject,
        record.asked_by,
        record.decision.decided_at.to_readable()
    ))?;
    print_decision(&record.decision, console)
}
