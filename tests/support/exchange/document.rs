//! Checks of exchanges against the `OpenAPI` document.
//!
//! A response must be documented for its operation: its status, media type and headers, and every member of its body.
//! The document must allow a request with a successful response, and must forbid one that is rejected as malformed
//! (400), as far as a schema can express that. The exceptions are listed in [`BEYOND`].

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use a2a_registry_http::routes::openapi::default_openapi_text;
use jsonschema::Validator;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::schemas::{Schemas, Strictness};
use super::{ObservedRequest, ObservedResponse};

/// Requests that are rejected although their schema allows them: the operation (`*`: any), the parameter or member,
/// and the rule that no schema can express.
const BEYOND: &[(&str, &str, &str)] = &[
    (
        "*",
        "",
        "a rule about several members, or text that is not UTF-8 or contains U+0000",
    ),
    ("*", "/page_token", "whether the registry has issued it"),
    ("*", "/subject", "a rule about several members"),
    ("*", "/questions/*", "a rule about several members"),
    ("*", "/questions/*/subject", "a rule about several members"),
    (
        "policies_test",
        "/cases/*/at",
        "whether the year has this day",
    ),
    (
        "*",
        "/Subject-Authorization",
        "headers of requests are not compared with the document",
    ),
    (
        "event_list",
        "/after",
        "whether this event was lost in a restore",
    ),
    (
        "event_list",
        "/Last-Event-ID",
        "whether this event was lost in a restore",
    ),
    (
        "agent_search",
        "/facets",
        "names may be joined by commas, and their number is configured",
    ),
    ("agent_search", "/fields", "names may be joined by commas"),
    (
        "agent_search",
        "/collection",
        "whether the caller sees such a collection",
    ),
    (
        "agent_patch",
        "/groups",
        "only a restricted agent is shown to groups, and to none that the configuration leaves out",
    ),
    (
        "collection_put",
        "/audience",
        "whether the configuration leaves out a group",
    ),
    ("saved_search_put", "/query", "whether it is a search"),
    (
        "hook_create",
        "/url",
        "whether the guard permits the target",
    ),
    (
        "hook_create",
        "/filter",
        "whether the filter selects too many agents",
    ),
    (
        "hook_create",
        "/filter/agents",
        "whether the caller sees such an agent",
    ),
    (
        "hook_create",
        "/filter/collections",
        "whether the caller sees such a collection",
    ),
    (
        "hook_create",
        "/filter/search",
        "whether the caller has such a saved search, and no other filter is given",
    ),
    (
        "hook_confirm",
        "/challenge",
        "whether it is the challenge of the hook",
    ),
    (
        "collection_put",
        "/filter",
        "whether these filters and values exist",
    ),
    ("domain_register", "/domain", "whether it is a domain name"),
    ("domain_register", "/card_url", "whether it is a URL"),
    (
        "agent_deprecate",
        "/replacement",
        "whether this agent exists",
    ),
    ("agent_deprecate", "/sunset", "whether it is in the future"),
    ("domain_vouch", "/account", "whether this account exists"),
    ("domain_transfer", "/account", "whether this account exists"),
    ("owner_vouch_set", "/account", "whether this account exists"),
    (
        "source_credential_set",
        "/name",
        "whether the kind has a name, and what it may contain",
    ),
    (
        "source_credential_set",
        "/secret",
        "what a secret of this kind may contain",
    ),
    (
        "source_credential_set",
        "/token_url",
        "whether the client secret of this source may be sent there",
    ),
    (
        "source_credential_set",
        "/scope",
        "whether the kind has a scope, and what it may contain",
    ),
    (
        "domain_patch",
        "/contact",
        "whether it is a `mailto:` or `https:` URL",
    ),
    ("review_patch", "/due", "whether the calendar has this day"),
    (
        "policies_put",
        "/policies/*/text",
        "whether it is a policy that the schema allows",
    ),
    (
        "policy_preview_start",
        "/policies/*/text",
        "whether it is a policy that the schema allows",
    ),
    (
        "policies_test",
        "/policies/*/text",
        "whether it is a policy that the schema allows",
    ),
    (
        "policies_test",
        "/cases/*/resource",
        "whether this agent exists",
    ),
    (
        "waiver_grant",
        "/policy",
        "whether the newest set has a policy that forbids with this identifier",
    ),
    (
        "token_create",
        "/role",
        "it is required if the account is new",
    ),
];

/// The document, compiled for checks.
pub struct ApiDocument {
    paths: Vec<PathPattern>,
    json: Value,
}

