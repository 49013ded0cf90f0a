//! From members to the model: determines the family, then reads every member in any generation's form.
//!
//! Real cards mix generations freely, so no version has a reader for whole cards: each version's module reads the
//! members particular to that version, and this one assembles the card.

mod capability;
pub(crate) mod elsewhere;
pub(crate) mod informal;
pub(crate) mod members;
pub(crate) mod names;
mod security;
mod shape;
mod skill;
mod v0_1;
pub(crate) mod v0_2;
mod v0_3;
pub(crate) mod v1_0;

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use url::Url;

use self::shape::CardShape;
use crate::finding::Findings;
use crate::member::{self, Length, MAX_LIST, Members};
use crate::other_texts::OtherTexts;
use crate::pointer::Pointer;
use crate::refusal::ParseError;
use crate::{
    AgentCard, Family, Interface, Provider, SecurityRequirement, SecurityScheme, Skill,
    UNKNOWN_BINDING, rules,
};
use members::{CARD_MEMBERS, NESTS, is_security_member};

pub(crate) use capability::is_known as is_known_capability;

pub(crate) struct Read {
    pub(crate) card: AgentCard,
    pub(crate) family: Family,
    pub(crate) reason: &'static str,
    /// Whether the version of the flat address comes from the family alone.
    pub(crate) dated_by_form: bool,
}

pub(crate) fn read(root: Map<String, Value>, out: &mut Findings) -> Result<Read, ParseError> {
    let other_texts = OtherTexts::of(&root);
    let mut members = Members::new(root, Pointer::Root);
    let nested = lift_nested(&mut members, out);
    let shape = shape::tell(&members);
    let Some((name, renamed)) = name(&mut members, out) else {
        return Err(ParseError::NotACard {
            reason: "the object has no `name`".into(),
        });
    };
    let (family, reason) = if nested {
        (
            Family::Nested,
            "the name is inside a member of the document",
        )
    } else if renamed {
        (Family::Nested, "the name is in `agent_name`")
    } else {
        (shape.family, shape.reason)
    };

    let (capabilities, tools) = capability::capabilities(&mut members, out);
    let interfaces = interfaces(&mut members, &shape, out);
    let (security_schemes, security) = credentials(&mut members, out);
    let skills = skills(&mut members, &security_schemes, tools, out);
    let mut card = AgentCard {
        name,
        description: members.text("description", Length::Prose, out),
        version: members.text("version", Length::Line, out),
        provider: provider(&mut members, out),
        interfaces,
        capabilities,
        skills,
        input_modes: names::take_modes(&mut members, "defaultInputModes", out),
        output_modes: names::take_modes(&mut members, "defaultOutputModes", out),
        security_schemes,
        security,
        documentation_url: members.text("documentationUrl", Length::Address, out),
        icon_url: members.text("iconUrl", Length::Address, out),
        signatures: v0_3::signatures(&mut members, out),
        unknown: Map::new(),
        other_texts: Vec::new(),
    };
    card.other_texts = other_texts.beside(&card);
    card.unknown = members.rest();
    demand_elsewhere(&mut card, out);
    if family == Family::V0_1 {
        default_modes(&mut card);
    }
    Ok(Read {
        card,
        family,
        reason,
        dated_by_form: shape.dated_by_form,
    })
}

/// Takes the skills and the tools among the capabilities, or else what other members list. A tool with the id or name
/// of a skill is that skill. The tools come last, but before a long list of skills, whose end not every reader sees.
fn skills(
    members: &mut Members<'_>,
    declared: &[SecurityScheme],
    tools: Vec<Skill>,
    out: &mut Findings,
) -> Vec<Skill> {
    let mut skills = skill::skills(members, declared, out);
    let known: HashSet<String> = skills
        .iter()
        .flat_map(|skill| [skill.id.clone(), skill.name.clone()])
        .collect();
    let is_new = |tool: &Skill| !known.contains(&tool.id) && !known.contains(&tool.name);
    let tools: Vec<Skill> = tools.into_iter().filter(is_new).collect();
    let tools_at = if elsewhere::is_long(skills.len()) {
        0
    } else {
        skills.len()
    };
    skills.splice(tools_at..tools_at, tools);
    if skills.len() > MAX_LIST {
        let found = format!("{} skills and tools", skills.len());
        out.add(&rules::LIST_CUT, &Pointer::Root.name("skills"), &found);
        skills.truncate(MAX_LIST);
    }
    if skills.is_empty() {
        skills = elsewhere::skills(members, out);
    }
    skills
}

