//! The schemas of the `OpenAPI` document as JSON Schema (2020-12).

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// Pointer to the definitions of a compiled schema.
const DEFINITIONS_PREFIX: &str = "#/$defs/";

/// The component schemas as definitions, once for each [`Strictness`]. A compiled schema gets those that it refers to.
pub struct Schemas {
    definitions: Map<String, Value>,
    /// Validators by the text of their schema; most error responses share one.
    compiled: RefCell<HashMap<String, Arc<Validator>>>,
}

/// Strictness of a schema about members that it does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// As written.
    AsWritten,
    /// Unnamed members are allowed at the top, but not in nested values.
    ClosedInside,
    /// Unnamed members are not allowed.
    Closed,
}

impl Strictness {
    fn definition_name(self, name: &str) -> String {
        match self {
            Self::AsWritten => name.to_owned(),
            Self::ClosedInside => format!("{name}.part"),
            Self::Closed => format!("{name}.closed"),
        }
    }

    /// The strictness of the nested schemas of a schema.
    fn for_nested(self) -> Self {
        match self {
            Self::AsWritten => Self::AsWritten,
            Self::ClosedInside | Self::Closed => Self::Closed,
        }
    }

    /// The strictness of the parts (`allOf` and the like) of a schema.
    fn for_all_of(self) -> Self {
        match self {
            Self::AsWritten => Self::AsWritten,
            Self::ClosedInside | Self::Closed => Self::ClosedInside,
        }
    }
}

impl Schemas {
    /// The schemas of a document.
    pub fn from_document(whole: &Value) -> Self {
        let mut definitions = Map::new();
        for (name, schema) in whole["components"]["schemas"].as_object().unwrap() {
            for form in [
                Strictness::AsWritten,
                Strictness::ClosedInside,
                Strictness::Closed,
            ] {
                definitions.insert(form.definition_name(name), apply_strictness(schema, form));
            }
        }
        Self {
            definitions,
            compiled: RefCell::default(),
        }
    }

    /// A validator for values of a schema with this strictness.
    pub fn validator(&self, schema: &Value, form: Strictness) -> Arc<Validator> {
        let mut schema = apply_strictness(schema, form);
        let text = schema.to_string();
        if let Some(known) = self.compiled.borrow().get(&text) {
            return Arc::clone(known);
        }
        let mut needed = Map::new();
        self.add_definitions(&schema, &mut needed);
        if let (Some(members), false) = (schema.as_object_mut(), needed.is_empty()) {
            members.insert("$defs".into(), Value::Object(needed));
        }
        let validator = jsonschema::draft202012::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        let validator = Arc::new(validator);
        let mut compiled = self.compiled.borrow_mut();
        compiled.insert(text, Arc::clone(&validator));
        validator
    }

    /// Adds the definitions that a schema refers to, directly or through other definitions.
    fn add_definitions(&self, schema: &Value, needed: &mut Map<String, Value>) {
        match schema {
            Value::Object(members) => {
                let target = members.get("$ref").and_then(Value::as_str);
                let name = target.and_then(|target| target.strip_prefix(DEFINITIONS_PREFIX));
                if let Some(name) = name
                    && !needed.contains_key(name)
                {
                    let definition = &self.definitions[name];
                    needed.insert(name.to_owned(), definition.clone());
                    self.add_definitions(definition, needed);
                }
                for member in members.values() {
                    self.add_definitions(member, needed);
                }
            }
            Value::Array(items) => items
                .iter()
                .for_each(|item| self.add_definitions(item, needed)),
            _ => {}
        }
    }
}

/// Rewrites a schema with this strictness.
fn apply_strictness(schema: &Value, form: Strictness) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let mut formed_members = Map::new();
    for (name, member) in members {
        let each = |form| match member {
            Value::Array(items) => items
                .iter()
                .map(|item| apply_strictness(item, form))
                .collect(),
            Value::Object(items) => Value::Object(
                items
                    .iter()
                    .map(|(name, item)| (name.clone(), apply_strictness(item, form)))
                    .collect(),
            ),
            other => other.clone(),
        };
        let member = match name.as_str() {
            "$ref" => {
                let target = member.as_str().unwrap();
                let name = target.strip_prefix("#/components/schemas/").unwrap();
                json!(format!(
                    "{DEFINITIONS_PREFIX}{}",
                    form.definition_name(name)
                ))
            }
            "properties" => each(form.for_nested()),
            "oneOf" | "anyOf" => each(form),
            "allOf" => each(form.for_all_of()),
            "items" | "additionalProperties" => apply_strictness(member, form.for_nested()),
            _ => member.clone(),
        };
        formed_members.insert(name.clone(), member);
    }
    let names_members = members.contains_key("properties") || members.contains_key("allOf");
    if form == Strictness::Closed && names_members && !members.contains_key("additionalProperties")
    {
        formed_members.insert("unevaluatedProperties".into(), json!(false));
    }
    Value::Object(formed_members)
}
