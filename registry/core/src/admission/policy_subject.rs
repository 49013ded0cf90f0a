//! Facts about an agent from its rows and card, shared by its index document and the policies.

use std::collections::{BTreeMap, BTreeSet};

use a2a_card::{
    AgentCard, INSTRUCTION_RULE, Interface, Severity, all_input_modes, all_output_modes,
    auth_labels, capability_labels, skill_tags,
};
use a2a_registry_domain::admission_rules::AdmissionRules;
use a2a_registry_domain::review::ChangeClass;
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_domain::trust::TrustLevel;
use a2a_registry_policy::{AgentAge, AgentAttributes, EndpointSuffixes, PolicySet, days_since};
use a2a_registry_store::entity::{agent, version};
use serde::Deserialize;
use url::Url;

use crate::signatures::DomainKeyBinding;

/// An agent with the content that policies evaluate.
#[derive(Debug, Clone, Copy)]
pub struct PolicySubject<'a> {
    pub agent: &'a agent::Model,
    pub version: &'a version::Model,
    pub card: &'a AgentCard,
    pub binding: &'a DomainKeyBinding,
    pub has_verified_domain: bool,
    /// The methods by which the domain is verified, separated by spaces.
    pub proof_methods: &'a str,
    /// Whether the content comes from the domain itself, or was admitted on its behalf.
    pub is_admitted: bool,
    /// The change from the approved content; `None` if nothing was approved.
    pub change: Option<ChangeClass>,
}

#[derive(Deserialize)]
struct StoredFindingRule {
    rule: String,
    /// A text, because a later build may have written a severity that this one does not know.
    severity: String,
}

impl PolicySubject<'_> {
    /// The attributes by these rules, with ages as of a moment.
    pub fn agent_attributes(&self, rules: &AdmissionRules, as_of: Timestamp) -> AgentAttributes {
        let (agent, card, version) = (self.agent, self.card, self.version);
        let interfaces = &card.interfaces;
        let hosts = deduplicate(interfaces.iter().map(endpoint_host));
        let findings: Vec<StoredFindingRule> =
            serde_json::from_str(&version.findings).unwrap_or_default();
        let (level, signature) = trust_and_signature(agent, version, self.binding);
        AgentAttributes {
            id: agent.id.to_string(),
            domain: agent.domain.clone(),
            verified: self.has_verified_domain,
            proof_methods: split_words(self.proof_methods),
            covered: self.is_admitted,
            labels: agent_labels(agent)
                .into_iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect(),
            provider: provider_organization(card),
            skills: deduplicate(card.skills.iter().map(|skill| skill.id.clone())),
            skill_names: card.skills.iter().map(|skill| skill.name.clone()).collect(),
            tags: skill_tags(card),
            capabilities: capability_labels(card),
            input_modes: all_input_modes(card),
            output_modes: all_output_modes(card),
            auth: auth_labels(card),
            bindings: deduplicate(interfaces.iter().map(|one| one.binding.clone())),
            endpoint_suffixes: EndpointSuffixes::from_hosts(&hosts),
            endpoint_hosts: hosts,
            protocol_versions: deduplicate(
                interfaces
                    .iter()
                    .filter_map(|one| one.protocol_version.clone()),
            ),
            trust: level.map_or(-1, |level| level as i64),
            signature: signature.as_str().to_owned(),
            addresses_model: findings
                .iter()
                .any(|finding| finding.rule == INSTRUCTION_RULE),
            error_findings: findings_of_severity(&findings, Severity::Error),
            warning_findings: findings_of_severity(&findings, Severity::Warning),
            info_findings: findings_of_severity(&findings, Severity::Info),
            findings: deduplicate(findings.into_iter().map(|finding| finding.rule)),
            has_error: version.has_error,
            lifecycle: agent.lifecycle.as_str().to_owned(),
            liveness: agent.liveness.as_str().to_owned(),
            endpoint: agent.endpoint.as_str().to_owned(),
            owner_present: agent.owner_id.or(agent.submitter).is_some(),
            sponsor_present: agent.sponsor_id.is_some(),
            visibility: agent.visibility.as_str().to_owned(),
            allow_listed: rules.allows(&agent.domain),
            change: change_class_name(self.change).to_owned(),
            ages: AgentAge::ALL.map(|age| days_since(age_start(agent, age), as_of)),
        }
    }
}