/// Adds default modes to a card without any; only 0.1 defines them.
fn default_modes(card: &mut AgentCard) {
    for modes in [&mut card.input_modes, &mut card.output_modes] {
        if modes.is_empty() {
            modes.push("text/plain".to_owned());
        }
    }
}

/// Takes the agent's name, and whether it was in a member of another name.
fn name(members: &mut Members<'_>, out: &mut Findings) -> Option<(String, bool)> {
    if let Some(name) = members.text("name", Length::Line, out) {
        return Some((name, false));
    }
    let name = members.text("agentName", Length::Line, out)?;
    out.add(&rules::CARD_NAME, &Pointer::Root, &name);
    Some((name, true))
}

fn interfaces(members: &mut Members<'_>, shape: &CardShape, out: &mut Findings) -> Vec<Interface> {
    let mut interfaces = v1_0::interfaces(members, shape.entry_version.as_deref(), out);
    let flat = v0_3::interfaces(members, shape.flat_version.as_deref(), out);
    merge(&mut interfaces, flat);
    if interfaces.is_empty() {
        let found = address_elsewhere(members);
        out.add(&rules::CARD_NO_ADDRESS, &Pointer::Root, &found);
        let address = elsewhere::address(|name| members.peek(name));
        interfaces.extend(address.map(|(_, url)| Interface {
            url: url.to_owned(),
            binding: UNKNOWN_BINDING.to_owned(),
            protocol_version: shape.flat_version.clone(),
            tenant: None,
        }));
    }
    interfaces
}

fn credentials(
    members: &mut Members<'_>,
    out: &mut Findings,
) -> (Vec<SecurityScheme>, Vec<SecurityRequirement>) {
    let mut schemes = security::schemes(members, out);
    let mut requirements = security::requirements(members, &schemes, out);
    let (mut labelled, mut alternatives) = v0_1::authentication(members, !schemes.is_empty(), out);
    if schemes.is_empty() && labelled.is_empty() && alternatives.is_empty() {
        (labelled, alternatives) = v0_3::schemes(members, out);
    }
    if !labelled.is_empty() {
        schemes = labelled;
        schemes.sort_by(|a, b| a.name.cmp(&b.name));
    }
    if requirements.is_empty() {
        requirements = alternatives;
    }
    (schemes, requirements)
}

/// Uses the credentials required in members of no version, if no other member requires any.
fn demand_elsewhere(card: &mut AgentCard, out: &mut Findings) {
    let asks = |requirement: &SecurityRequirement| !requirement.schemes.is_empty();
    if !card.security_schemes.is_empty() || card.security.iter().any(asks) {
        return;
    }
    let demand = informal::demand_of(&card.unknown);
    let root = Pointer::Root;
    for member in informal::members(&card.unknown) {
        // An unreadable member of a version already has its finding.
        let has_finding = member.holder.is_none() && is_security_member(member.name);
        if !has_finding && member.demand().asks() {
            let holder = member.holder.map_or(root, |holder| root.name(holder));
            out.add_value(
                &rules::SECURITY_ELSEWHERE,
                &holder.name(member.name),
                member.value,
            );
        }
    }
    let (mut schemes, alternatives) = demand.into_schemes();
    if card.security.is_empty() && !alternatives.is_empty() {
        schemes.sort_by(|a, b| a.name.cmp(&b.name));
        card.security_schemes = schemes;
        card.security = alternatives;
        card.unknown.retain(|name, _| !is_security_member(name));
    }
}

