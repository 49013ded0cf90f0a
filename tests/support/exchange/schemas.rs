//! The schemas of the `OpenAPI` document as JSON Schema (2020-12).

use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// The schemas of the components as definitions, in three forms, which are added to every compiled schema.
pub struct Schemas(Map<String, Value>);

/// Strictness of a schema about members that it does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As written.
    Plain,
    /// Closed inside: unnamed members are allowed at the top, but not in nested values.
    Part,
    /// Closed: unnamed members are not allowed.
    Closed,
}

impl Form {
    fn definition(self, name: &str) -> String {
        match self {
            Self::Plain => name.to_owned(),
            Self::Part => format!("{name}.part"),
            Self::Closed => format!("{name}.closed"),
        }
    }

    /// The form of the nested schemas of a schema in this form.
    fn below(self) -> Self {
        match self {
            Self::Plain => Self::Plain,
            Self::Part | Self::Closed => Self::Closed,
        }
    }

    /// The form of the parts (`allOf` and the like) of a schema in this form.
    fn joined(self) -> Self {
        match self {
            Self::Plain => Self::Plain,
            Self::Part | Self::Closed => Self::Part,
        }
    }
}

impl Schemas {
    /// The schemas of a document.
    pub fn of(whole: &Value) -> Self {
        let mut definitions = Map::new();
        for (name, schema) in whole["components"]["schemas"].as_object().unwrap() {
            for form in [Form::Plain, Form::Part, Form::Closed] {
                definitions.insert(form.definition(name), formed(schema, form));
            }
        }
        Self(definitions)
    }

    /// A validator for values of a schema in this form.
    pub fn validator(&self, schema: &Value, form: Form) -> Validator {
        let mut schema = formed(schema, form);
        if let Some(members) = schema.as_object_mut() {
            members.insert("$defs".into(), Value::Object(self.0.clone()));
        }
        jsonschema::draft202012::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap()
    }
}

/// Converts a schema to this form.
fn formed(schema: &Value, form: Form) -> Value {
    let Value::Object(members) = schema else {
        return schema.clone();
    };
    let mut formed_members = Map::new();
    for (name, member) in members {
        let each = |form| match member {
            Value::Array(items) => items.iter().map(|item| formed(item, form)).collect(),
            Value::Object(items) => Value::Object(
                items
                    .iter()
                    .map(|(name, item)| (name.clone(), formed(item, form)))
                    .collect(),
            ),
            other => other.clone(),
        };
        let member = match name.as_str() {
            "$ref" => {
                let target = member.as_str().unwrap();
                let name = target.strip_prefix("#/components/schemas/").unwrap();
                json!(format!("#/$defs/{}", form.definition(name)))
            }
            "properties" => each(form.below()),
            "oneOf" | "anyOf" => each(form),
            "allOf" => each(form.joined()),
            "items" | "additionalProperties" => formed(member, form.below()),
            _ => member.clone(),
        };
        formed_members.insert(name.clone(), member);
    }
    let names_members = members.contains_key("properties") || members.contains_key("allOf");
    if form == Form::Closed && names_members && !members.contains_key("additionalProperties") {
        formed_members.insert("unevaluatedProperties".into(), json!(false));
    }
    Value::Object(formed_members)
}
