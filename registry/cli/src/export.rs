//! `export`: writes the curated content of a registry as JSON Lines, for `import` into another one.

use std::collections::{BTreeSet, HashMap};

use a2a_registry_api::{Agent, DomainView, Group, NewPolicy, Waiver};
use a2a_registry_domain::admission_rules::Rule;
use a2a_registry_domain::lifecycle::ShownLifecycle;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::review::VersionState;
use futures::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use uuid::Uuid;

use super::client::Client;
use super::client_error::not_found_as_none;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::export_format::{
    AgentRecord, AgentSettings, CollectionRecord, DecisionRecord, DomainRecord, ExportEnd,
    ExportHeader, ExportRecord, GroupRecord, SourceRecord, WaiverRecord, is_registered_source,
    source_url,
};
use super::list_format::PageArgs;
use super::terminal;
use super::waiver::fetch_all_waivers;

/// Agents that are fetched at the same time.
const MAX_CONCURRENT_READS: usize = 8;
/// Origin of the groups whose members an admin sets.
const ADMIN_ORIGIN: &str = "admin";

/// Content that is left out, by the reason.
#[derive(Debug, Clone, Copy, Default)]
struct OmittedCounts {
    opted_out_domains: u64,
    decisions_by_rules: u64,
    unsettled_approvals: u64,
    credentials: u64,
}

struct Export<'a> {
    client: &'a Client,
    console: &'a Console,
    progress: ProgressBar,
    record_count: u64,
    omitted: OmittedCounts,
}

/// Writes everything to standard output, and what was left out to standard error.
pub async fn run_export(client: &Client, console: &Console) -> CommandResult {
    let mut export = Export {
        client,
        console,
        progress: new_record_counter(console),
        record_count: 0,
        omitted: OmittedCounts::default(),
    };
    let header = ExportRecord::Header(ExportHeader::new(client.base_url()));
    console.print_json(&header)?;
    export.export_groups().await?;
    export.export_collections().await?;
    export.export_policies().await?;
    export.export_domains().await?;
    let records = export.record_count;
    console.print_json(&ExportRecord::End(ExportEnd { records }))?;
    export.progress.finish_and_clear();
    print_omitted(records, export.omitted);
    Ok(CommandOutcome::Done)
}

/// Counter of written records, shown while standard error is a terminal and the records go elsewhere.
fn new_record_counter(console: &Console) -> ProgressBar {
    let progress = ProgressBar::new_spinner();
    progress.set_draw_target(match console.interactive {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr(),
    });
    if let Ok(style) = ProgressStyle::with_template("{pos} records exported") {
        progress.set_style(style);
    }
    progress
}

fn print_omitted(records: u64, omitted: OmittedCounts) {
    terminal::eprint_note(&format!("{records} records exported"));
    for (count, reason) in [
        (
            omitted.opted_out_domains,
            "domains have opted out, and are not exported",
        ),
        (
            omitted.decisions_by_rules,
            "decisions were made by rules, and are left to the rules of the other registry",
        ),
        (
            omitted.unsettled_approvals,
            "approvals are of agents on hold or by break-glass, and are not exported",
        ),
        (
            omitted.credentials,
            "sources have a credential, which is never exported; set it again in the other registry",
        ),
    ] {
        if count > 0 {
            terminal::eprint_note(&format!("{count} {reason}"));
        }
    }
}

