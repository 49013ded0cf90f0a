//! Target of the lint rules: a parsed card, its document, and the positions of its parts in the document.

use std::collections::HashMap;

use serde_json::Value;
use url::Url;

use crate::absolute_addresses::complete_partial_address;
use crate::json_pointer::JsonPointer;
use crate::member_reader::{
    LengthLimit, MAX_LIST_ELEMENTS, MemberPosition, is_spelling_of, to_snake_case,
};
use crate::wire::member_names::NESTING_MEMBERS;
use crate::wire::misplaced_members::{
    self, MISPLACED_SKILL_MEMBERS, TOOL_MEMBERS, is_long_skill_list, skill_indices,
};
use crate::{CONVERTED_EXTENSION, CardFamily, Interface, ParsedCard, Skill, UNKNOWN_BINDING};

/// Facts about a card that are not in its bytes. A rule that lacks its facts does not apply.
#[derive(Debug, Clone, Copy, Default)]
pub struct LintContext<'a> {
    /// URL of the card. Endpoints should have the same registrable domain, and relative ones are completed by it.
    pub card_url: Option<&'a Url>,
    /// The previous version of the card.
    pub previous: Option<&'a ParsedCard>,
}

pub(crate) struct LintTarget<'a> {
    pub(crate) parsed: &'a ParsedCard,
    /// Document, for facts that the model does not keep, such as which members are present at all.
    pub(crate) document: &'a Value,
    pub(crate) context: LintContext<'a>,
    nesting_member: Option<&'static str>,
    /// Addresses of the interfaces as URLs, if they are valid, with their positions.
    located_addresses: Vec<(Option<Url>, AddressPosition)>,
    /// Lists or objects that contain the skills, and the positions of the skills in each.
    located_skills: Vec<(MemberPosition, Vec<PathStep>)>,
}

/// Position of an address: in a list of interfaces, or in a flat `url`.
#[derive(Clone, Copy)]
enum AddressPosition {
    /// An entry of a list: its name, and the index of the entry.
    ListEntry(&'static str, usize),
    FlatUrl,
    /// A member of no version.
    UndefinedMember,
}

/// One step into a list or an object.
enum PathStep {
    Index(usize),
    Name(String),
}

impl<'a> LintTarget<'a> {
    pub(super) fn new(
        parsed: &'a ParsedCard,
        document: &'a Value,
        context: LintContext<'a>,
    ) -> Self {
        let nesting_member = find_nesting_member(parsed, document);
        let mut target = LintTarget {
            parsed,
            document,
            context,
            nesting_member,
            located_addresses: Vec::new(),
            located_skills: Vec::new(),
        };
        target.located_addresses = target.locate_addresses();
        target.located_skills = target.locate_skills();
        target
    }

    /// Whether a registry converted the card from another form.
    pub(super) fn is_converted(&self) -> bool {
        let mut extensions = self.parsed.card.capabilities.extensions.iter();
        extensions.any(|extension| extension.uri == CONVERTED_EXTENSION)
    }

    /// A member of the card with its position; null counts as absent.
    pub(crate) fn find_member(&self, name: &'static str) -> Option<(MemberPosition, &'a Value)> {
        let holders = [
            (None, Some(self.document)),
            (
                self.nesting_member,
                self.nesting_member.and_then(|nest| self.document.get(nest)),
            ),
        ];
        holders.into_iter().find_map(|(nesting_member, holder)| {
            let (spelling, value) = member_with_spelling(holder?, name)?;
            let position = if spelling == name {
                MemberPosition::new(nesting_member, name)
            } else {
                MemberPosition::new(nesting_member, to_snake_case(name))
            };
            Some((position, value))
        })
    }

    /// The position of a member, or where it would belong.
    pub(crate) fn position_of(&self, name: &'static str) -> MemberPosition {
        self.find_member(name).map_or_else(
            || MemberPosition::new(self.nesting_member, name),
            |(position, _)| position,
        )
    }

