//! Reduces a card to the part that a signed form covers, and lists the rest.

use serde_json::{Map, Value};

use super::schema::{Kind, Member, Presence};
use super::uncovered_list::UncoveredList;
use crate::member::snake_case;
use crate::pointer::Pointer;

/// The card does not conform to the form's schema, so it cannot have been signed in that form: a member of another
/// type, one in both spellings, two alternatives at once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unfit;

pub(super) struct Projection<'l> {
    /// Whether empty texts, lists and objects are dropped at every level, even in free JSON, as the SDKs do.
    pub(super) cleaned: bool,
    pub(super) left: &'l mut UncoveredList,
}

impl Projection<'_> {
    /// The covered members of an object; `None` if none is left.
    pub(super) fn message(
        &mut self,
        map: &Map<String, Value>,
        members: &[Member],
        at: &Pointer<'_>,
    ) -> Result<Option<Value>, Unfit> {
        let mut kept = Map::new();
        let mut seen: Vec<&str> = Vec::new();
        let mut variants = 0;
        for (name, value) in map {
            let at = at.name(name);
            let Some(member) = named(members, name) else {
                self.left.add(&at, false);
                continue;
            };
            if seen.contains(&member.name) {
                return Err(Unfit);
            }
            seen.push(member.name);
            if value.is_null() {
                self.left.add(&at, true);
                continue;
            }
            variants += usize::from(member.presence == Presence::Variant);
            if variants > 1 {
                return Err(Unfit);
            }
            let mark = self.left.mark();
            match self.value(value, &member.kind, &at)? {
                Some(covered) if stays(&covered, member.presence) => {
                    kept.insert(member.name.to_owned(), covered);
                }
                _ => self
                    .left
                    .whole(mark, &at, says_nothing(value, member.presence)),
            }
        }
        Ok(self.unless_empty(kept))
    }

    /// A value of a known kind; `None` if nothing is left of it.
    fn value(
        &mut self,
        value: &Value,
        kind: &Kind,
        at: &Pointer<'_>,
    ) -> Result<Option<Value>, Unfit> {
        Ok(match (kind, value) {
            (Kind::Text, Value::String(text)) => {
                (!self.cleaned || !text.is_empty()).then(|| value.clone())
            }
            (Kind::Flag, Value::Bool(_)) => Some(value.clone()),
            (Kind::Json, Value::Object(_)) if self.cleaned => self.clean(value, at),
            (Kind::Json, Value::Object(_)) => Some(value.clone()),
            (Kind::Message(members), Value::Object(map)) => self.message(map, members, at)?,
            (Kind::List(kind), Value::Array(list)) => {
                let mut kept = Vec::new();
                for (index, element) in list.iter().enumerate() {
                    let at = at.index(index);
                    let mark = self.left.mark();
                    match self.value(element, kind, &at)? {
                        Some(covered) => kept.push(covered),
                        None => self.left.whole(mark, &at, false),
                    }
                }
                (!self.cleaned || !kept.is_empty()).then_some(Value::Array(kept))
            }
            (Kind::Map(kind), Value::Object(map)) => {
                let mut kept = Map::new();
                for (name, entry) in map {
                    let at = at.name(name);
                    let mark = self.left.mark();
                    match self.value(entry, kind, &at)? {
                        Some(covered) => {
                            kept.insert(name.clone(), covered);
                        }
                        None => self.left.whole(mark, &at, false),
                    }
                }
                self.unless_empty(kept)
            }
            (Kind::Typed(types), Value::Object(map)) => {
                let chosen = map.get("type").and_then(Value::as_str).ok_or(Unfit)?;
                let (_, members) = types
                    .iter()
                    .find(|(name, _)| *name == chosen)
                    .ok_or(Unfit)?;
                let mut rest = map.clone();
                rest.shift_remove("type");
                self.left.add(&at.name("type"), true);
                self.message(&rest, members, at)?
            }
            _ => return Err(Unfit),
        })
    }

    /// Free JSON without null, empty texts, empty lists and empty objects, at any depth.
    fn clean(&mut self, value: &Value, at: &Pointer<'_>) -> Option<Value> {
        match value {
            Value::Null => None,
            Value::String(text) if text.is_empty() => None,
            Value::Array(list) => {
                let mut kept = Vec::new();
                for (index, element) in list.iter().enumerate() {
                    let at = at.index(index);
                    let mark = self.left.mark();
                    match self.clean(element, &at) {
                        Some(element) => kept.push(element),
                        None => self.left.whole(mark, &at, false),
                    }
                }
                (!kept.is_empty()).then_some(Value::Array(kept))
            }
            Value::Object(map) => {
                let mut kept = Map::new();
                for (name, entry) in map {
                    let at = at.name(name);
                    let mark = self.left.mark();
                    match self.clean(entry, &at) {
                        Some(entry) => {
                            kept.insert(name.clone(), entry);
                        }
                        None => self.left.whole(mark, &at, false),
                    }
                }
                self.unless_empty(kept)
            }
            leaf => Some(leaf.clone()),
        }
    }

    /// An object; in a cleaned form only with members.
    fn unless_empty(&self, map: Map<String, Value>) -> Option<Value> {
        (!self.cleaned || !map.is_empty()).then_some(Value::Object(map))
    }
}

/// The member of that name, in camelCase or `snake_case`: the SDKs read both.
fn named<'m>(members: &'m [Member], name: &str) -> Option<&'m Member> {
    members.iter().find(|member| {
        member.name == name || (name.contains('_') && snake_case(member.name) == name)
    })
}

fn stays(value: &Value, presence: Presence) -> bool {
    match presence {
        Presence::Required | Presence::Optional | Presence::Variant => true,
        Presence::Implicit => !is_default(value),
        Presence::Default(text) => value.as_str() != Some(text),
    }
}

/// Whether the member means the same as its absence.
fn says_nothing(value: &Value, presence: Presence) -> bool {
    match presence {
        Presence::Variant => false,
        Presence::Default(text) => value.as_str() == Some(text) || is_default(value),
        _ => is_default(value),
    }
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}