/// Lifts a nested card's members, if the document itself has no name.
fn lift_nested(members: &mut Members<'_>, out: &mut Findings) -> bool {
    if members.peek("name").is_some() {
        return false;
    }
    let named = |value: &Value| {
        value
            .get("name")
            .and_then(Value::as_str)
            .is_some_and(|name| !name.trim().is_empty())
    };
    for nest in NESTS {
        if members.peek(nest).is_some_and(named) {
            out.add(&rules::CARD_NESTED, &Pointer::Root, nest);
            members.lift(nest, &CARD_MEMBERS);
            return true;
        }
    }
    false
}

/// Adds flat addresses, then drops duplicates. Of one address with and without a version, the version counts.
fn merge(interfaces: &mut Vec<Interface>, flat: Vec<Interface>) {
    let mut kept: Vec<Interface> = Vec::new();
    // The positions kept so far for each address, binding and tenant.
    let mut known: HashMap<(String, String, Option<String>), Vec<usize>> = HashMap::new();
    for interface in interfaces.drain(..).chain(flat) {
        let key = (
            normal_address(&interface.url),
            interface.binding.clone(),
            interface.tenant.clone(),
        );
        let same = known.entry(key).or_default();
        let version = &interface.protocol_version;
        let has_version = |at: &usize, version: &Option<String>| {
            kept.get(*at)
                .is_some_and(|one| one.protocol_version == *version)
        };
        if same.iter().any(|at| has_version(at, version)) || (version.is_none() && !same.is_empty())
        {
            continue;
        }
        match same.iter().copied().find(|at| has_version(at, &None)) {
            Some(undated) => {
                if let Some(one) = kept.get_mut(undated) {
                    one.protocol_version = interface.protocol_version;
                }
            }
            None => {
                same.push(kept.len());
                kept.push(interface);
            }
        }
    }
    *interfaces = kept;
}

/// The address in the form in which equal ones are equal texts (RFC 3986 §6.2.2), or as it is.
pub(crate) fn normal_address(address: &str) -> String {
    Url::parse(address).map_or_else(|_| address.to_owned(), String::from)
}

/// Describes, for the finding, where a card without an address has something like one.
fn address_elsewhere(members: &Members<'_>) -> String {
    const PLACES: [&str; 9] = [
        "endpoint",
        "endpoints",
        "serviceUrl",
        "serviceEndpoint",
        "services",
        "agentEndpoint",
        "baseUrl",
        "wellKnownURI",
        "transport",
    ];
    let found: Vec<&str> = PLACES
        .into_iter()
        .filter(|name| members.peek(name).is_some())
        .collect();
    found.join(", ")
}

/// Takes `provider`: an object, or the organisation's name alone.
fn provider(members: &mut Members<'_>, out: &mut Findings) -> Option<Provider> {
    let (spot, value) = members.take("provider", out)?;
    let parent = members.at();
    let at = spot.below(&parent);
    let provider = match value {
        Value::Object(inner) => {
            let mut inner = Members::new(inner, at);
            let mut organization = inner.text("organization", Length::Line, out);
            if organization.is_none() {
                organization = inner.text("name", Length::Line, out);
                if let Some(name) = &organization {
                    out.add(&rules::PROVIDER_NAME, &at.name("name"), name);
                }
            }
            Provider {
                organization,
                url: inner.text("url", Length::Address, out),
            }
        }
        Value::String(text) => {
            out.add(&rules::PROVIDER_TEXT, &at, &text);
            Provider {
                organization: member::bounded(text, &at, Length::Line, out),
                url: None,
            }
        }
        other => {
            out.mistyped(&at, &other, "an object with `organization` and `url`");
            members.keep(&spot, other);
            return None;
        }
    };
    (provider != Provider::default()).then_some(provider)
}
