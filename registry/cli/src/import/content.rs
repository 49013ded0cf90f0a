//! Exported content by subject: what belongs to a domain is processed together.

use std::collections::BTreeMap;

use a2a_registry_api::NewPolicy;

use super::super::export_format::{
    AgentSettings, CollectionRecord, DecisionRecord, ExportRecord, ExportedContent, GroupRecord,
    WaiverRecord,
};

#[derive(Debug, Clone, Default)]
pub struct ImportContent {
    /// URL of the exported registry.
    pub origin: String,
    pub groups: Vec<GroupRecord>,
    pub collections: Vec<CollectionRecord>,
    pub policies: Vec<NewPolicy>,
    pub domains: BTreeMap<String, ImportedDomain>,
}

#[derive(Debug, Clone, Default)]
pub struct ImportedDomain {
    /// Whether the file has a record of the domain itself.
    pub is_exported: bool,
    pub contact: Option<String>,
    /// URLs to register.
    pub sources: Vec<String>,
    /// Agents by the URL of a source.
    pub agents: BTreeMap<String, ImportedAgent>,
}

#[derive(Debug, Clone, Default)]
pub struct ImportedAgent {
    pub settings: Option<AgentSettings>,
    pub waivers: Vec<WaiverRecord>,
    pub decision: Option<DecisionRecord>,
}

impl ImportContent {
    /// Sorts records by subject. Of two records about the same subject, which no export has, the later one counts.
    pub fn from_exported(exported: ExportedContent) -> Self {
        let mut content = Self {
            origin: exported.origin,
            ..Self::default()
        };
        for record in exported.records {
            content.add_record(record);
        }
        content
    }

    fn add_record(&mut self, record: ExportRecord) {
        match record {
            // The reader has taken both.
            ExportRecord::Header(_) | ExportRecord::End(_) => {}
            ExportRecord::Group(group) => self.groups.push(group),
            ExportRecord::Collection(collection) => self.collections.push(collection),
            ExportRecord::Policy(policy) => self.policies.push(policy),
            ExportRecord::Domain(record) => {
                let domain = self.domains.entry(record.domain).or_default();
                domain.is_exported = true;
                domain.contact = record.contact;
            }
            ExportRecord::Source(source) => {
                let domain = self.domains.entry(source.domain).or_default();
                domain.sources.push(source.url);
            }
            ExportRecord::Agent(agent) => {
                let imported = self.agent_entry(&agent.domain, &agent.source);
                imported.settings = Some(agent.settings);
            }
            ExportRecord::Waiver(waiver) => {
                let imported = self.agent_entry(&waiver.domain, &waiver.source);
                imported.waivers.push(waiver);
            }
            ExportRecord::Decision(decision) => {
                let imported = self.agent_entry(&decision.domain, &decision.source);
                imported.decision = Some(decision);
            }
        }
    }

    fn agent_entry(&mut self, domain: &str, source: &str) -> &mut ImportedAgent {
        let domain = self.domains.entry(domain.to_owned()).or_default();
        domain.agents.entry(source.to_owned()).or_default()
    }

    pub fn has_waivers(&self) -> bool {
        let mut agents = self.domains.values().flat_map(|one| one.agents.values());
        agents.any(|agent| !agent.waivers.is_empty())
    }
}
