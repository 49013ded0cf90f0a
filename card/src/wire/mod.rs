//! Reader from members to the model: determines the family, then reads every member in any generation's form.
//!
//! Real cards mix generations freely, so no version has a reader for whole cards: each version's module reads the
//! members particular to that version, and this module assembles the card.

mod capability;
mod format_detection;
pub(crate) mod informal_credentials;
pub(crate) mod member_names;
pub(crate) mod misplaced_members;
pub(crate) mod other_texts;
mod security;
mod skill;
mod v0_1;
pub(crate) mod v0_2;
mod v0_3;
pub(crate) mod v1_0;
pub(crate) mod value_spellings;

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use url::Url;

use self::format_detection::DetectedFormat;
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::{self, LengthLimit, MAX_LIST_ELEMENTS, MemberReader};
use crate::parse_error::ParseError;
use crate::{
    AgentCard, CardFamily, Interface, Provider, SecurityRequirement, SecurityScheme, Skill,
    UNKNOWN_BINDING, rules,
};
use member_names::{CARD_MEMBERS, NESTING_MEMBERS, is_security_member};
use other_texts::UnmodeledTextCollector;

pub(crate) struct DecodedCard {
    pub(crate) card: AgentCard,
    pub(crate) family: CardFamily,
    pub(crate) reason: &'static str,
    /// Whether the version of the flat address comes only from the family.
    pub(crate) version_from_format: bool,
}

pub(crate) fn decode_card(
    root: Map<String, Value>,
    out: &mut FindingCollector,
) -> Result<DecodedCard, ParseError> {
    let other_texts = UnmodeledTextCollector::from_document(&root);
    let mut members = MemberReader::new(root, JsonPointer::Root);
    let is_nested = lift_nested_card(&mut members, out);
    let shape = format_detection::detect_card_format(&members);
    let Some((name, is_renamed)) = take_agent_name(&mut members, out) else {
        return Err(ParseError::NotACard {
            reason: "the object has no `name`".into(),
        });
    };
    let (family, reason) = if is_nested {
        (
            CardFamily::Nested,
            "the name is inside a member of the document",
        )
    } else if is_renamed {
        (CardFamily::Nested, "the name is in `agent_name`")
    } else {
        (shape.family, shape.reason)
    };

    let (capabilities, tools) = capability::take_capabilities(&mut members, out);
    let interfaces = take_interfaces(&mut members, &shape, out);
    let (security_schemes, security) = take_security(&mut members, out);
    let skills = take_all_skills(&mut members, &security_schemes, tools, out);
    let mut card = AgentCard {
        name,
        description: members.take_text("description", LengthLimit::Prose, out),
        version: members.take_text("version", LengthLimit::Line, out),
        provider: take_provider(&mut members, out),
        interfaces,
        capabilities,
        skills,
        input_modes: value_spellings::take_modes(&mut members, "defaultInputModes", out),
        output_modes: value_spellings::take_modes(&mut members, "defaultOutputModes", out),
        security_schemes,
        security,
        documentation_url: members.take_text("documentationUrl", LengthLimit::Address, out),
        icon_url: members.take_text("iconUrl", LengthLimit::Address, out),
        signatures: v0_3::take_signatures(&mut members, out),
        unknown: Map::new(),
        other_texts: Vec::new(),
    };
    card.other_texts = other_texts.into_unmodeled_texts(&card);
    card.unknown = members.into_remaining();
    apply_nonstandard_credentials(&mut card, out);
    if family == CardFamily::V0_1 {
        add_default_modes(&mut card);
    }
    Ok(DecodedCard {
        card,
        family,
        reason,
        version_from_format: shape.version_from_format,
    })
}

/// Takes the skills and the tools among the capabilities, or else the skills in other members. A tool with the id or
/// name of a skill is that skill. The tools come last, but before a long list of skills, because some readers cut its
/// end.
fn take_all_skills(
    members: &mut MemberReader<'_>,
    declared_schemes: &[SecurityScheme],
    tools: Vec<Skill>,
    out: &mut FindingCollector,
) -> Vec<Skill> {
    let mut skills = skill::take_skills(members, declared_schemes, out);
    let tools = remove_known_tools(tools, &skills);
    let tool_index = if misplaced_members::is_long_skill_list(skills.len()) {
        0
    } else {
        skills.len()
    };
    skills.splice(tool_index..tool_index, tools);
    if skills.len() > MAX_LIST_ELEMENTS {
        let found = format!("{} skills and tools", skills.len());
        out.add(
            &rules::LIST_CUT,
            &JsonPointer::Root.member("skills"),
            &found,
        );
        skills.truncate(MAX_LIST_ELEMENTS);
    }
    if skills.is_empty() {
        skills = misplaced_members::take_misplaced_skills(members, out);
    }
    skills
}

