//! `import`: adds what `export` has written to another registry. What exists there is compared and never changed.

mod content;
mod curation;
mod registration;
mod report;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use a2a_registry_api::limits::MAX_REASON;
use a2a_registry_api::{GroupMembers, NewPolicies, NewPolicy, Waiver};
use a2a_registry_domain::role::{Role, Scope};
use a2a_registry_domain::timestamp::Timestamp;
use clap::Args;

use super::client::Client;
use super::client_error::{ClientError, not_found_as_none};
use super::command_error::{CommandError, CommandResult};
use super::console::Console;
use super::export_format::{CollectionRecord, ExportedContent, GroupRecord};
use super::policy_apply::await_policies_in_force;
use super::waiver::fetch_all_waivers;
use content::ImportContent;
use registration::CrawlPatience;
use report::{ImportReport, ImportResult};

/// Seconds to wait until imported policies are in force.
const POLICY_WAIT_SECONDS: u64 = 600;

/// Arguments of `import`.
#[derive(Args, Debug, Clone)]
pub struct ImportArgs {
    /// File that `export` has written; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only show what would be created and what differs; the exit code is 1 if there is either
    #[arg(long)]
    dry_run: bool,
    /// Do not wait for the first crawl of the imported sources; import again later to add the decisions about their
    /// cards
    #[arg(long)]
    no_wait: bool,
}

/// An import under way.
struct Import<'a> {
    client: &'a Client,
    /// URL of the exported registry.
    origin: String,
    dry_run: bool,
    patience: CrawlPatience,
    report: ImportReport<'a>,
    /// Waivers in force in this registry.
    waivers: Vec<Waiver>,
}

/// Reads the whole file, and then creates what is missing: first what restricts agents, and decisions last.
///
/// # Errors
/// If the file is not an export, the permissions do not suffice, or the registry fails. A record that the registry
/// refuses is a line of the report, and exit code 1.
pub async fn run_import(
    arguments: &ImportArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let exported = ExportedContent::read(open_input(&arguments.file)?)?;
    let record_count = exported.records.len() as u64;
    let content = ImportContent::from_exported(exported);
    require_import_permissions(client).await?;
    let mut import = Import {
        client,
        origin: content.origin.clone(),
        dry_run: arguments.dry_run,
        patience: CrawlPatience::new(!arguments.no_wait && !arguments.dry_run),
        report: ImportReport::new(console, arguments.dry_run, record_count),
        waivers: Vec::new(),
    };
    for group in &content.groups {
        import.add_group(group).await?;
    }
    for collection in &content.collections {
        import.add_collection(collection).await?;
    }
    import.add_policies(&content.policies).await?;
    if content.has_waivers() {
        import.waivers = fetch_all_waivers(client).await?;
    }
    let existing = import.register_sources(&content.domains).await?;
    for (name, domain) in &content.domains {
        import
            .curate_domain(name, domain, existing.contains(name))
            .await?;
    }
    import.report.finish()
}