    /// Calls `visit` with every interface, its address as a URL if valid, and its position.
    pub(crate) fn for_each_interface(
        &self,
        mut visit: impl FnMut(&Interface, Option<&Url>, &JsonPointer<'_>),
    ) {
        let root = JsonPointer::Root;
        let interfaces = self.parsed.card.interfaces.iter();
        for (interface, (url, interface_position)) in interfaces.zip(&self.located_addresses) {
            match *interface_position {
                AddressPosition::ListEntry(list, index) => {
                    let position = self.position_of(list);
                    let list = position.pointer_in(&root);
                    visit(interface, url.as_ref(), &list.element(index).member("url"));
                }
                AddressPosition::FlatUrl => {
                    visit(
                        interface,
                        url.as_ref(),
                        &self.position_of("url").pointer_in(&root),
                    );
                }
                AddressPosition::UndefinedMember => {
                    let found = misplaced_members::find_misplaced_address(|name| {
                        Some(self.find_member(name)?.1)
                    });
                    let position = found.map_or_else(|| self.position_of("url"), |(spot, _)| spot);
                    visit(interface, url.as_ref(), &position.pointer_in(&root));
                }
            }
        }
    }

    pub(crate) fn for_each_skill(&self, mut visit: impl FnMut(&Skill, &JsonPointer<'_>)) {
        let root = JsonPointer::Root;
        let mut skills = self.parsed.card.skills.iter();
        for (list, steps) in &self.located_skills {
            let list = list.pointer_in(&root);
            for (step, skill) in steps.iter().zip(&mut skills) {
                match step {
                    PathStep::Index(index) => visit(skill, &list.element(*index)),
                    PathStep::Name(name) => visit(skill, &list.member(name)),
                }
            }
        }
        let position = self.position_of("skills");
        for skill in skills {
            visit(skill, &position.pointer_in(&root));
        }
    }

    /// The address of every interface as a URL, with its first position. The model keeps interfaces in another order.
    fn locate_addresses(&self) -> Vec<(Option<Url>, AddressPosition)> {
        let mut positions_by_url = HashMap::new();
        for list in ["supportedInterfaces", "additionalInterfaces"] {
            let entries = match self.find_member(list) {
                Some((_, Value::Array(entries))) => entries.as_slice(),
                _ => &[],
            };
            for (index, entry) in entries.iter().take(MAX_LIST_ELEMENTS).enumerate() {
                let url = entry.get("url").unwrap_or(entry).as_str();
                if let Some(url) = url {
                    let interface_position = AddressPosition::ListEntry(list, index);
                    positions_by_url
                        .entry(url.trim())
                        .or_insert(interface_position);
                }
            }
        }
        let interfaces = self.parsed.card.interfaces.iter();
        interfaces
            .map(|interface| {
                let interface_position = if interface.binding == UNKNOWN_BINDING {
                    Some(AddressPosition::UndefinedMember)
                } else {
                    positions_by_url.get(interface.url.as_str()).copied()
                };
                let card_url = self.context.card_url;
                let url = parse_interface_address(interface)
                    .or_else(|| complete_partial_address(interface, card_url?));
                (url, interface_position.unwrap_or(AddressPosition::FlatUrl))
            })
            .collect()
    }

    /// The positions of the skills, without those that the reader ignored; empty if they cannot be determined.
    fn locate_skills(&self) -> Vec<(MemberPosition, Vec<PathStep>)> {
        let count = self.parsed.card.skills.len();
        let skills_member = self.find_member("skills");
        let mut skill_positions: Vec<_> = skills_member
            .map(|(position, value)| (position, skill_path_steps(value)))
            .into_iter()
            .collect();
        let listed_count = skill_positions.first().map_or(0, |(_, steps)| steps.len());
        if is_long_skill_list(listed_count) {
            skill_positions.splice(0..0, self.locate_tools(0));
        } else {
            skill_positions.extend(self.locate_tools(listed_count));
        }
        let located_count: usize = skill_positions.iter().map(|(_, steps)| steps.len()).sum();
        if located_count == count {
            return skill_positions;
        }
        let misplaced = MISPLACED_SKILL_MEMBERS.into_iter().find_map(|name| {
            let (position, value) = self.find_member(name)?;
            let indices = skill_indices(name, value).filter(|places| places.len() == count)?;
            Some((position, indices.into_iter().map(PathStep::Index).collect()))
        });
        misplaced.into_iter().collect()
    }

    /// The positions of the tools that are read as skills in the capabilities, after `skipped_skills` others.
    fn locate_tools(&self, skipped_skills: usize) -> Vec<(MemberPosition, Vec<PathStep>)> {
        let capabilities = self.document.get("capabilities");
        let mut remaining_skills = self
            .parsed
            .card
            .skills
            .iter()
            .skip(skipped_skills)
            .peekable();
        let mut tool_positions = Vec::new();
        for name in TOOL_MEMBERS {
            let Some(tools) = capabilities.and_then(|capabilities| capabilities.get(name)) else {
                continue;
            };
            // Capabilities that are not skills were left out.
            let is_next_skill = |step: &PathStep| {
                let (value, key) = match step {
                    PathStep::Index(index) => (tools.get(*index), None),
                    PathStep::Name(name) => (tools.get(name), Some(name.as_str())),
                };
                let text = |name: &str| value.and_then(|value| value.get(name)?.as_str());
                let id = text("id").or(key).or_else(|| text("name"));
                let id = id.or_else(|| value?.as_str()).map(str::trim);
                remaining_skills
                    .next_if(|skill| Some(skill.id.as_str()) == id)
                    .is_some()
            };
            let mut steps = skill_path_steps(tools);
            steps.retain(is_next_skill);
            tool_positions.push((MemberPosition::new(Some("capabilities"), name), steps));
        }
        tool_positions
    }
}

/// Protocol generation whose forms a card should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtocolGeneration {
    V0,
    V1,
}

impl ProtocolGeneration {
    /// The generation of a card; `None` if the card is of both, or unclear.
    pub(super) fn from_target(target: &LintTarget<'_>) -> Option<Self> {
        match target.parsed.family {
            CardFamily::V0_1
            | CardFamily::V0_2
            | CardFamily::V0_3
            | CardFamily::Undated
            | CardFamily::Snake0 => Some(ProtocolGeneration::V0),
            CardFamily::V1_0 | CardFamily::Snake1 => Some(ProtocolGeneration::V1),
            CardFamily::Dual
            | CardFamily::OtherInterfaces
            | CardFamily::Flat1
            | CardFamily::NoAddress
            | CardFamily::Nested => None,
        }
    }
}

fn find_nesting_member(parsed: &ParsedCard, document: &Value) -> Option<&'static str> {
    if parsed.family != CardFamily::Nested
        || document.get("name").is_some_and(|name| !name.is_null())
    {
        return None;
    }
    let has_name = |nest: &&str| {
        document
            .get(nest)
            .and_then(|card| card.get("name"))
            .is_some()
    };
    NESTING_MEMBERS.into_iter().find(has_name)
}

/// The path to each element of a list or an object that is read as a skill.
fn skill_path_steps(skills: &Value) -> Vec<PathStep> {
    match skills {
        Value::Array(list) => {
            let numbered = list.iter().take(MAX_LIST_ELEMENTS).enumerate();
            let readable_skills = numbered.filter(|(_, skill)| is_readable_skill(skill));
            readable_skills
                .map(|(index, _)| PathStep::Index(index))
                .collect()
        }
        // In an object of lists, a step into the object itself is not a skill.
        Value::Object(named) if !named.values().any(Value::is_array) => {
            let names = named.keys().take(MAX_LIST_ELEMENTS);
            names.map(|name| PathStep::Name(name.clone())).collect()
        }
        _ => Vec::new(),
    }
}

fn is_readable_skill(skill: &Value) -> bool {
    let is_non_empty = |value: &Value| match value {
        Value::String(text) => !text.trim().is_empty(),
        other => other.is_number(),
    };
    match skill {
        Value::String(_) => is_non_empty(skill),
        Value::Object(_) => ["id", "name", "className", "categoryName"]
            .iter()
            .any(|name| member_in_either_spelling(skill, name).is_some_and(is_non_empty)),
        _ => false,
    }
}

/// The address as a URL. A gRPC address may be a bare `host:port`.
fn parse_interface_address(interface: &Interface) -> Option<Url> {
    let text = interface.url.as_str();
    if text.len() > LengthLimit::Address.max_chars() {
        return None;
    }
    if interface.binding == "GRPC" && !text.contains("://") {
        return Url::parse(&format!("https://{text}")).ok();
    }
    Url::parse(text).ok().filter(Url::has_host)
}

/// A member in camelCase or `snake_case`; null counts as absent.
pub(super) fn member_in_either_spelling<'v>(object: &'v Value, name: &str) -> Option<&'v Value> {
    member_with_spelling(object, name).map(|(_, value)| value)
}

/// A member in camelCase or `snake_case`, with the spelling that was found.
fn member_with_spelling<'v>(object: &'v Value, name: &str) -> Option<(&'v str, &'v Value)> {
    let members = object.as_object()?;
    let non_null = |(spelling, value): (&'v String, &'v Value)| {
        (!value.is_null()).then_some((spelling.as_str(), value))
    };
    members.get_key_value(name).and_then(non_null).or_else(|| {
        members
            .iter()
            .filter(|(spelling, _)| spelling.contains('_') && is_spelling_of(spelling, name))
            .find_map(non_null)
    })
}
