//! Members of an agent's documents, whose names some agents write in `snake_case`.

use a2a_card::to_snake_case;
use serde_json::Value;

/// A member by its name, or by that name in `snake_case`, as agents that follow the a2a-protocol skill write it.
pub(super) fn camel_or_snake_member<'a>(holder: &'a Value, name: &str) -> Option<&'a Value> {
    let members = holder.as_object()?;
    let in_snake_case = || members.get(&to_snake_case(name));
    members.get(name).or_else(in_snake_case)
}

pub(super) fn string_member(holder: &Value, name: &str) -> Option<String> {
    camel_or_snake_member(holder, name)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}
