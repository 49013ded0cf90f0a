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

    /// Converts the agent with these attributes to Cedar entities, its own first.
    pub(crate) fn to_entities(
        &self,
        values: Vec<(&'static str, AttributeValue<'_>)>,
    ) -> Result<(EntityUid, Vec<Entity>), String> {
        let facts = self;
        let id = entity_uid("Agent", &facts.id)?;
        let domain_uid = entity_uid("Domain", &facts.domain)?;
        let parents = vec![domain_uid.clone()];
        let attributes = cedar_attributes(values);
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

/// The value of an attribute, before it is converted for Cedar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttributeValue<'a> {
    Bool(bool),
    Long(i64),
    Text(&'a str),
    Set(&'a [String]),
}

impl AttributeValue<'_> {
    fn to_expression(self) -> RestrictedExpression {
        let text = |value: &str| RestrictedExpression::new_string(value.to_owned());
        match self {
            Self::Bool(value) => RestrictedExpression::new_bool(value),
            Self::Long(value) => RestrictedExpression::new_long(value),
            Self::Text(value) => text(value),
            Self::Set(values) => {
                RestrictedExpression::new_set(values.iter().map(|value| text(value)))
            }
        }
    }

    /// Appends bytes that differ for different values.
    pub(crate) fn append_key(self, key: &mut Vec<u8>) {
        let mut append_text = |value: &str| {
            key.extend(value.len().to_le_bytes());
            key.extend(value.as_bytes());
        };
        match self {
            Self::Text(value) => append_text(value),
            Self::Set(values) => {
                values.iter().for_each(|value| append_text(value));
                key.extend(usize::MAX.to_le_bytes());
            }
            Self::Bool(value) => key.push(value.into()),
            Self::Long(value) => key.extend(value.to_le_bytes()),
        }
    }
}

fn cedar_attributes(
    values: Vec<(&'static str, AttributeValue<'_>)>,
) -> HashMap<String, RestrictedExpression> {
    let values = values.into_iter();
    values
        .map(|(name, value)| (name.to_owned(), value.to_expression()))
        .collect()
}

/// All attributes of an agent, for each agent in the same order.
pub(crate) fn attribute_values<'a>(
    agent: &'a AgentAttributes,
    collections: &'a [String],
) -> Vec<(&'static str, AttributeValue<'a>)> {
    // Functions, so that references to strings and vectors become those to their content.
    fn text(value: &str) -> AttributeValue<'_> {
        AttributeValue::Text(value)
    }
    fn set(values: &[String]) -> AttributeValue<'_> {
        AttributeValue::Set(values)
    }
    let boolean = AttributeValue::Bool;
    let mut values = vec![
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
        ("trust", AttributeValue::Long(agent.trust)),
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
    ];
    let ages = AgentAge::ALL.into_iter().zip(agent.ages);
    values.extend(ages.map(|(age, days)| (age.as_str(), AttributeValue::Long(days))));
    values
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
        let values = attribute_values(&facts, &[]);
        let (_, entities) = facts.to_entities(values).unwrap();
        let checked = Entities::from_entities(entities, Some(&schema));
        assert!(checked.is_ok(), "{checked:?}");
    }
}