fn open_input(file: &Path) -> Result<Box<dyn BufRead>, CommandError> {
    if file.as_os_str() == "-" {
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    let opened = File::open(file).map_err(|error| {
        CommandError::new(format!("{} cannot be read: {error}", file.display()))
    })?;
    Ok(Box::new(BufReader::new(opened)))
}

/// The registry checks each call by itself; this check keeps an import from ending halfway.
async fn require_import_permissions(client: &Client) -> Result<(), CommandError> {
    let me = client.me().await?.value;
    let has_role = |role: Role| me.account.roles.iter().any(|own| *own == role);
    let has_scope = |scope: Scope| me.scopes.iter().any(|own| *own == scope);
    let roles_suffice = has_role(Role::Admin) && has_role(Role::Curator);
    if roles_suffice && has_scope(Scope::Admin) && has_scope(Scope::Curate) {
        return Ok(());
    }
    Err(CommandError::new(format!(
        "an import needs an account with the roles admin and curator, and a token with the scopes admin and curate; \
         {} lacks one of them; nothing was imported",
        me.account.name
    )))
}

/// Why the registry refused one record; other failures end the import.
fn refusal_reason(error: ClientError) -> Result<String, CommandError> {
    match error.status() {
        Some(400 | 403 | 404 | 409 | 412 | 422) => Ok(error.to_string()),
        _ => Err(error.into()),
    }
}

impl Import<'_> {
    /// Records the result of a change that was made unless this is a dry run.
    fn report_change<T>(
        &mut self,
        kind: &str,
        name: &str,
        change: Option<Result<T, ClientError>>,
    ) -> Result<ImportResult, CommandError> {
        let (result, detail) = match change {
            None | Some(Ok(_)) => (ImportResult::Created, String::new()),
            Some(Err(error)) => (ImportResult::Failed, refusal_reason(error)?),
        };
        self.report.add(kind, name, result, &detail)?;
        Ok(result)
    }

    async fn add_group(&mut self, record: &GroupRecord) -> Result<(), CommandError> {
        let name = &record.name;
        let present = not_found_as_none(self.client.group(name).await)?;
        if let Some(group) = present {
            let present: BTreeSet<&String> = group.value.members.iter().collect();
            let imported: BTreeSet<&String> = record.members.iter().collect();
            let is_same = present == imported;
            return self
                .report
                .add_comparison("group", name, is_same, "members");
        }
        let content = GroupMembers {
            members: record.members.clone(),
        };
        let change = match self.dry_run {
            true => None,
            false => Some(self.client.put_group(name, &content).await),
        };
        self.report_change("group", name, change).map(drop)
    }

    async fn add_collection(&mut self, record: &CollectionRecord) -> Result<(), CommandError> {
        let name = &record.name;
        if let Some((collection, _)) = self.client.find_collection(name).await? {
            let present = CollectionRecord::new(collection);
            let differing = present.differing_members(record).join(", ");
            let is_same = differing.is_empty();
            return self
                .report
                .add_comparison("collection", name, is_same, &differing);
        }
        let content = record.to_content();
        let change = match self.dry_run {
            true => None,
            false => Some(self.client.put_collection(name, &content, None).await),
        };
        self.report_change("collection", name, change).map(drop)
    }

    /// Adds missing policies to the newest set, and waits until that is in force: no agent may be listed before the
    /// policies that would hide it.
    async fn add_policies(&mut self, policies: &[NewPolicy]) -> Result<(), CommandError> {
        if policies.is_empty() {
            return Ok(());
        }
        let current = self.client.fetch_policy_set(None).await?.value;
        let mut present: Vec<NewPolicy> = Vec::new();
        for policy in current.policies {
            if !policy.shipped {
                present.push(NewPolicy {
                    id: policy.id,
                    text: policy.text,
                });
            }
        }
        // Nobody has written set 0, so a set with other policies replaces it as a whole.
        if current.number == 0 && policies.iter().any(|policy| !present.contains(policy)) {
            present.clear();
        }
        for own in &present {
            if policies.iter().all(|policy| policy.id != own.id) {
                let detail = "only this registry has it; it stays in force";
                let result = ImportResult::Different;
                self.report.add("policy", &own.id, result, detail)?;
            }
        }
        let mut set = present.clone();
        let mut created = BTreeSet::new();
        for policy in policies {
            match present.iter().find(|own| own.id == policy.id) {
                Some(own) => {
                    let is_same = own.text == policy.text;
                    self.report
                        .add_comparison("policy", &policy.id, is_same, "text")?;
                }
                None if created.insert(&policy.id) => set.push(policy.clone()),
                None => {
                    let detail = "the file has another policy of this identifier";
                    let result = ImportResult::Failed;
                    self.report.add("policy", &policy.id, result, detail)?;
                }
            }
        }
        if !self.dry_run {
            // Also if nothing is missing: an earlier import may have ended before its set was in force.
            let number = match created.is_empty() {
                true => current.number,
                false => self.put_policies(set, current.number).await?,
            };
            await_policies_in_force(self.client, number, POLICY_WAIT_SECONDS).await?;
        }
        for id in created {
            let result = ImportResult::Created;
            self.report.add("policy", id, result, "")?;
        }
        Ok(())
    }

    async fn put_policies(
        &self,
        policies: Vec<NewPolicy>,
        base_number: u64,
    ) -> Result<u64, CommandError> {
        let new = NewPolicies {
            policies,
            reason: self.imported_reason("policies"),
            ..NewPolicies::default()
        };
        let accepted = self.client.put_policy_set(&new, base_number).await;
        let accepted = accepted.map_err(|error| {
            CommandError::from(error).with_context(
                "the policies were not imported, and nothing that comes after them; put them in force with `policy \
                 apply`, then import again",
            )
        })?;
        Ok(accepted.value.number)
    }

    /// Reason of an imported change, within the limit of reasons.
    fn imported_reason(&self, what: &str) -> String {
        let text = format!("imported from {}: {what}", self.origin);
        text.replace('\0', " ").chars().take(MAX_REASON).collect()
    }
}

/// Who had decided, when and why.
fn describe_decision(by: &str, at: Option<Timestamp>, reason: &str) -> String {
    let at = at.map_or_else(String::new, |at| format!(" at {}", at.to_readable()));
    format!("{by}{at}: {reason}")
}