/// The tools that are not among the skills by their id or name. Few cards have any tools.
fn remove_known_tools(mut tools: Vec<Skill>, skills: &[Skill]) -> Vec<Skill> {
    if !tools.is_empty() {
        let known_names: HashSet<&str> = skills
            .iter()
            .flat_map(|skill| [skill.id.as_str(), skill.name.as_str()])
            .collect();
        tools.retain(|tool| {
            !known_names.contains(tool.id.as_str()) && !known_names.contains(tool.name.as_str())
        });
    }
    tools
}

/// Adds default modes to a card without any; only 0.1 defines them.
fn add_default_modes(card: &mut AgentCard) {
    for modes in [&mut card.input_modes, &mut card.output_modes] {
        if modes.is_empty() {
            modes.push("text/plain".to_owned());
        }
    }
}

/// Takes the agent's name, and whether it was in a member of another name.
fn take_agent_name(
    members: &mut MemberReader<'_>,
    out: &mut FindingCollector,
) -> Option<(String, bool)> {
    if let Some(name) = members.take_text("name", LengthLimit::Line, out) {
        return Some((name, false));
    }
    let name = members.take_text("agentName", LengthLimit::Line, out)?;
    out.add(&rules::CARD_NAME, &JsonPointer::Root, &name);
    Some((name, true))
}

fn take_interfaces(
    members: &mut MemberReader<'_>,
    shape: &DetectedFormat,
    out: &mut FindingCollector,
) -> Vec<Interface> {
    let mut interfaces =
        v1_0::take_supported_interfaces(members, shape.interface_version.as_deref(), out);
    let flat_interfaces = v0_3::take_flat_interfaces(members, shape.flat_version.as_deref(), out);
    merge_interfaces(&mut interfaces, flat_interfaces);
    if interfaces.is_empty() {
        let other_address_members = describe_address_like_members(members);
        out.add(
            &rules::CARD_NO_ADDRESS,
            &JsonPointer::Root,
            &other_address_members,
        );
        let address = misplaced_members::find_misplaced_address(|name| members.peek_member(name));
        interfaces.extend(address.map(|(_, url)| Interface {
            url: url.to_owned(),
            binding: UNKNOWN_BINDING.to_owned(),
            protocol_version: shape.flat_version.clone(),
            tenant: None,
        }));
    }
    interfaces
}

fn take_security(
    members: &mut MemberReader<'_>,
    out: &mut FindingCollector,
) -> (Vec<SecurityScheme>, Vec<SecurityRequirement>) {
    let mut schemes = security::take_schemes(members, out);
    let mut requirements = security::take_security_requirements(members, &schemes, out);
    let (mut labelled_schemes, mut alternatives) =
        v0_1::take_authentication(members, !schemes.is_empty(), out);
    if schemes.is_empty() && labelled_schemes.is_empty() && alternatives.is_empty() {
        (labelled_schemes, alternatives) = v0_3::take_nonstandard_schemes(members, out);
    }
    if !labelled_schemes.is_empty() {
        schemes = labelled_schemes;
        schemes.sort_by(|a, b| a.name.cmp(&b.name));
    }
    if requirements.is_empty() {
        requirements = alternatives;
    }
    (schemes, requirements)
}

/// Applies the credentials required in members of no version, if no other member requires any.
fn apply_nonstandard_credentials(card: &mut AgentCard, out: &mut FindingCollector) {
    let requires_schemes = |requirement: &SecurityRequirement| !requirement.schemes.is_empty();
    if !card.security_schemes.is_empty() || card.security.iter().any(requires_schemes) {
        return;
    }
    let credential_requirement =
        informal_credentials::combined_credential_requirement(&card.unknown);
    let root = JsonPointer::Root;
    for member in informal_credentials::find_credential_members(&card.unknown) {
        // An unreadable member of a version already has its finding.
        let has_finding = member.holder.is_none() && is_security_member(member.name);
        if !has_finding && member.requirement().requires_any() {
            let holder = member.holder.map_or(root, |holder| root.member(holder));
            out.add_with_value(
                &rules::SECURITY_ELSEWHERE,
                &holder.member(member.name),
                member.value,
            );
        }
    }
    let (mut schemes, alternatives) = credential_requirement.into_schemes();
    if card.security.is_empty() && !alternatives.is_empty() {
        schemes.sort_by(|a, b| a.name.cmp(&b.name));
        card.security_schemes = schemes;
        card.security = alternatives;
        card.unknown.retain(|name, _| !is_security_member(name));
    }
}

