//! Builder of objects without empty members, and the objects that are the same in 0.3 and 1.0.

use serde_json::{Map, Value};

use crate::{Extension, Provider, Skill};

#[derive(Debug, Default)]
pub(super) struct ObjectBuilder(Map<String, Value>);

impl ObjectBuilder {
    pub(super) fn with_member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub(super) fn with_text(self, name: &str, text: Option<&String>) -> Self {
        match text {
            Some(text) => self.with_member(name, text.as_str()),
            None => self,
        }
    }

    pub(super) fn with_object(self, name: &str, value: Option<ObjectBuilder>) -> Self {
        match value {
            Some(value) => self.with_member(name, value),
            None => self,
        }
    }

    /// Adds the flag if it is true.
    pub(super) fn with_flag(self, name: &str, flag: bool) -> Self {
        if flag {
            self.with_member(name, true)
        } else {
            self
        }
    }

    /// Adds the list unless it is empty.
    pub(super) fn with_list<T: Into<Value>>(
        self,
        name: &str,
        list: impl IntoIterator<Item = T>,
    ) -> Self {
        let list: Vec<Value> = list.into_iter().map(Into::into).collect();
        if list.is_empty() {
            self
        } else {
            self.with_member(name, list)
        }
    }

    /// Adds the object unless it is empty.
    pub(super) fn with_map<T: Into<Value>>(
        self,
        name: &str,
        members: impl IntoIterator<Item = (String, T)>,
    ) -> Self {
        let members: Map<String, Value> = members
            .into_iter()
            .map(|(name, value)| (name, value.into()))
            .collect();
        if members.is_empty() {
            self
        } else {
            self.with_member(name, members)
        }
    }

    pub(super) fn into_map(self) -> Map<String, Value> {
        self.0
    }
}

impl From<ObjectBuilder> for Value {
    fn from(object: ObjectBuilder) -> Value {
        Value::Object(object.0)
    }
}

pub(super) fn provider_object(provider: &Provider) -> ObjectBuilder {
    ObjectBuilder::default()
        .with_text("organization", provider.organization.as_ref())
        .with_text("url", provider.url.as_ref())
}

/// One extension. `required` is written even if it is false.
pub(super) fn extension_object(extension: &Extension) -> ObjectBuilder {
    let object = ObjectBuilder::default()
        .with_member("uri", extension.uri.as_str())
        .with_text("description", extension.description.as_ref())
        .with_member("required", extension.required);
    match &extension.params {
        Some(params) => object.with_member("params", params.clone()),
        None => object,
    }
}

pub(super) fn skill_object(skill: &Skill) -> ObjectBuilder {
    ObjectBuilder::default()
        .with_member("id", skill.id.as_str())
        .with_member("name", skill.name.as_str())
        .with_text("description", skill.description.as_ref())
        .with_member("tags", skill.tags.clone())
        .with_list("examples", skill.examples.clone())
        .with_list("inputModes", skill.input_modes.clone())
        .with_list("outputModes", skill.output_modes.clone())
}
