//! Projection of a card to the part that a signed form covers, with a list of the rest.

use serde_json::{Map, Value};

use super::schema::{FieldPresence, SchemaField, SchemaFieldType};
use super::uncovered_collector::UncoveredMemberCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::to_snake_case;

/// Error for a card that does not conform to the form's schema, so that it cannot have been signed in that form: a
/// member of another type, one in both spellings, two alternatives at once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SchemaMismatch;

pub(super) struct PayloadProjector<'l> {
    /// Whether empty texts, lists and objects are dropped at every level, even in free JSON, as the SDKs do.
    pub(super) drop_empty: bool,
    pub(super) uncovered: &'l mut UncoveredMemberCollector,
}

impl PayloadProjector<'_> {
    /// The covered members of an object; `None` if none is left.
    pub(super) fn project_message(
        &mut self,
        map: &Map<String, Value>,
        fields: &[SchemaField],
        pointer: &JsonPointer<'_>,
    ) -> Result<Option<Value>, SchemaMismatch> {
        let mut covered_members = Map::new();
        let mut used_names: Vec<&str> = Vec::new();
        let mut variant_count = 0;
        for (name, value) in map {
            let pointer = pointer.member(name);
            let Some(field) = find_schema_field(fields, name) else {
                self.uncovered.add(&pointer, false);
                continue;
            };
            if used_names.contains(&field.name) {
                return Err(SchemaMismatch);
            }
            used_names.push(field.name);
            if value.is_null() {
                self.uncovered.add(&pointer, true);
                continue;
            }
            variant_count += usize::from(field.presence == FieldPresence::Variant);
            if variant_count > 1 {
                return Err(SchemaMismatch);
            }
            let list_mark = self.uncovered.len();
            match self.project_value(value, &field.field_type, &pointer)? {
                Some(covered) if is_in_payload(&covered, field.presence) => {
                    covered_members.insert(field.name.to_owned(), covered);
                }
                _ => self.uncovered.add_replacing_parts(
                    list_mark,
                    &pointer,
                    equals_absence(value, field.presence),
                ),
            }
        }
        Ok(self.object_unless_empty(covered_members))
    }

    /// The covered part of a value of a known type; `None` if nothing is left of it.
    fn project_value(
        &mut self,
        value: &Value,
        field_type: &SchemaFieldType,
        pointer: &JsonPointer<'_>,
    ) -> Result<Option<Value>, SchemaMismatch> {
        Ok(match (field_type, value) {
            (SchemaFieldType::Text, Value::String(text)) => {
                (!self.drop_empty || !text.is_empty()).then(|| value.clone())
            }
            (SchemaFieldType::Bool, Value::Bool(_)) => Some(value.clone()),
            (SchemaFieldType::AnyObject, Value::Object(_)) if self.drop_empty => {
                self.remove_empty_values(value, pointer)
            }
            (SchemaFieldType::AnyObject, Value::Object(_)) => Some(value.clone()),
            (SchemaFieldType::Message(fields), Value::Object(map)) => {
                self.project_message(map, fields, pointer)?
            }
            (SchemaFieldType::List(kind), Value::Array(list)) => {
                let mut covered_elements = Vec::new();
                for (index, element) in list.iter().enumerate() {
                    let pointer = pointer.element(index);
                    let list_mark = self.uncovered.len();
                    match self.project_value(element, kind, &pointer)? {
                        Some(covered) => covered_elements.push(covered),
                        None => self
                            .uncovered
                            .add_replacing_parts(list_mark, &pointer, false),
                    }
                }
                (!self.drop_empty || !covered_elements.is_empty())
                    .then_some(Value::Array(covered_elements))
            }
            (SchemaFieldType::Map(kind), Value::Object(map)) => {
                let mut covered_entries = Map::new();
                for (name, entry) in map {
                    let pointer = pointer.member(name);
                    let list_mark = self.uncovered.len();
                    match self.project_value(entry, kind, &pointer)? {
                        Some(covered) => {
                            covered_entries.insert(name.clone(), covered);
                        }
                        None => self
                            .uncovered
                            .add_replacing_parts(list_mark, &pointer, false),
                    }
                }
                self.object_unless_empty(covered_entries)
            }
            (SchemaFieldType::Typed(types), Value::Object(map)) => {
                let type_name = map
                    .get("type")
                    .and_then(Value::as_str)
                    .ok_or(SchemaMismatch)?;
                let (_, fields) = types
                    .iter()
                    .find(|(name, _)| *name == type_name)
                    .ok_or(SchemaMismatch)?;
                let mut rest = map.clone();
                rest.shift_remove("type");
                self.uncovered.add(&pointer.member("type"), true);
                self.project_message(&rest, fields, pointer)?
            }
            _ => return Err(SchemaMismatch),
        })
    }

    /// Free JSON without null, empty texts, empty lists and empty objects, at any depth.
    fn remove_empty_values(&mut self, value: &Value, pointer: &JsonPointer<'_>) -> Option<Value> {
        match value {
            Value::Null => None,
            Value::String(text) if text.is_empty() => None,
            Value::Array(list) => {
                let mut cleaned_elements = Vec::new();
                for (index, element) in list.iter().enumerate() {
                    let pointer = pointer.element(index);
                    let list_mark = self.uncovered.len();
                    match self.remove_empty_values(element, &pointer) {
                        Some(element) => cleaned_elements.push(element),
                        None => self
                            .uncovered
                            .add_replacing_parts(list_mark, &pointer, false),
                    }
                }
                (!cleaned_elements.is_empty()).then_some(Value::Array(cleaned_elements))
            }
            Value::Object(map) => {
                let mut cleaned_members = Map::new();
                for (name, entry) in map {
                    let pointer = pointer.member(name);
                    let list_mark = self.uncovered.len();
                    match self.remove_empty_values(entry, &pointer) {
                        Some(entry) => {
                            cleaned_members.insert(name.clone(), entry);
                        }
                        None => self
                            .uncovered
                            .add_replacing_parts(list_mark, &pointer, false),
                    }
                }
                self.object_unless_empty(cleaned_members)
            }
            leaf => Some(leaf.clone()),
        }
    }

    /// The object; in a form without empty values, `None` if it has no members.
    fn object_unless_empty(&self, map: Map<String, Value>) -> Option<Value> {
        (!self.drop_empty || !map.is_empty()).then_some(Value::Object(map))
    }
}

/// The field of that name, in camelCase or `snake_case`: the SDKs read both.
fn find_schema_field<'m>(fields: &'m [SchemaField], name: &str) -> Option<&'m SchemaField> {
    fields.iter().find(|field| {
        field.name == name || (name.contains('_') && to_snake_case(field.name) == name)
    })
}

fn is_in_payload(value: &Value, presence: FieldPresence) -> bool {
    match presence {
        FieldPresence::Required | FieldPresence::Optional | FieldPresence::Variant => true,
        FieldPresence::Implicit => !is_default_value(value),
        FieldPresence::Default(text) => value.as_str() != Some(text),
    }
}

/// Whether the member means the same as its absence.
fn equals_absence(value: &Value, presence: FieldPresence) -> bool {
    match presence {
        FieldPresence::Variant => false,
        FieldPresence::Default(text) => value.as_str() == Some(text) || is_default_value(value),
        _ => is_default_value(value),
    }
}

fn is_default_value(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}
