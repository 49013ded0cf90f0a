//! The query of a request, parsed strictly.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use serde::de::DeserializeOwned;

use crate::problems::problem::Problem;
use crate::problems::problem_kinds;
use crate::requests::path_parameters::first_invalid_escape;

/// Query parsed as a `T`. Repeated parameters fill lists. Unknown parameters, repeated parameters that are not lists,
/// and values of the wrong type are rejected by name.
#[derive(Debug, Clone)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequest for Query<T> {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(parse_query(request.query_string()).map(Self))
    }
}

pub fn parse_query<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    reject_invalid_escapes(query)?;
    let form = serde_html_form::Deserializer::from_bytes(query.as_bytes());
    serde_path_to_error::deserialize(form).map_err(|error| {
        // The first segment of the path is the parameter; an index inside its list is meaningless to the caller.
        let parameter = error.path().iter().find_map(|segment| match segment {
            serde_path_to_error::Segment::Map { key } => Some(key.clone()),
            _ => None,
        });
        let text = error.inner().to_string();
        match parameter {
            Some(parameter) => Problem::invalid(
                crate::requests::body::json_pointer(&parameter),
                format!("{parameter}: {text}"),
            ),
            None => Problem::new(
                &problem_kinds::INVALID_REQUEST,
                format!("The query is not valid: {text}."),
            ),
        }
    })
}

/// Rejects invalid escapes, which the form decoder would silently repair.
fn reject_invalid_escapes(query: &str) -> Result<(), Problem> {
    if !query.contains('%') {
        return Ok(());
    }
    let reject = |detail: String| Err(Problem::new(&problem_kinds::INVALID_REQUEST, detail));
    if let Some(escape) = first_invalid_escape(query) {
        return reject(format!(
            "The escape at `{escape}` in the query is not followed by two hexadecimal digits."
        ));
    }
    match percent_encoding::percent_decode_str(query).decode_utf8() {
        Err(_) => reject("The escapes in the query are not valid UTF-8.".into()),
        Ok(text) if text.contains('\0') => reject("The query must not contain U+0000.".into()),
        Ok(_) => Ok(()),
    }
}
