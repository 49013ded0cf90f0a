//! JSON schemas of arguments and results, in a form that all clients support.

use std::sync::Arc;

use rmcp::handler::server::common::{schema_for_output, schema_for_type};
use rmcp::model::JsonObject;
use rmcp::schemars::JsonSchema;
use serde_json::Value;

pub fn tool_input_schema<T: JsonSchema + 'static>() -> Arc<JsonObject> {
    let mut schema = schema_for_type::<T>().as_ref().clone();
    // The name and description of a Rust type are meaningless to clients.
    schema.remove("title");
    schema.remove("description");
    portable_schema(schema.into())
}

pub fn tool_output_schema<T: JsonSchema + 'static>() -> Arc<JsonObject> {
    portable_schema(schema_for_output::<T>().as_ref().clone().into())
}

pub(super) fn portable_schema(mut schema: Value) -> Arc<JsonObject> {
    make_schema_portable(&mut schema);
    match schema {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    }
}

/// Removes Rust-specific parts: number formats, which strict validators reject, and null defaults of arguments that
/// may be missing but not null. Also removes line breaks in descriptions.
fn make_schema_portable(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("type") {
                members.remove("format");
            }
            if members.get("default").is_some_and(Value::is_null) {
                members.remove("default");
            }
            if let Some(Value::String(description)) = members.get_mut("description") {
                *description = description.replace('\n', " ");
            }
            members.values_mut().for_each(make_schema_portable);
        }
        Value::Array(items) => items.iter_mut().for_each(make_schema_portable),
        _ => {}
    }
}
