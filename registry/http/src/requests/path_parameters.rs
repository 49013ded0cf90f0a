//! Path parameters, decoded once and strictly.
//!
//! The router matches a partly decoded path and repairs invalid escapes. Identifiers
//! are therefore read from the raw path, and invalid escapes, bytes that are not UTF-8 and U+0000 are rejected.

use std::future::{Ready, ready};

use a2a_registry_api::limits::{CardForm, KeyName, PolicyId};
use a2a_registry_core::error::AppError;
use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{Ref, RefOr, Required};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use crate::answers::route_table;
use crate::problems::problem::Problem;
use crate::problems::problem_kinds;

/// Path parameter: its name in patterns, and its description in the document.
struct PathParameter {
    name: &'static str,
    description: &'static str,
    schema: fn() -> RefOr<Schema>,
}

/// Path parameter with this name for the document; `None` if no extractor reads it.
pub(crate) fn openapi_path_parameter(name: &str) -> Option<Parameter> {
    let part = PARTS.iter().find(|part| part.name == name)?;
    let parameter = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(part.description.trim()))
        .schema(Some((part.schema)()));
    Some(parameter.build())
}

/// Defines extractors of path parameters, and [`PARTS`]. The doc comment of each is its description in the document.
macro_rules! path_parts {
    ($(
        #[doc = $description:literal]
        $name:ident($value:ty) = $part:literal, $schema:expr, $convert:expr;
    )+) => {
        const PARTS: &[PathParameter] = &[$(PathParameter {
            name: $part,
            description: $description,
            schema: $schema,
        },)+];

        $(
            #[doc = $description]
            pub struct $name(pub $value);

            impl FromRequest for $name {
                type Error = Problem;
                type Future = Ready<Result<Self, Problem>>;

                fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
                    let convert: fn(String) -> Result<$value, Problem> = $convert;
                    ready(read_path_parameter(request, $part).and_then(convert).map(Self))
                }
            }
        )+
    };
}

path_parts! {
    /// Id or URN of the agent
    AgentRef(String) = "agent", String::schema, Ok;
    /// `host` or `host:port`
    DomainRef(String) = "domain", String::schema, Ok;
    /// Id or name of the account
    AccountRef(String) = "account", String::schema, Ok;
    /// Name of the group
    GroupRef(String) = "group", String::schema, Ok;
    /// Name of the collection
    CollectionRef(String) = "collection", String::schema, Ok;
    /// Secret of the feed
    FeedSecret(String) = "secret", String::schema, Ok;
    /// `urn:air:…`
    EntryRef(String) = "identifier", String::schema, Ok;
    /// Protocol version to convert the card to
    CardFormRef(String) = "form", CardForm::schema, Ok;
    /// Name of the key (`kid`) in signatures
    Kid(String) = "kid", KeyName::schema, Ok;
    /// Name of the identity provider
    ProviderRef(String) = "provider", String::schema, Ok;
    /// A plain word
    Slug(String) = "slug", String::schema, Ok;
    /// `id` of the source in the domain
    SourceRef(String) = "source", String::schema, Ok;
    /// The policy's identifier
    PolicyRef(String) = "policy", policy_id_schema, Ok;
    /// Id of the preview
    PreviewId(Uuid) = "preview", uuid_schema, |text| parse_path_uuid(&text, AppError::no_preview);
    /// Id of the review
    ReviewId(Uuid) = "review", uuid_schema, |text| parse_path_uuid(&text, AppError::no_review);
    /// Id of the session
    SessionId(Uuid) = "session", uuid_schema, |text| parse_path_uuid(&text, AppError::no_session);
    /// Id of the token
    TokenId(Uuid) = "token", uuid_schema, |text| parse_path_uuid(&text, AppError::no_token);
    /// Id of the waiver
    WaiverId(Uuid) = "waiver", uuid_schema, |text| parse_path_uuid(&text, AppError::no_waiver);
    /// Id of the decision
    DecisionId(Uuid) = "decision", uuid_schema, |text| parse_path_uuid(&text, AppError::no_decision);
    /// Id of the hook
    HookId(Uuid) = "hook", uuid_schema, |text| parse_path_uuid(&text, AppError::no_hook);
    /// Code of the link in a mail
    MailCode(String) = "code", String::schema, Ok;
    /// Id of the saved search
    SearchId(Uuid) = "search", uuid_schema, |text| parse_path_uuid(&text, AppError::no_saved_search);
}