/// The moment from which an age of an agent counts.
pub fn age_start(agent: &agent::Model, age: AgentAge) -> Option<i64> {
    match age {
        AgentAge::Fetched => agent.last_seen_at,
        AgentAge::Changed => agent.last_changed_at,
        AgentAge::Approved => agent.certified_at,
        AgentAge::Answered => agent.endpoint_answered_at,
    }
}

/// The column with the moment from which an age counts.
pub fn age_column(age: AgentAge) -> agent::Column {
    match age {
        AgentAge::Fetched => agent::Column::LastSeenAt,
        AgentAge::Changed => agent::Column::LastChangedAt,
        AgentAge::Approved => agent::Column::CertifiedAt,
        AgentAge::Answered => agent::Column::EndpointAnsweredAt,
    }
}

/// Whether an age of an agent, now counted from another moment, is on the other side of a number that policies compare
/// it with. The agent then needs an event, so that it is evaluated again.
pub fn crosses_age_threshold(
    set: &PolicySet,
    age: AgentAge,
    (before, after): (Option<i64>, Option<i64>),
    now: Timestamp,
) -> bool {
    let mut thresholds = set.age_thresholds().iter().filter(|one| one.age == age);
    thresholds.any(|one| one.is_reached(before, now) != one.is_reached(after, now))
}

fn findings_of_severity(findings: &[StoredFindingRule], severity: Severity) -> Vec<String> {
    let of_it = findings
        .iter()
        .filter(|one| one.severity == severity.as_str());
    deduplicate(of_it.map(|finding| finding.rule.clone()))
}

pub fn split_words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The host of an interface. An address without one, such as `host:port`, is returned whole, so that a policy that
/// lists the permitted hosts does not miss it.
fn endpoint_host(interface: &Interface) -> String {
    let url = Url::parse(&interface.url).ok();
    let host = url.as_ref().and_then(Url::host_str);
    let host = host.filter(|host| !host.is_empty());
    host.unwrap_or(&interface.url).to_owned()
}

/// The name of a change in policies: `first` if nothing was approved.
pub fn change_class_name(change: Option<ChangeClass>) -> &'static str {
    change.map_or("first", ChangeClass::as_str)
}

/// The trust level of a version of an agent, and the state of its signatures.
pub fn trust_and_signature(
    agent: &agent::Model,
    version: &version::Model,
    binding: &DomainKeyBinding,
) -> (Option<TrustLevel>, SignatureState) {
    let signature = binding.signature_state(version.into());
    let key_enrolled = binding.has_enrolled_key(&version.thumbprints);
    let level = match (
        agent.tls,
        binding.has_proof_covering(&version.standing),
        signature,
    ) {
        (false, ..) => None,
        (true, true, SignatureState::Valid) if key_enrolled => Some(TrustLevel::L3),
        (true, true, SignatureState::Valid) => Some(TrustLevel::L2),
        (true, true, _) => Some(TrustLevel::L1),
        (true, false, _) => Some(TrustLevel::L0),
    };
    (level, signature)
}

pub fn provider_organization(card: &AgentCard) -> String {
    let provider = card.provider.as_ref();
    let organization = provider.and_then(|provider| provider.organization.clone());
    organization.unwrap_or_default()
}

pub fn deduplicate(values: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    values
        .into_iter()
        .filter(|value| seen.insert(value.clone()))
        .collect()
}

pub fn agent_labels(agent: &agent::Model) -> BTreeMap<String, String> {
    serde_json::from_str(&agent.labels).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_counts_for_a_list_of_hosts() {
        for (url, host) in [
            ("https://agents.corp.example/a2a", "agents.corp.example"),
            ("https://agents.corp.example@evil.example/", "evil.example"),
            ("evil.example:443", "evil.example:443"),
            ("evil.example/a2a", "evil.example/a2a"),
            ("dns:///evil.example", "dns:///evil.example"),
            ("", ""),
        ] {
            let interface = Interface {
                url: url.into(),
                ..Interface::default()
            };
            assert_eq!(endpoint_host(&interface), host);
        }
    }
}
