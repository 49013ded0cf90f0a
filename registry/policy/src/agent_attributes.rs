//! Agent attributes: the resource of a policy decision.

use std::collections::HashMap;

use a2a_registry_domain::facet::Facet;
use a2a_registry_domain::trust::TrustLevel;
use cedar_policy::{Entity, EntityUid, RestrictedExpression};

use crate::agent_age::AgentAge;
use crate::endpoint_suffixes::EndpointSuffixes;
use crate::policy::entity_uid;

/// The attributes of an agent that policies may use. The schema describes each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an attribute of the schema"
)]
pub struct AgentAttributes {
    pub id: String,
    pub domain: String,
    pub verified: bool,
    pub proof_methods: Vec<String>,
    pub covered: bool,
    pub labels: Vec<String>,
    pub provider: String,
    pub skills: Vec<String>,
    /// Not an attribute of the schema: collections match agents by these words.
    pub skill_names: Vec<String>,
    pub tags: Vec<String>,
    pub capabilities: Vec<String>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub auth: Vec<String>,
    pub bindings: Vec<String>,
    pub endpoint_hosts: Vec<String>,
    pub endpoint_suffixes: EndpointSuffixes,
    pub protocol_versions: Vec<String>,
    pub trust: i64,
    pub signature: String,
    pub findings: Vec<String>,
    pub error_findings: Vec<String>,
    pub warning_findings: Vec<String>,
    pub info_findings: Vec<String>,
    pub has_error: bool,
    pub addresses_model: bool,
    pub lifecycle: String,
    pub liveness: String,
    pub endpoint: String,
    pub owner_present: bool,
    pub sponsor_present: bool,
    pub visibility: String,
    pub allow_listed: bool,
    pub change: String,
    /// Whole days since the moment of each age, in the order of [`AgentAge::ALL`]; -1 without one.
    pub ages: [i64; AgentAge::ALL.len()],
}

pub trait CollectionMembership: std::fmt::Debug + Send + Sync {
    /// The names of the collections that contain an agent with these attributes.
    fn collections_containing(&self, agent: &AgentAttributes) -> Vec<String>;
}

impl AgentAttributes {
    pub fn facet_values(&self, facet: Facet) -> Vec<String> {
        let single = |value: &str| vec![value.to_owned()];
        match facet {
            Facet::Tag => self.tags.clone(),
            Facet::Skill => self.skills.clone(),
            Facet::Capability => self.capabilities.clone(),
            Facet::Binding => self.bindings.clone(),
            Facet::ProtocolVersion => self.protocol_versions.clone(),
            Facet::Provider => vec![self.provider.to_lowercase()],
            Facet::Domain => single(&self.domain),
            Facet::Auth => self.auth.clone(),
            Facet::InputMode => self.input_modes.clone(),
            Facet::OutputMode => self.output_modes.clone(),
            Facet::Label => self.labels.clone(),
            Facet::Trust => single(self.trust_level().map_or("none", TrustLevel::as_str)),
            Facet::Lifecycle => single(&self.lifecycle),
            Facet::Liveness => single(&self.liveness),
            Facet::Endpoint => single(&self.endpoint),
            Facet::Signature => single(&self.signature),
            Facet::Unmanaged => {
                let is_unmanaged = !self.owner_present && !self.sponsor_present;
                vec![is_unmanaged.to_string()]
            }
        }
    }

    pub fn trust_level(&self) -> Option<TrustLevel> {
        let level = usize::try_from(self.trust).ok()?;
        TrustLevel::ALL.get(level).copied()
    }

    /// Converts the agent to Cedar entities, its own first; `collections` are those that contain it.
    pub(crate) fn to_entities(
        &self,
        collections: &[String],
    ) -> Result<(EntityUid, Vec<Entity>), String> {
        let facts = self;
        let id = entity_uid("Agent", &facts.id)?;
        let domain_uid = entity_uid("Domain", &facts.domain)?;
        let parents = vec![domain_uid.clone()];
        let attributes = cedar_attributes(facts, collections);
        let agent = Entity::new(id.clone(), attributes, parents.into_iter().collect())
            .map_err(|error| error.to_string())?;
        Ok((id, vec![agent, domain_entity(domain_uid, &facts.domain)?]))
    }
}

