//! Error responses that operations have in common, so that handlers do not repeat them in their annotations.
//!
//! The possible errors follow from the input of an operation: a path with an identifier, a query, a body, a token.
//! Handlers declare the errors of single operations (409, 422) and special reasons for common errors.

use std::collections::BTreeSet;

use actix_web::http::StatusCode;
use utoipa::ToSchema;
use utoipa::openapi::header::Header;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Content, ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder};

use crate::problems::problem::{PROBLEM_JSON, ProblemDocument};
use crate::problems::problem_kinds;
use crate::problems::protocol_errors::ProtocolErrorFormat;
use crate::routes::api::PROTOCOL_ERRORS;
use crate::routes::openapi::operations::operations_mut;

/// Adds the common error responses to every operation, each as a problem document.
pub fn add_error_responses(document: &mut OpenApi) {
    let patterns: BTreeSet<String> = document.paths.paths.keys().cloned().collect();
    let mut used_statuses = BTreeSet::new();
    for (path, item) in &mut document.paths.paths {
        if ProtocolErrorFormat::for_path(PROTOCOL_ERRORS, path).is_some() {
            // Handlers of this protocol declare their own errors.
            continue;
        }
        for operation in operations_mut(item) {
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                disallow_null_body(body);
            }
            for response in &mut operation.responses.responses {
                complete_error_response(response.0, response.1);
            }
            for status in operation_error_statuses(path, operation, &patterns) {
                used_statuses.insert(status);
                operation
                    .responses
                    .responses
                    .entry(status.as_str().to_owned())
                    .or_insert_with(|| Ref::from_response_name(error_response_name(status)).into());
            }
        }
    }
    let components = document.components.get_or_insert_default();
    for status in used_statuses {
        components.responses.insert(
            error_response_name(status),
            RefOr::T(openapi_error_response(status)),
        );
    }
}

fn operation_error_statuses(
    path: &str,
    operation: &Operation,
    patterns: &BTreeSet<String>,
) -> Vec<StatusCode> {
    let parameters = operation.parameters.as_deref().unwrap_or_default();
    let has_parameter = |place: ParameterIn| {
        let is = |one: &RefOr<Parameter>| matches!(one, RefOr::T(one) if one.parameter_in == place);
        parameters.iter().any(is)
    };
    let mut statuses = vec![
        StatusCode::NOT_ACCEPTABLE,
        // The client has too many unread response bytes, or too many searches are waiting.
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::INTERNAL_SERVER_ERROR,
        StatusCode::SERVICE_UNAVAILABLE,
    ];
    if has_parameter(ParameterIn::Path) {
        statuses.extend([StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND]);
        // An identifier followed by a verb of this resource (`ID:verb`) matches the verb's route, which has other
        // methods.
        let verb = format!("{path}:");
        if patterns.iter().any(|pattern| pattern.starts_with(&verb)) {
            statuses.push(StatusCode::METHOD_NOT_ALLOWED);
        }
    }
    if has_parameter(ParameterIn::Query) {
        statuses.push(StatusCode::BAD_REQUEST);
    }
    if operation.request_body.is_some() {
        statuses.extend([
            StatusCode::BAD_REQUEST,
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ]);
    }
    if let Some(security) = &operation.security {
        statuses.push(StatusCode::UNAUTHORIZED);
        if !security.contains(&SecurityRequirement::default()) {
            statuses.push(StatusCode::FORBIDDEN);
        }
    }
    statuses
}

/// Disallows `null` for an optional body, which may only be absent.
fn disallow_null_body(body: &mut RequestBody) {
    for content in body.content.values_mut() {
        if let RefOr::T(content) = content
            && let Some(RefOr::T(Schema::OneOf(either))) = &content.schema
            && let Some(schema @ RefOr::Ref(_)) = either.items.first().cloned()
        {
            content.schema = Some(schema);
        }
    }
}

/// Adds the problem document and the headers to a handler's error response.
fn complete_error_response(status: &str, response: &mut RefOr<Response>) {
    let Ok(status) = status.parse::<StatusCode>() else {
        return;
    };
    let RefOr::T(response) = response else {
        return;
    };
    if !status.is_client_error() && !status.is_server_error() {
        return;
    }
    response
        .content
        .entry(PROBLEM_JSON.to_owned())
        .or_insert_with(|| openapi_problem_content(status).into());
    for (name, header) in openapi_error_headers(status) {
        response
            .headers
            .entry(name.to_owned())
            .or_insert(header.into());
    }
}

fn openapi_error_response(status: StatusCode) -> Response {
    let kinds: Vec<String> = problem_kinds::ALL
        .iter()
        .filter(|kind| kind.status == status)
        .map(|kind| format!("{} (`{}`)", kind.title, kind.slug))
        .collect();
    let mut response = ResponseBuilder::new()
        .description(kinds.join("; "))
        .content(PROBLEM_JSON, openapi_problem_content(status));
    for (name, header) in openapi_error_headers(status) {
        response = response.header(name, header);
    }
    response.build()
}

fn openapi_problem_content(status: StatusCode) -> Content {
    let kind = problem_kinds::problem_kind_by_status(status);
    let example = ProblemDocument {
        kind: format!("/problems/{}", kind.slug),
        title: kind.title.to_owned(),
        status: status.as_u16(),
        detail: "Explanation of the error in this request, and what to do.".to_owned(),
        instance: "/v1/agents".to_owned(),
        errors: Vec::new(),
        decision: None,
        notices: None,
    };
    ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(ProblemDocument::name())))
        .example(serde_json::to_value(example).ok())
        .build()
}

fn openapi_error_headers(status: StatusCode) -> Vec<(&'static str, Header)> {
    let header = |schema_type, description: &str| {
        let schema = ObjectBuilder::new().schema_type(schema_type).build();
        let mut header = Header::new(schema);
        header.description = Some(description.to_owned());
        header
    };
    match status {
        StatusCode::UNAUTHORIZED => vec![("WWW-Authenticate", header(Type::String, "`Bearer`"))],
        StatusCode::METHOD_NOT_ALLOWED => {
            vec![("Allow", header(Type::String, "Methods of this path"))]
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => vec![(
            "Retry-After",
            header(Type::Integer, "Seconds to wait before a retry, if known"),
        )],
        _ => Vec::new(),
    }
}

/// Component name of an error response, such as `NotFound`.
fn error_response_name(status: StatusCode) -> String {
    status
        .canonical_reason()
        .unwrap_or(status.as_str())
        .split(' ')
        .collect()
}
