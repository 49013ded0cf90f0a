//! Examples of the document from one file, by schema and by parameter name.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{Content, OpenApi, RefOr, Schema};

use crate::routes::openapi::operations::operations_mut;

/// Examples file. Tests validate it against the schemas.
const EXAMPLES_JSON: &str = include_str!("../../../../../openapi/examples.json");

#[derive(Debug, Default, Deserialize)]
struct DocumentExamples {
    path: BTreeMap<String, Value>,
    query: BTreeMap<String, Value>,
    schemas: BTreeMap<String, Value>,
}

impl DocumentExamples {
    fn for_parameter(&self, parameter: &Parameter) -> Option<&Value> {
        let examples_by_name = match parameter.parameter_in {
            ParameterIn::Path => &self.path,
            ParameterIn::Query => &self.query,
            _ => return None,
        };
        let takes_list = matches!(parameter.schema, Some(RefOr::T(Schema::Array(_))));
        let example = examples_by_name.get(&parameter.name);
        // One name may take one value here and several there.
        example.filter(|example| takes_list || !example.is_array())
    }
}

pub fn add_openapi_examples(document: &mut OpenApi) {
    let examples: DocumentExamples = serde_json::from_str(EXAMPLES_JSON).unwrap_or_default();
    for item in document.paths.paths.values_mut() {
        for operation in operations_mut(item) {
            for parameter in operation.parameters.iter_mut().flatten() {
                if let RefOr::T(parameter) = parameter
                    && let Some(example) = examples.for_parameter(parameter)
                {
                    *parameter = ParameterBuilder::from(parameter.clone())
                        .example(Some(example.clone()))
                        .build();
                }
            }
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                add_content_examples(body.content.values_mut(), &examples);
            }
            for response in operation.responses.responses.values_mut() {
                if let RefOr::T(response) = response {
                    add_content_examples(response.content.values_mut(), &examples);
                }
            }
        }
    }
}

fn add_content_examples<'a>(
    contents: impl Iterator<Item = &'a mut RefOr<Content>>,
    examples: &DocumentExamples,
) {
    for content in contents {
        if let RefOr::T(content) = content
            && content.example.is_none()
            && let Some(RefOr::Ref(reference)) = &content.schema
        {
            let name = reference
                .ref_location
                .rsplit('/')
                .next()
                .unwrap_or_default();
            if let Some(example) = examples.schemas.get(name) {
                content.example = Some(example.clone());
            }
        }
    }
}