pub(crate) fn domain_entities(name: &str) -> Result<(EntityUid, Vec<Entity>), String> {
    let id = entity_uid("Domain", name)?;
    Ok((id.clone(), vec![domain_entity(id, name)?]))
}

fn domain_entity(id: EntityUid, name: &str) -> Result<Entity, String> {
    let name = RestrictedExpression::new_string(name.to_owned());
    let attributes = HashMap::from([("name".to_owned(), name)]);
    Entity::new(id, attributes, std::collections::HashSet::new()).map_err(|error| error.to_string())
}

/// Characters of a card's text that `like` patterns are compared with: the comparison takes time for each character of
/// both.
const MAX_TEXT_CHARS: usize = 256;

/// Cuts a text to [`MAX_TEXT_CHARS`] characters.
fn truncate_text(text: &str) -> &str {
    let end = text.char_indices().nth(MAX_TEXT_CHARS);
    end.map_or(text, |(end, _)| &text[..end])
}

fn cedar_attributes(
    agent: &AgentAttributes,
    collections: &[String],
) -> HashMap<String, RestrictedExpression> {
    let text = |value: &str| RestrictedExpression::new_string(value.to_owned());
    let set =
        |values: &[String]| RestrictedExpression::new_set(values.iter().map(|value| text(value)));
    let boolean = RestrictedExpression::new_bool;
    [
        ("domain", text(&agent.domain)),
        ("verified", boolean(agent.verified)),
        ("proof_methods", set(&agent.proof_methods)),
        ("covered", boolean(agent.covered)),
        ("labels", set(&agent.labels)),
        ("provider", text(truncate_text(&agent.provider))),
        ("skills", set(&agent.skills)),
        ("tags", set(&agent.tags)),
        ("capabilities", set(&agent.capabilities)),
        ("input_modes", set(&agent.input_modes)),
        ("output_modes", set(&agent.output_modes)),
        ("auth", set(&agent.auth)),
        ("bindings", set(&agent.bindings)),
        ("endpoint_hosts", set(&agent.endpoint_hosts)),
        (
            "endpoint_suffixes_of_all",
            set(&agent.endpoint_suffixes.of_all),
        ),
        (
            "endpoint_suffixes_of_any",
            set(&agent.endpoint_suffixes.of_any),
        ),
        ("protocol_versions", set(&agent.protocol_versions)),
        ("trust", RestrictedExpression::new_long(agent.trust)),
        ("signature", text(&agent.signature)),
        ("findings", set(&agent.findings)),
        ("error_findings", set(&agent.error_findings)),
        ("warning_findings", set(&agent.warning_findings)),
        ("info_findings", set(&agent.info_findings)),
        ("has_error", boolean(agent.has_error)),
        ("addresses_model", boolean(agent.addresses_model)),
        ("lifecycle", text(&agent.lifecycle)),
        ("liveness", text(&agent.liveness)),
        ("endpoint", text(&agent.endpoint)),
        ("owner_present", boolean(agent.owner_present)),
        ("sponsor_present", boolean(agent.sponsor_present)),
        ("visibility", text(&agent.visibility)),
        ("allow_listed", boolean(agent.allow_listed)),
        ("change", text(&agent.change)),
        ("collections", set(collections)),
    ]
    .into_iter()
    .chain(
        AgentAge::ALL
            .into_iter()
            .zip(agent.ages)
            .map(|(age, days)| (age.as_str(), RestrictedExpression::new_long(days))),
    )
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use cedar_policy::{Entities, Schema};

    use super::*;
    use crate::SCHEMA;

    #[test]
    fn an_agent_has_every_attribute_of_the_schema_and_no_other() {
        let (schema, _) = Schema::from_cedarschema_str(SCHEMA).unwrap();
        let facts = AgentAttributes {
            id: "a1".to_owned(),
            domain: "agents.example.com".to_owned(),
            ..AgentAttributes::default()
        };
        let (_, entities) = facts.to_entities(&[]).unwrap();
        let checked = Entities::from_entities(entities, Some(&schema));
        assert!(checked.is_ok(), "{checked:?}");
    }
}