/// Lifts a nested card's members, if the document itself has no name.
fn lift_nested_card(members: &mut MemberReader<'_>, out: &mut FindingCollector) -> bool {
    if members.peek_member("name").is_some() {
        return false;
    }
    let has_name = |value: &Value| {
        value
            .get("name")
            .and_then(Value::as_str)
            .is_some_and(|name| !name.trim().is_empty())
    };
    for nesting_member in NESTING_MEMBERS {
        if members.peek_member(nesting_member).is_some_and(has_name) {
            out.add(&rules::CARD_NESTED, &JsonPointer::Root, nesting_member);
            members.lift_members(nesting_member, &CARD_MEMBERS);
            return true;
        }
    }
    false
}

/// Adds flat addresses, then removes duplicates. Of one address with and without a version, the one with a version is
/// kept.
fn merge_interfaces(interfaces: &mut Vec<Interface>, flat_interfaces: Vec<Interface>) {
    if interfaces.len() + flat_interfaces.len() < 2 {
        interfaces.extend(flat_interfaces);
        return;
    }
    let mut merged: Vec<Interface> = Vec::new();
    // The positions kept so far for each address, binding and tenant.
    let mut indices_by_target: HashMap<(String, String, Option<String>), Vec<usize>> =
        HashMap::new();
    for interface in interfaces.drain(..).chain(flat_interfaces) {
        let key = (
            normalize_address(&interface.url),
            interface.binding.clone(),
            interface.tenant.clone(),
        );
        let same_target = indices_by_target.entry(key).or_default();
        let version = &interface.protocol_version;
        let has_version = |index: &usize, version: &Option<String>| {
            merged
                .get(*index)
                .is_some_and(|one| one.protocol_version == *version)
        };
        if same_target.iter().any(|index| has_version(index, version))
            || (version.is_none() && !same_target.is_empty())
        {
            continue;
        }
        match same_target
            .iter()
            .copied()
            .find(|index| has_version(index, &None))
        {
            Some(undated_index) => {
                if let Some(one) = merged.get_mut(undated_index) {
                    one.protocol_version = interface.protocol_version;
                }
            }
            None => {
                same_target.push(merged.len());
                merged.push(interface);
            }
        }
    }
    *interfaces = merged;
}

/// Normalizes an address so that equal addresses are equal texts (RFC 3986 §6.2.2); an unparsable one is kept as it
/// is.
pub(crate) fn normalize_address(address: &str) -> String {
    Url::parse(address).map_or_else(|_| address.to_owned(), String::from)
}

/// Describes, for the finding, where a card without an address has something similar.
fn describe_address_like_members(members: &MemberReader<'_>) -> String {
    const ADDRESS_LIKE_MEMBERS: [&str; 9] = [
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
    let present_names: Vec<&str> = ADDRESS_LIKE_MEMBERS
        .into_iter()
        .filter(|name| members.peek_member(name).is_some())
        .collect();
    present_names.join(", ")
}

/// Takes `provider`: an object, or only the organization's name.
fn take_provider(members: &mut MemberReader<'_>, out: &mut FindingCollector) -> Option<Provider> {
    let (position, value) = members.take_member("provider", out)?;
    let parent = members.pointer();
    let pointer = position.pointer_in(&parent);
    let provider = match value {
        Value::Object(inner) => {
            let mut inner = MemberReader::new(inner, pointer);
            let mut organization = inner.take_text("organization", LengthLimit::Line, out);
            if organization.is_none() {
                organization = inner.take_text("name", LengthLimit::Line, out);
                if let Some(name) = &organization {
                    out.add(&rules::PROVIDER_NAME, &pointer.member("name"), name);
                }
            }
            Provider {
                organization,
                url: inner.take_text("url", LengthLimit::Address, out),
            }
        }
        Value::String(text) => {
            out.add(&rules::PROVIDER_TEXT, &pointer, &text);
            Provider {
                organization: member_reader::trim_and_truncate(
                    text,
                    &pointer,
                    LengthLimit::Line,
                    out,
                ),
                url: None,
            }
        }
        other => {
            out.add_wrong_type(&pointer, &other, "an object with `organization` and `url`");
            members.retain_unreadable(&position, other);
            return None;
        }
    };
    (provider != Provider::default()).then_some(provider)
}