impl Export<'_> {
    fn write_record(&mut self, record: &ExportRecord) -> Result<(), CommandError> {
        self.record_count += 1;
        self.progress.inc(1);
        self.console.print_json(record)
    }

    async fn export_groups(&mut self) -> Result<(), CommandError> {
        let mut groups: Vec<Group> = Vec::new();
        let mut page_token = None;
        loop {
            let page = PageArgs::with_max_limit(page_token);
            let list = self.client.groups(&page).await?.value;
            let own = list.groups.into_iter();
            groups.extend(own.filter(|group| group.origin == ADMIN_ORIGIN));
            page_token = list.next_page_token;
            if page_token.is_none() {
                break;
            }
        }
        groups.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        for group in groups {
            self.write_record(&ExportRecord::Group(GroupRecord {
                name: group.name,
                members: group.members,
            }))?;
        }
        Ok(())
    }

    async fn export_collections(&mut self) -> Result<(), CommandError> {
        let list = self.client.collections().await?.value;
        for collection in list.collections {
            let record = CollectionRecord::new(collection);
            self.write_record(&ExportRecord::Collection(record))?;
        }
        Ok(())
    }

    async fn export_policies(&mut self) -> Result<(), CommandError> {
        let mut set = self.client.fetch_policy_set(None).await?.value;
        // Their order has no meaning, and an import may change it.
        set.policies.sort_by(|one, other| one.id.cmp(&other.id));
        for policy in set.policies.into_iter().filter(|policy| !policy.shipped) {
            self.write_record(&ExportRecord::Policy(NewPolicy {
                id: policy.id,
                text: policy.text,
            }))?;
        }
        Ok(())
    }

    /// Exports domains page by page, so that memory does not grow with their number.
    async fn export_domains(&mut self) -> Result<(), CommandError> {
        let mut waivers: HashMap<Uuid, Vec<Waiver>> = HashMap::new();
        for waiver in fetch_all_waivers(self.client).await? {
            waivers.entry(waiver.agent).or_default().push(waiver);
        }
        let mut page = PageArgs::default();
        loop {
            let list = self.client.domains(&page).await?.value;
            for domain in &list.domains {
                self.export_domain(domain, &waivers).await?;
            }
            page.page_token = list.next_page_token;
            if page.page_token.is_none() {
                return Ok(());
            }
        }
    }

    async fn export_domain(
        &mut self,
        domain: &DomainView,
        waivers: &HashMap<Uuid, Vec<Waiver>>,
    ) -> Result<(), CommandError> {
        if domain.state == DomainState::OptedOut {
            self.omitted.opted_out_domains += 1;
            return Ok(());
        }
        let name = &domain.domain;
        self.write_record(&ExportRecord::Domain(DomainRecord {
            domain: name.clone(),
            contact: domain.contact.clone(),
        }))?;
        let credentials = domain.sources.iter();
        let credentials = credentials.filter(|source| source.credential.is_some());
        self.omitted.credentials += credentials.count() as u64;
        let registered = domain.sources.iter();
        let registered = registered.filter(|source| is_registered_source(source));
        let urls: BTreeSet<String> = registered.map(source_url).collect();
        for url in urls {
            let domain = name.clone();
            self.write_record(&ExportRecord::Source(SourceRecord { domain, url }))?;
        }
        let client = self.client;
        let mut agents = stream::iter(agents_by_source(domain))
            .map(|(source, id)| async move {
                let agent = not_found_as_none(client.agent(id).await);
                (source, agent)
            })
            .buffered(MAX_CONCURRENT_READS);
        while let Some((source, agent)) = agents.next().await {
            // The agent may have disappeared since its domain was read.
            if let Some(agent) = agent? {
                self.export_agent(name, &source, &agent.value, waivers)?;
            }
        }
        Ok(())
    }

    fn export_agent(
        &mut self,
        domain: &str,
        source: &str,
        agent: &Agent,
        waivers: &HashMap<Uuid, Vec<Waiver>>,
    ) -> Result<(), CommandError> {
        let summary = &agent.hit.summary;
        if summary.lifecycle == ShownLifecycle::Retired {
            return Ok(());
        }
        let settings = AgentSettings::from_agent(agent).ok_or_else(|| {
            CommandError::new(format!(
                "the agent {} has the visibility {}, which this program does not know; use a program of the \
                 registry's version",
                summary.id, summary.visibility
            ))
        })?;
        self.write_record(&ExportRecord::Agent(AgentRecord {
            domain: domain.to_owned(),
            source: source.to_owned(),
            settings,
        }))?;
        let mut of_agent: Vec<&Waiver> = waivers
            .get(&summary.id)
            .into_iter()
            .flatten()
            .filter(|waiver| waiver.is_shown && waiver.ended_at.is_none())
            .collect();
        // Of several waivers of a policy, the one that lasts longest is enough.
        of_agent.sort_by(|one, other| {
            let latest_first = other.expires_at.cmp(&one.expires_at);
            one.policy.cmp(&other.policy).then(latest_first)
        });
        of_agent.dedup_by(|later, kept| later.policy == kept.policy);
        for waiver in of_agent {
            self.write_record(&ExportRecord::Waiver(WaiverRecord {
                domain: domain.to_owned(),
                source: source.to_owned(),
                policy: waiver.policy.clone(),
                digest: summary.card_digest.clone(),
                by: waiver.approver.clone(),
                reason: waiver.reason.clone(),
                expires_at: waiver.expires_at,
            }))?;
        }
        self.export_decision(domain, source, agent)
    }

    fn export_decision(
        &mut self,
        domain: &str,
        source: &str,
        agent: &Agent,
    ) -> Result<(), CommandError> {
        let decision = &agent.decision;
        let approved = match decision.state.known_value() {
            Some(VersionState::Approved) => true,
            Some(VersionState::Rejected) => false,
            _ => return Ok(()),
        };
        if decision.rules != [Rule::Person.as_str()]
            && decision.rules != [Rule::BreakGlass.as_str()]
        {
            self.omitted.decisions_by_rules += 1;
            return Ok(());
        }
        // An import would list such an agent: holds are not imported.
        if approved && (!agent.holds.is_empty() || agent.break_glass.is_some()) {
            self.omitted.unsettled_approvals += 1;
            return Ok(());
        }
        self.write_record(&ExportRecord::Decision(DecisionRecord {
            domain: domain.to_owned(),
            source: source.to_owned(),
            digest: agent.hit.summary.card_digest.clone(),
            approved,
            by: decision.by.clone(),
            at: decision.at,
            reason: decision.reason.clone(),
        }))
    }
}

/// Agents of a domain, each with the first URL of its sources. An agent without a source is left out, because no other
/// registry could find it.
fn agents_by_source(domain: &DomainView) -> Vec<(String, Uuid)> {
    let mut agents: Vec<(String, Uuid)> = domain
        .agents
        .iter()
        .filter_map(|id| {
            let sources = domain.sources.iter();
            let own = sources.filter(|source| source.agent == Some(*id));
            let url = own.map(source_url).min()?;
            Some((url, *id))
        })
        .collect();
    agents.sort_unstable();
    agents
}
