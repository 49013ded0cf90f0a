//! The subject of the rules: a parsed card, its document, and the positions of its parts in the document.

use std::collections::HashMap;

use serde_json::Value;
use url::Url;

use crate::addresses::completed;
use crate::member::{Length, MAX_LIST, Spot, is_spelling, snake_case};
use crate::pointer::Pointer;
use crate::wire::elsewhere::{self, SKILL_PLACES, TOOL_PLACES, is_long, places_of_skills};
use crate::wire::members::NESTS;
use crate::{CONVERTED_EXTENSION, Family, Interface, Parsed, Skill, UNKNOWN_BINDING};

/// Facts about a card that are not in its bytes. A rule whose facts are missing does not apply.
#[derive(Debug, Clone, Copy, Default)]
pub struct LintContext<'a> {
    /// URL of the card: its endpoints should have the same registrable domain; relative ones are completed by it.
    pub card_url: Option<&'a Url>,
    /// The previous version of the card.
    pub previous: Option<&'a Parsed>,
}

pub(crate) struct Subject<'a> {
    pub(crate) parsed: &'a Parsed,
    /// For facts that the model does not keep, such as which members are present at all.
    pub(crate) document: &'a Value,
    pub(crate) context: LintContext<'a>,
    nest: Option<&'static str>,
    /// The addresses of the interfaces as URLs, where they are valid, with their positions.
    addresses: Vec<(Option<Url>, AddressPosition)>,
    /// The lists or objects that contain the skills, and the positions of the skills in each.
    skills: Vec<(Spot, Vec<Step>)>,
}

/// Position of an address: in a list of interfaces, or in a flat `url`.
#[derive(Clone, Copy)]
enum AddressPosition {
    /// The name of the list and the index of the entry.
    Entry(&'static str, usize),
    Flat,
    /// A member of no version.
    Elsewhere,
}

/// One step into a list or an object.
enum Step {
    Index(usize),
    Name(String),
}

impl<'a> Subject<'a> {
    pub(super) fn new(parsed: &'a Parsed, document: &'a Value, context: LintContext<'a>) -> Self {
        let nest = nest(parsed, document);
        let mut subject = Subject {
            parsed,
            document,
            context,
            nest,
            addresses: Vec::new(),
            skills: Vec::new(),
        };
        subject.addresses = subject.located_addresses();
        subject.skills = subject.located_skills();
        subject
    }

    /// Whether a registry wrote the card from one of another form.
    pub(super) fn is_converted(&self) -> bool {
        let mut extensions = self.parsed.card.capabilities.extensions.iter();
        extensions.any(|extension| extension.uri == CONVERTED_EXTENSION)
    }

    /// A member of the card with its position; null counts as absent.
    pub(crate) fn find(&self, name: &'static str) -> Option<(Spot, &'a Value)> {
        let holders = [
            (None, Some(self.document)),
            (
                self.nest,
                self.nest.and_then(|nest| self.document.get(nest)),
            ),
        ];
        holders.into_iter().find_map(|(inside, holder)| {
            let (spelling, value) = spelt(holder?, name)?;
            let spot = if spelling == name {
                Spot::new(inside, name)
            } else {
                Spot::new(inside, snake_case(name))
            };
            Some((spot, value))
        })
    }

    /// The position of a member, or where it would belong.
    pub(crate) fn spot(&self, name: &'static str) -> Spot {
        self.find(name)
            .map_or_else(|| Spot::new(self.nest, name), |(spot, _)| spot)
    }