fn policy_id_schema() -> RefOr<Schema> {
    Ref::from_schema_name(PolicyId::name()).into()
}

fn uuid_schema() -> RefOr<Schema> {
    let format = SchemaFormat::KnownFormat(KnownFormat::Uuid);
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(format))
        .into()
}

/// Parses an id. A text that is not an id is reported as not found.
fn parse_path_uuid(text: &str, not_found: fn(String) -> AppError) -> Result<Uuid, Problem> {
    Uuid::try_parse(text).map_err(|_| not_found(text.to_owned()).into())
}

/// Reads and decodes the segment of the raw path at `{name}` in the route's pattern. Returns a wrong method problem if
/// the segment ends with a verb that requires another method.
fn read_path_parameter(request: &HttpRequest, name: &str) -> Result<String, Problem> {
    let raw_path = request.uri().path();
    // Without escapes the router's match equals the raw segment.
    let text = if raw_path.contains('%') {
        decode_path_part(raw_path_parameter(request, raw_path, name)?)?
    } else {
        request.match_info().query(name).to_owned()
    };
    if text.contains(':') {
        route_table::reject_verb_method_mismatch(request, raw_path)?;
    }
    Ok(text)
}

fn raw_path_parameter<'a>(
    request: &HttpRequest,
    raw_path: &'a str,
    name: &str,
) -> Result<&'a str, Problem> {
    let no_address = || Problem::from(AppError::no_resource());
    let pattern = request.match_pattern().ok_or_else(no_address)?;
    let placeholder = format!("{{{name}}}");
    pattern
        .split('/')
        .zip(raw_path.split('/'))
        .find_map(|(wanted, part)| {
            wanted
                .split_once(placeholder.as_str())
                .map(|ends| (ends, part))
        })
        // An escaped colon does not start a verb: the router's verb was part of the name.
        .and_then(|((prefix, suffix), part)| part.strip_prefix(prefix)?.strip_suffix(suffix))
        .ok_or_else(no_address)
}

/// Decodes a path segment strictly (RFC 3986 section 2.1). Rejects a percent sign without two hexadecimal digits,
/// bytes that are not UTF-8, and U+0000.
pub fn decode_path_part(part: &str) -> Result<String, Problem> {
    let path_error = |detail: &str| Problem::new(&problem_kinds::BROKEN_PATH, detail);
    if let Some(escape) = first_invalid_escape(part) {
        return Err(path_error(&format!(
            "The escape at `{escape}` is not followed by two hexadecimal digits."
        )));
    }
    let decoded = percent_encoding::percent_decode_str(part)
        .decode_utf8()
        .map_err(|_| path_error("The escapes in the path are not valid UTF-8."))?;
    if decoded.contains('\0') {
        return Err(path_error("The path must not contain U+0000."));
    }
    Ok(decoded.into_owned())
}

/// First invalid escape, with up to two characters after it.
pub fn first_invalid_escape(text: &str) -> Option<String> {
    let is_valid = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let (at, _) = text
        .match_indices('%')
        .find(|(at, _)| !is_valid(&text[at + 1..]))?;
    Some(text[at..].chars().take(3).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn decodes_once() {
        assert_eq!(decode_path_part("urn%3Aa%2Fb").unwrap(), "urn:a/b");
        assert_eq!(decode_path_part("%2541").unwrap(), "%41");
        assert_eq!(decode_path_part("a+b").unwrap(), "a+b");
        assert_eq!(decode_path_part("%C3%A9").unwrap(), "é");
    }

    #[test]
    fn refuses_what_is_broken() {
        for broken in ["%", "a%2", "%zz", "%ff", "%C3", "a%00b", "%é1"] {
            let problem = decode_path_part(broken).unwrap_err();
            assert_eq!(problem.kind(), &problem_kinds::BROKEN_PATH, "{broken}");
        }
    }
}