/// One documented path.
struct PathPattern {
    template: String,
    literal_length: usize,
    operations: BTreeMap<String, DocumentedOperation>,
}

struct DocumentedOperation {
    id: String,
    parameters: Vec<DocumentedParameter>,
    /// Whether a body is required, and its schema by media type.
    body: Option<(bool, Arc<Validator>)>,
    responses: BTreeMap<u16, DocumentedResponse>,
}

struct DocumentedParameter {
    name: String,
    location: String,
    required: bool,
    schema: Value,
    validator: Arc<Validator>,
}

struct DocumentedResponse {
    headers: Vec<String>,
    content: BTreeMap<String, Option<Arc<Validator>>>,
}

/// Result of a check of an exchange.
#[derive(Debug, Default)]
pub struct ExchangeCheck {
    /// The operation, if the request belongs to one.
    pub operation: Option<String>,
    /// Violations of the document, one sentence each.
    pub violations: Vec<String>,
}

impl ApiDocument {
    /// The document of the registry under test.
    pub fn current() -> &'static Self {
        static DOCUMENT: LazyLock<ApiDocument> =
            LazyLock::new(|| ApiDocument::new(&default_openapi_text()));
        &DOCUMENT
    }

    /// Compiles a document from its text.
    pub fn new(text: &str) -> Self {
        let json: Value = serde_json::from_str(text).unwrap();
        let schemas = Schemas::from_document(&json);
        let mut paths: Vec<PathPattern> = json["paths"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(template, item)| PathPattern {
                literal_length: template.split(['{', '}']).step_by(2).map(str::len).sum(),
                template: template.clone(),
                operations: item
                    .as_object()
                    .unwrap()
                    .iter()
                    .map(|(method, operation)| {
                        let operation = DocumentedOperation::new(&json, &schemas, operation);
                        (method.to_ascii_uppercase(), operation)
                    })
                    .collect(),
            })
            .collect();
        paths.sort_by_key(|pattern| std::cmp::Reverse(pattern.literal_length));
        Self { paths, json }
    }

    /// The document itself.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// A validator for values of a schema that allows no members other than those it names.
    pub fn validator(&self, schema: &Value) -> Arc<Validator> {
        Schemas::from_document(&self.json).validator(schema, Strictness::Closed)
    }

    /// Checks an event of a stream against the document, whose media types do not describe events.
    ///
    /// # Panics
    ///
    /// If the event is not as documented.
    pub fn check_event(&self, event: &Value) {
        static EVENT: LazyLock<Arc<Validator>> = LazyLock::new(|| {
            let schema = json!({"$ref": "#/components/schemas/Event"});
            ApiDocument::current().validator(&schema)
        });
        let wrong = validation_errors(&EVENT, event);
        assert!(wrong.is_empty(), "{event} is not as documented: {wrong:?}");
    }

    /// All operations with their documented statuses.
    pub fn operations(&self) -> impl Iterator<Item = (&str, Vec<u16>)> {
        let operations = self.paths.iter().flat_map(|path| path.operations.values());
        operations.map(|one| (one.id.as_str(), one.responses.keys().copied().collect()))
    }

    /// Checks an exchange against the document.
    pub fn check_exchange(
        &self,
        request: &ObservedRequest,
        answer: &ObservedResponse,
    ) -> ExchangeCheck {
        let (path, query) = request
            .target
            .split_once('?')
            .unwrap_or((&request.target, ""));
        let mut check = ExchangeCheck::default();
        if request.method == "OPTIONS" {
            return check;
        }
        let found = self
            .paths
            .iter()
            .find_map(|pattern| Some((pattern, pattern.match_path(path)?)));
        let success = answer.status < 400;
        let Some((pattern, parts)) = found else {
            if success && path.starts_with("/v1/") {
                check.violations.push("no such path is documented".into());
            }
            return check.with_context(request, answer);
        };
        let method = match request.method.as_str() {
            "HEAD" => "GET",
            method => method,
        };
        let Some(operation) = pattern.operations.get(method) else {
            if success {
                check.violations.push("no such method is documented".into());
            }
            return check.with_context(request, answer);
        };
        check.operation = Some(operation.id.clone());
        operation.check_response(request, answer, &mut check.violations);
        let mut forbidden = operation.parameter_violations(&parts, query);
        forbidden.extend(operation.body_violations(request));
        if success && !forbidden.is_empty() {
            check.violations.push(format!(
                "what was asked is forbidden by the document: {}",
                forbidden.join("; ")
            ));
        }
        if answer.status == 400 && forbidden.is_empty() {
            check
                .violations
                .extend(operation.unexplained_rejection(answer));
        }
        check.with_context(request, answer)
    }
}

