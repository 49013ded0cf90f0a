//! Parts of the path, decoded once and strictly.
//!
//! The router matches a path that it has partly decoded, and it repairs broken escapes. Identifiers
//! are therefore read from the raw path: a broken escape, bytes that are not UTF-8 or U+0000 are refused.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use uuid::Uuid;

use crate::error::AppError;
use crate::http::problem::Problem;
use crate::http::{allowed, problem_kinds};

/// `{agent}`: an id or a URN, unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRef(pub String);

/// `{domain}`: `host` or `host:port`, unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainRef(pub String);

/// `{review}`: a text that is no id matches no review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewId(pub Uuid);

/// `{token}`: a text that is no id matches no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenId(pub Uuid);

/// `{session}`: a text that is no id matches no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionId(pub Uuid);

/// `{account}`: an id or a name, unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRef(pub String);

/// `{group}`: a name, unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRef(pub String);

/// `{collection}`: a name, unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionRef(pub String);

/// `{secret}`: the secret of a feed.
#[derive(Clone, PartialEq, Eq)]
pub struct FeedSecret(pub String);

/// `{search}`: a text that is no id matches no saved search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchId(pub Uuid);

/// `{kid}`: the name of a key in signatures, unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kid(pub String);

/// `{source}`: its id in the domain, unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRef(pub String);

/// `{waiver}`: a text that is no id matches no waiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaiverId(pub Uuid);

/// `{policy}`: its identifier in the set, unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRef(pub String);
/// `{provider}`: the name of an identity provider, unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderRef(pub String);

/// `{identifier}`: of an entry of a catalog, unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRef(pub String);

/// `{form}`: a protocol version that cards are converted to, unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardFormRef(pub String);

/// `{slug}` and other plain words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slug(pub String);

macro_rules! from_path {
    ($($name:ident($parameter:literal, $convert:expr);)+) => {$(
        impl FromRequest for $name {
            type Error = Problem;
            type Future = Ready<Result<Self, Problem>>;

            fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
                let convert: fn(String) -> Result<Self, Problem> = $convert;
                ready(parameter(request, $parameter).and_then(convert))
            }
        }
    )+};
}

from_path! {
    AgentRef("agent", |text| Ok(Self(text)));
    DomainRef("domain", |text| Ok(Self(text)));
    AccountRef("account", |text| Ok(Self(text)));
    GroupRef("group", |text| Ok(Self(text)));
    CollectionRef("collection", |text| Ok(Self(text)));
    FeedSecret("secret", |text| Ok(Self(text)));
    EntryRef("identifier", |text| Ok(Self(text)));
    CardFormRef("form", |text| Ok(Self(text)));
    Kid("kid", |text| Ok(Self(text)));
    ProviderRef("provider", |text| Ok(Self(text)));
    Slug("slug", |text| Ok(Self(text)));
    SourceRef("source", |text| Ok(Self(text)));
    ReviewId("review", |text| id(&text, AppError::no_review).map(Self));
    SessionId("session", |text| id(&text, AppError::no_session).map(Self));
    TokenId("token", |text| id(&text, AppError::no_token).map(Self));
    WaiverId("waiver", |text| id(&text, AppError::no_waiver).map(Self));
    PolicyRef("policy", |text| Ok(Self(text)));
    SearchId("search", |text| id(&text, AppError::no_saved_search).map(Self));
}

fn id(text: &str, missing: fn(String) -> AppError) -> Result<Uuid, Problem> {
    Uuid::try_parse(text).map_err(|_| missing(text.to_owned()).into())
}

/// The part of the raw path that stands where the route's pattern has `{name}`, decoded.
///
/// # Errors
/// `broken-path`; `wrong-method` where the part ends with a verb that takes another method.
fn parameter(request: &HttpRequest, name: &str) -> Result<String, Problem> {
    let raw = request.uri().path();
    // Without escapes the router's match is the raw part itself.
    let text = if raw.contains('%') {
        decode(raw_part(request, raw, name)?)?
    } else {
        request.match_info().query(name).to_owned()
    };
    if text.contains(':') {
        allowed::refuse_verb_of_other_method(request, raw)?;
    }
    Ok(text)
}

fn raw_part<'a>(request: &HttpRequest, raw: &'a str, name: &str) -> Result<&'a str, Problem> {
    let nothing = || Problem::from(AppError::no_address());
    let pattern = request.match_pattern().ok_or_else(nothing)?;
    let placeholder = format!("{{{name}}}");
    pattern
        .split('/')
        .zip(raw.split('/'))
        .find_map(|(wanted, part)| {
            wanted
                .split_once(placeholder.as_str())
                .map(|ends| (ends, part))
        })
        // An escaped colon begins no verb: the router's verb was part of the name.
        .and_then(|((prefix, suffix), part)| part.strip_prefix(prefix)?.strip_suffix(suffix))
        .ok_or_else(nothing)
}

/// Decodes a part of a path, strictly (RFC 3986 section 2.1).
///
/// # Errors
/// `broken-path` for a percent sign without two hexadecimal digits, for bytes that are not UTF-8 and
/// for U+0000.
pub fn decode(part: &str) -> Result<String, Problem> {
    let broken = |detail: &str| Problem::new(&problem_kinds::BROKEN_PATH, detail);
    if let Some(place) = broken_escape(part) {
        return Err(broken(&format!(
            "The escape at `{place}` is not followed by two hexadecimal digits."
        )));
    }
    let decoded = percent_encoding::percent_decode_str(part)
        .decode_utf8()
        .map_err(|_| broken("The escapes in the path do not stand for UTF-8."))?;
    if decoded.contains('\0') {
        return Err(broken("The path holds U+0000."));
    }
    Ok(decoded.into_owned())
}

/// The first invalid escape, with up to two characters after it.
pub fn broken_escape(text: &str) -> Option<String> {
    let whole = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let (at, _) = text
        .match_indices('%')
        .find(|(at, _)| !whole(&text[at + 1..]))?;
    Some(text[at..].chars().take(3).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn decodes_once() {
        assert_eq!(decode("urn%3Aa%2Fb").unwrap(), "urn:a/b");
        assert_eq!(decode("%2541").unwrap(), "%41");
        assert_eq!(decode("a+b").unwrap(), "a+b");
        assert_eq!(decode("%C3%A9").unwrap(), "é");
    }

    #[test]
    fn refuses_what_is_broken() {
        for broken in ["%", "a%2", "%zz", "%ff", "%C3", "a%00b", "%é1"] {
            let problem = decode(broken).unwrap_err();
            assert_eq!(problem.kind(), &problem_kinds::BROKEN_PATH, "{broken}");
        }
    }
}