    /// Calls `visit` with every interface, its address as a URL if it is one, and its position.
    pub(crate) fn each_interface(
        &self,
        mut visit: impl FnMut(&Interface, Option<&Url>, &Pointer<'_>),
    ) {
        let root = Pointer::Root;
        let interfaces = self.parsed.card.interfaces.iter();
        for (interface, (url, place)) in interfaces.zip(&self.addresses) {
            match *place {
                AddressPosition::Entry(list, index) => {
                    let spot = self.spot(list);
                    let list = spot.below(&root);
                    visit(interface, url.as_ref(), &list.index(index).name("url"));
                }
                AddressPosition::Flat => {
                    visit(interface, url.as_ref(), &self.spot("url").below(&root));
                }
                AddressPosition::Elsewhere => {
                    let found = elsewhere::address(|name| Some(self.find(name)?.1));
                    let spot = found.map_or_else(|| self.spot("url"), |(spot, _)| spot);
                    visit(interface, url.as_ref(), &spot.below(&root));
                }
            }
        }
    }

    pub(crate) fn each_skill(&self, mut visit: impl FnMut(&Skill, &Pointer<'_>)) {
        let root = Pointer::Root;
        let mut skills = self.parsed.card.skills.iter();
        for (list, steps) in &self.skills {
            let list = list.below(&root);
            for (step, skill) in steps.iter().zip(&mut skills) {
                match step {
                    Step::Index(index) => visit(skill, &list.index(*index)),
                    Step::Name(name) => visit(skill, &list.name(name)),
                }
            }
        }
        let spot = self.spot("skills");
        for skill in skills {
            visit(skill, &spot.below(&root));
        }
    }

    /// The address of every interface as a URL, with its first position: the model keeps interfaces in another order.
    fn located_addresses(&self) -> Vec<(Option<Url>, AddressPosition)> {
        let mut places = HashMap::new();
        for list in ["supportedInterfaces", "additionalInterfaces"] {
            let entries = match self.find(list) {
                Some((_, Value::Array(entries))) => entries.as_slice(),
                _ => &[],
            };
            for (index, entry) in entries.iter().take(MAX_LIST).enumerate() {
                let url = entry.get("url").unwrap_or(entry).as_str();
                if let Some(url) = url {
                    let place = AddressPosition::Entry(list, index);
                    places.entry(url.trim()).or_insert(place);
                }
            }
        }
        let interfaces = self.parsed.card.interfaces.iter();
        interfaces
            .map(|interface| {
                let place = if interface.binding == UNKNOWN_BINDING {
                    Some(AddressPosition::Elsewhere)
                } else {
                    places.get(interface.url.as_str()).copied()
                };
                let card_url = self.context.card_url;
                let url = address(interface).or_else(|| completed(interface, card_url?));
                (url, place.unwrap_or(AddressPosition::Flat))
            })
            .collect()
    }

    /// The positions of the skills, without those that reading ignored; empty where they are not plain.
    fn located_skills(&self) -> Vec<(Spot, Vec<Step>)> {
        let count = self.parsed.card.skills.len();
        let listed = self.find("skills");
        let mut places: Vec<_> = listed
            .map(|(spot, value)| (spot, steps(value)))
            .into_iter()
            .collect();
        let of_skills = places.first().map_or(0, |(_, steps)| steps.len());
        if is_long(of_skills) {
            places.splice(0..0, self.located_tools(0));
        } else {
            places.extend(self.located_tools(of_skills));
        }
        let located: usize = places.iter().map(|(_, steps)| steps.len()).sum();
        if located == count {
            return places;
        }
        let elsewhere = SKILL_PLACES.into_iter().find_map(|name| {
            let (spot, value) = self.find(name)?;
            let places = places_of_skills(name, value).filter(|places| places.len() == count)?;
            Some((spot, places.into_iter().map(Step::Index).collect()))
        });
        elsewhere.into_iter().collect()
    }

    /// The positions of the tools among the capabilities that are read as skills, which follow `skip` others.
    fn located_tools(&self, skip: usize) -> Vec<(Spot, Vec<Step>)> {
        let capabilities = self.document.get("capabilities");
        let mut read = self.parsed.card.skills.iter().skip(skip).peekable();
        let mut places = Vec::new();
        for name in TOOL_PLACES {
            let Some(tools) = capabilities.and_then(|capabilities| capabilities.get(name)) else {
                continue;
            };
            // The capabilities that are not skills were left out.
            let is_next = |step: &Step| {
                let (value, key) = match step {
                    Step::Index(index) => (tools.get(*index), None),
                    Step::Name(name) => (tools.get(name), Some(name.as_str())),
                };
                let text = |name: &str| value.and_then(|value| value.get(name)?.as_str());
                let id = text("id").or(key).or_else(|| text("name"));
                let id = id.or_else(|| value?.as_str()).map(str::trim);
                read.next_if(|skill| Some(skill.id.as_str()) == id)
                    .is_some()
            };
            let mut steps = steps(tools);
            steps.retain(is_next);
            places.push((Spot::new(Some("capabilities"), name), steps));
        }
        places
    }
}

/// The generation whose forms a card should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    V0,
    V1,
}

impl Generation {
    /// The generation of a card; `None` if it is of both, or unclear.
    pub(super) fn of(subject: &Subject<'_>) -> Option<Self> {
        match subject.parsed.family {
            Family::V0_1 | Family::V0_2 | Family::V0_3 | Family::Undated | Family::Snake0 => {
                Some(Generation::V0)
            }
            Family::V1_0 | Family::Snake1 => Some(Generation::V1),
            Family::Dual
            | Family::OtherInterfaces
            | Family::Flat1
            | Family::NoAddress
            | Family::Nested => None,
        }
    }
}

fn nest(parsed: &Parsed, document: &Value) -> Option<&'static str> {
    if parsed.family != Family::Nested || document.get("name").is_some_and(|name| !name.is_null()) {
        return None;
    }
    let named = |nest: &&str| {
        document
            .get(nest)
            .and_then(|card| card.get("name"))
            .is_some()
    };
    NESTS.into_iter().find(named)
}

/// The path to each element of a list or an object that is read as a skill.
fn steps(skills: &Value) -> Vec<Step> {
    match skills {
        Value::Array(list) => {
            let numbered = list.iter().take(MAX_LIST).enumerate();
            let read = numbered.filter(|(_, skill)| is_read(skill));
            read.map(|(index, _)| Step::Index(index)).collect()
        }
        // In an object of lists, a step into the object itself is not a skill.
        Value::Object(named) if !named.values().any(Value::is_array) => {
            let names = named.keys().take(MAX_LIST);
            names.map(|name| Step::Name(name.clone())).collect()
        }
        _ => Vec::new(),
    }
}

fn is_read(skill: &Value) -> bool {
    let told = |value: &Value| match value {
        Value::String(text) => !text.trim().is_empty(),
        other => other.is_number(),
    };
    match skill {
        Value::String(_) => told(skill),
        Value::Object(_) => ["id", "name", "className", "categoryName"]
            .iter()
            .any(|name| member(skill, name).is_some_and(told)),
        _ => false,
    }
}

/// The address as a URL. A gRPC address may be a bare `host:port`.
fn address(interface: &Interface) -> Option<Url> {
    let text = interface.url.as_str();
    if text.len() > Length::Address.limit() {
        return None;
    }
    if interface.binding == "GRPC" && !text.contains("://") {
        return Url::parse(&format!("https://{text}")).ok();
    }
    Url::parse(text).ok().filter(Url::has_host)
}

/// A member in camelCase or `snake_case`; null counts as absent.
pub(super) fn member<'v>(object: &'v Value, name: &str) -> Option<&'v Value> {
    spelt(object, name).map(|(_, value)| value)
}

/// A member in camelCase or `snake_case`, with the spelling found.
fn spelt<'v>(object: &'v Value, name: &str) -> Option<(&'v str, &'v Value)> {
    let members = object.as_object()?;
    let there = |(spelling, value): (&'v String, &'v Value)| {
        (!value.is_null()).then_some((spelling.as_str(), value))
    };
    members.get_key_value(name).and_then(there).or_else(|| {
        members
            .iter()
            .filter(|(spelling, _)| spelling.contains('_') && is_spelling(spelling, name))
            .find_map(there)
    })
}