impl ExchangeCheck {
    fn with_context(mut self, request: &ObservedRequest, answer: &ObservedResponse) -> Self {
        let text = |body: &Option<Vec<u8>>| {
            let text = String::from_utf8_lossy(body.as_deref().unwrap_or_default()).into_owned();
            text.chars().take(600).collect::<String>()
        };
        for wrong in &mut self.violations {
            *wrong = format!(
                "{} {} {}\n   answered {} {}\n   {wrong}",
                request.method,
                request.target,
                text(&request.body),
                answer.status,
                text(&answer.body)
            );
        }
        self
    }
}

impl PathPattern {
    /// Matches a raw path with the template, and returns the values of its parameters by name.
    fn match_path(&self, path: &str) -> Option<Vec<(String, String)>> {
        let wanted: Vec<&str> = self.template.split('/').collect();
        let given: Vec<&str> = path.split('/').collect();
        if wanted.len() != given.len() {
            return None;
        }
        let mut parts = Vec::new();
        for (wanted, given) in wanted.iter().zip(given) {
            let Some((prefix, rest)) = wanted.split_once('{') else {
                if *wanted == given {
                    continue;
                }
                return None;
            };
            let (name, suffix) = rest.split_once('}').unwrap();
            let part = given.strip_prefix(prefix)?.strip_suffix(suffix)?;
            if part.is_empty() {
                return None;
            }
            let part = percent_decode_str(part).decode_utf8_lossy().into_owned();
            parts.push((name.to_owned(), part));
        }
        Some(parts)
    }
}

impl DocumentedOperation {
    fn new(whole: &Value, schemas: &Schemas, operation: &Value) -> Self {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let body = operation.get("requestBody").map(|body| {
            let content = &body["content"]["application/json"]["schema"];
            let required = body["required"] == true;
            (required, schemas.validator(content, Strictness::AsWritten))
        });
        let answers = operation["responses"].as_object().unwrap().iter();
        Self {
            id: operation["operationId"].as_str().unwrap().to_owned(),
            parameters: parameters
                .map(|parameter| DocumentedParameter {
                    name: parameter["name"].as_str().unwrap().to_owned(),
                    location: parameter["in"].as_str().unwrap().to_owned(),
                    required: parameter["required"] == true,
                    schema: parameter["schema"].clone(),
                    validator: schemas.validator(&parameter["schema"], Strictness::AsWritten),
                })
                .collect(),
            body,
            responses: answers
                .map(|(status, response)| {
                    let response = resolve_reference(whole, response);
                    (
                        status.parse().unwrap(),
                        DocumentedResponse::new(schemas, response),
                    )
                })
                .collect(),
        }
    }

    fn check_response(
        &self,
        request: &ObservedRequest,
        answer: &ObservedResponse,
        wrong: &mut Vec<String>,
    ) {
        let Some(documented) = self.responses.get(&answer.status) else {
            wrong.push(format!("{} documents no such status", self.id));
            return;
        };
        for header in &documented.headers {
            if answer.header(&header.to_ascii_lowercase()).is_none() {
                wrong.push(format!("the header {header} is missing"));
            }
        }
        let empty = answer.body.as_ref().is_none_or(Vec::is_empty);
        let media_type = answer.media_type();
        let Some(media_type) = media_type else {
            if !empty || !(documented.content.is_empty() || request.method == "HEAD") {
                wrong.push("there is no media type".into());
            }
            return;
        };
        let Some(validator) = documented.content.get(&media_type) else {
            wrong.push(format!("{media_type} is not documented for it"));
            return;
        };
        let (Some(validator), Some(body)) = (validator, &answer.body) else {
            return;
        };
        if empty && request.method == "HEAD" {
            return;
        }
        match serde_json::from_slice::<Value>(body) {
            Err(error) => wrong.push(format!("the body is no JSON: {error}")),
            Ok(value) => wrong.extend(validation_errors(validator, &value)),
        }
    }

    fn parameter_violations(&self, parts: &[(String, String)], query: &str) -> Vec<String> {
        let mut given: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
        for (name, value) in parts {
            given.insert(("path", name.clone()), vec![value.clone()]);
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plain = |text: &str| {
                let text = text.replace('+', " ");
                percent_decode_str(&text).decode_utf8_lossy().into_owned()
            };
            given
                .entry(("query", plain(name)))
                .or_default()
                .push(plain(value));
        }
        let mut forbidden = Vec::new();
        // An operation without query parameters ignores the query.
        let reads_query = self.parameters.iter().any(|one| one.location == "query");
        for ((place, name), values) in &given {
            let known = self
                .parameters
                .iter()
                .find(|one| one.location == *place && one.name == *name);
            match known {
                Some(parameter) => forbidden.extend(parameter.violations(values)),
                None if *place == "query" && !reads_query => {}
                None => forbidden.push(format!("there is no parameter {name}")),
            }
        }
        for parameter in self.parameters.iter().filter(|one| one.required) {
            let place = parameter.location.as_str();
            if !given.contains_key(&(place, parameter.name.clone())) {
                forbidden.push(format!("the parameter {} is missing", parameter.name));
            }
        }
        forbidden
    }

    fn body_violations(&self, request: &ObservedRequest) -> Vec<String> {
        let sent = request.body.as_ref().filter(|body| !body.is_empty());
        match (&self.body, sent) {
            (Some((true, _)), None) => vec!["a body is needed".into()],
            (Some((_, validator)), Some(body)) => match serde_json::from_slice::<Value>(body) {
                Err(error) => vec![format!("the body is no JSON: {error}")],
                Ok(value) => validation_errors(validator, &value),
            },
            (Some((false, _)), None) | (None, _) => Vec::new(),
        }
    }

    /// The reason why a request was rejected as malformed, if the document allows the request.
    fn unexplained_rejection(&self, answer: &ObservedResponse) -> Option<String> {
        let body = answer.body.as_deref().filter(|body| !body.is_empty())?;
        let problem: Value = serde_json::from_slice(body).ok()?;
        let places: Vec<&str> = problem["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|error| error["pointer"].as_str())
            .collect();
        let places = if places.is_empty() { vec![""] } else { places };
        // Indexes in a list do not matter.
        let general = |place: &str| {
            let parts = place.split('/').map(|part| match part.parse::<usize>() {
                Ok(_) => "*",
                Err(_) => part,
            });
            parts.collect::<Vec<_>>().join("/")
        };
        let unsaid = |place: &&str| {
            let place = general(place);
            !BEYOND.iter().any(|(operation, pointer, _)| {
                (*operation == "*" || *operation == self.id) && *pointer == place
            })
        };
        let unsaid: Vec<&str> = places.into_iter().filter(unsaid).collect();
        (!unsaid.is_empty())
            .then(|| format!("the document allows it, and it is refused at {unsaid:?}"))
    }
}

impl DocumentedParameter {
    fn violations(&self, values: &[String]) -> Vec<String> {
        let typed = |schema: &Value, text: &String| {
            let is = |name: &str| {
                schema["type"] == name
                    || schema["type"]
                        .as_array()
                        .is_some_and(|types| types.contains(&json!(name)))
            };
            if is("integer")
                && let Ok(number) = text.parse::<i64>()
            {
                return json!(number);
            }
            match text.as_str() {
                "true" if is("boolean") => json!(true),
                "false" if is("boolean") => json!(false),
                text => json!(text),
            }
        };
        let value = match values {
            values if self.schema["type"] == "array" => {
                let items = &self.schema["items"];
                values.iter().map(|text| typed(items, text)).collect()
            }
            [one] => typed(&self.schema, one),
            _ => return vec![format!("{} is given more than once", self.name)],
        };
        let errors = validation_errors(&self.validator, &value).into_iter();
        errors
            .map(|error| format!("{}: {error}", self.name))
            .collect()
    }
}

impl DocumentedResponse {
    fn new(schemas: &Schemas, response: &Value) -> Self {
        let content = response["content"].as_object();
        let headers = response["headers"].as_object();
        Self {
            // A 503 has `Retry-After` only if the time is known.
            headers: headers
                .into_iter()
                .flat_map(Map::keys)
                .filter(|name| ["ETag", "WWW-Authenticate", "Allow"].contains(&name.as_str()))
                .cloned()
                .collect(),
            content: content
                .into_iter()
                .flatten()
                .map(|(media_type, content)| {
                    let json = media_type.ends_with("json");
                    let validator =
                        json.then(|| schemas.validator(&content["schema"], Strictness::Closed));
                    (media_type.clone(), validator)
                })
                .collect(),
        }
    }
}

fn validation_errors(validator: &Validator, value: &Value) -> Vec<String> {
    validator
        .iter_errors(value)
        .map(|error| format!("at `{}`: {error}", error.instance_path()))
        .collect()
}

fn resolve_reference<'a>(whole: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(target) => whole.pointer(target.trim_start_matches('#')).unwrap(),
        None => value,
    }
}
