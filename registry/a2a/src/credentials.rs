//! Which credentials a card asks for, and where they go.

use a2a_card::{AgentCard, SchemeKind, SecurityRequirement, SecurityScheme, has_unread_demand};
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};

use super::error::shorten;
use super::{SendOptions, TalkError};

/// What every request to the agent carries.
#[derive(Default)]
pub(super) struct Credentials {
    /// Headers: the ones schemes ask for, then the user's own.
    pub headers: HeaderMap,
    /// A key that goes into the query.
    pub query: Option<(String, String)>,
    /// Whether anything here came from the user.
    pub any: bool,
}

/// Places the user's credentials as the card asks.
///
/// The first alternative that can be met is taken, one that asks for something before one that asks for
/// nothing, so that given credentials are used. A token is sent even where the card asks for none: the
/// user gave it for this agent, and cards often leave their security out.
pub(super) fn for_card(card: &AgentCard, options: &SendOptions) -> Result<Credentials, TalkError> {
    let own = own_headers(&options.headers)?;
    let asking = card
        .security
        .iter()
        .filter(|alternative| !alternative.schemes.is_empty());
    let met = asking
        .clone()
        .find(|alternative| is_met(card, alternative, options, &own));
    // Of a demand that cannot be read nobody knows whether it is met; what the user gives is taken to be it.
    let given = options.bearer.is_some() || options.api_key.is_some() || !own.is_empty();
    let welcome = (card.security.is_empty() || asking.clone().count() < card.security.len())
        && (given || !has_unread_demand(card));
    let mut credentials = Credentials {
        any: !own.is_empty(),
        ..Credentials::default()
    };
    match met {
        Some(alternative) => {
            for kind in kinds(card, alternative).flatten() {
                place(kind, options, &own, &mut credentials)?;
            }
        }
        None if welcome => volunteer(card, options, &mut credentials)?,
        None => return Err(needed(card, asking)),
    }
    for name in own.keys() {
        credentials.headers.remove(name);
    }
    for (name, value) in &own {
        credentials.headers.append(name, value.clone());
    }
    Ok(credentials)
}

/// Credentials for a card that asks for none: the token as a bearer, the key where a declared scheme says.
fn volunteer(
    card: &AgentCard,
    options: &SendOptions,
    credentials: &mut Credentials,
) -> Result<(), TalkError> {
    if let Some(token) = &options.bearer {
        add_bearer(token, credentials)?;
    }
    if let Some(key) = &options.api_key {
        let scheme = card
            .security_schemes
            .iter()
            .find_map(|scheme| match &scheme.kind {
                SchemeKind::ApiKey {
                    location,
                    parameter,
                } => Some((location, parameter)),
                _ => None,
            });
        let (location, parameter) = scheme.ok_or(TalkError::KeyHasNoPlace)?;
        add_key(key, location, parameter, credentials)?;
    }
    Ok(())
}

/// The schemes of an alternative; `None` for a name the card does not declare.
fn kinds<'a>(
    card: &'a AgentCard,
    alternative: &'a SecurityRequirement,
) -> impl Iterator<Item = Option<&'a SchemeKind>> {
    alternative
        .schemes
        .iter()
        .map(|(name, _)| scheme(card, name).map(|scheme| &scheme.kind))
}

fn scheme<'a>(card: &'a AgentCard, name: &str) -> Option<&'a SecurityScheme> {
    card.security_schemes
        .iter()
        .find(|scheme| scheme.name == name)
}

fn is_met(
    card: &AgentCard,
    alternative: &SecurityRequirement,
    options: &SendOptions,
    own: &HeaderMap,
) -> bool {
    kinds(card, alternative).all(|kind| match kind {
        Some(SchemeKind::ApiKey {
            location,
            parameter,
        }) => {
            let known = matches!(location.as_str(), "header" | "query" | "cookie");
            let by_hand = match location.as_str() {
                "header" => own.contains_key(parameter.as_str()),
                "cookie" => own.contains_key(COOKIE),
                _ => false,
            };
            by_hand || (known && options.api_key.is_some())
        }
        Some(SchemeKind::Http { scheme, .. }) => {
            own.contains_key(AUTHORIZATION)
                || (scheme.eq_ignore_ascii_case("bearer") && options.bearer.is_some())
        }
        Some(SchemeKind::Oauth2 { .. } | SchemeKind::OpenIdConnect { .. }) => {
            own.contains_key(AUTHORIZATION) || options.bearer.is_some()
        }
        Some(SchemeKind::None) => true,
        // What an unknown scheme asks for cannot be known; a header given by hand is taken to be it.
        Some(SchemeKind::Other { .. }) | None => !own.is_empty() || options.bearer.is_some(),
        Some(SchemeKind::MutualTls) => false,
    })
}

fn place(
    kind: &SchemeKind,
    options: &SendOptions,
    own: &HeaderMap,
    credentials: &mut Credentials,
) -> Result<(), TalkError> {
    match kind {
        SchemeKind::ApiKey {
            location,
            parameter,
        } => match &options.api_key {
            Some(key) => add_key(key, location, parameter, credentials),
            None => Ok(()),
        },
        SchemeKind::None | SchemeKind::MutualTls => Ok(()),
        _ => match &options.bearer {
            Some(token) if !own.contains_key(AUTHORIZATION) => add_bearer(token, credentials),
            _ => Ok(()),
        },
    }
}

fn add_bearer(token: &str, credentials: &mut Credentials) -> Result<(), TalkError> {
    let value = secret(&format!("Bearer {}", token.trim()), "the bearer token")?;
    credentials.headers.insert(AUTHORIZATION, value);
    credentials.any = true;
    Ok(())
}

fn add_key(
    key: &str,
    location: &str,
    parameter: &str,
    credentials: &mut Credentials,
) -> Result<(), TalkError> {
    match location {
        "query" => credentials.query = Some((parameter.to_owned(), key.to_owned())),
        "cookie" => {
            let value = secret(&format!("{parameter}={key}"), "the API key's cookie")?;
            credentials.headers.append(COOKIE, value);
        }
        _ => {
            let name = HeaderName::try_from(parameter).map_err(|_| TalkError::BadHeader {
                name: shorten(parameter),
            })?;
            credentials
                .headers
                .insert(name, secret(key, "the API key")?);
        }
    }
    credentials.any = true;
    Ok(())
}

fn own_headers(given: &[(String, String)]) -> Result<HeaderMap, TalkError> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let bad = || TalkError::BadHeader {
            name: shorten(name),
        };
        let parsed = HeaderName::try_from(name.trim()).map_err(|_| bad())?;
        headers.append(parsed, secret(value.trim(), name)?);
    }
    Ok(headers)
}

/// A header value that no debug output shows.
fn secret(value: &str, name: &str) -> Result<HeaderValue, TalkError> {
    let mut value = HeaderValue::try_from(value).map_err(|_| TalkError::BadHeader {
        name: shorten(name),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The error that says what is missing: every alternative in words, and the flag for the first one.
fn needed<'a>(
    card: &'a AgentCard,
    alternatives: impl Iterator<Item = &'a SecurityRequirement>,
) -> TalkError {
    let mut words = Vec::new();
    let mut hint = None;
    for alternative in alternatives.take(4) {
        let mut parts = Vec::new();
        for (name, scopes) in alternative.schemes.iter().take(4) {
            let kind = scheme(card, name).map(|scheme| &scheme.kind);
            let (what, flag) = ask(name, kind);
            let scoped = if scopes.is_empty() {
                String::new()
            } else {
                format!(" with {}", scopes.join(" "))
            };
            parts.push(format!("{what}{scoped}"));
            hint.get_or_insert(flag);
        }
        words.push(parts.join(" and "));
    }
    if words.is_empty() {
        words.push("credentials that the card describes in no form that is understood".to_owned());
    }
    TalkError::CredentialsNeeded {
        needed: shorten(&words.join(", or ")),
        hint: hint.unwrap_or_else(|| "use --bearer TOKEN or --header 'NAME: VALUE'".to_owned()),
    }
}

/// What a scheme asks for, and the flag that gives it.
fn ask(name: &str, kind: Option<&SchemeKind>) -> (String, String) {
    match kind {
        Some(SchemeKind::ApiKey {
            location,
            parameter,
        }) => (
            format!("an API key in the {location} {parameter}"),
            "use --api-key KEY".to_owned(),
        ),
        Some(SchemeKind::Http { scheme, .. }) if !scheme.eq_ignore_ascii_case("bearer") => (
            format!("HTTP {scheme} authentication"),
            "use --header 'Authorization: …'".to_owned(),
        ),
        Some(SchemeKind::Http { .. }) => {
            ("a bearer token".to_owned(), "use --bearer TOKEN".to_owned())
        }
        Some(SchemeKind::Oauth2 { .. }) => (
            "an OAuth 2 access token".to_owned(),
            "use --bearer TOKEN".to_owned(),
        ),
        Some(SchemeKind::OpenIdConnect { .. }) => (
            "an OpenID Connect token".to_owned(),
            "use --bearer TOKEN".to_owned(),
        ),
        Some(SchemeKind::MutualTls) => (
            "a client certificate".to_owned(),
            "send cannot present one".to_owned(),
        ),
        Some(SchemeKind::None) => ("nothing".to_owned(), String::new()),
        Some(SchemeKind::Other { label }) => (
            format!("{label} (a scheme send does not know)"),
            "use --header 'NAME: VALUE'".to_owned(),
        ),
        None => (
            format!("{name}, which the card does not explain"),
            "use --header 'NAME: VALUE'".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn asked(members: &str, options: &SendOptions) -> Result<Credentials, TalkError> {
        let card = format!(r#"{{"name": "A", "url": "https://a.example", {members}}}"#);
        for_card(&a2a_card::parse(card.as_bytes()).unwrap().card, options)
    }

    #[test]
    fn a_demand_in_no_known_form_is_met_by_what_the_user_gives() {
        let nothing = SendOptions::new("m");
        let token = SendOptions {
            bearer: Some("secret".to_owned()),
            ..SendOptions::new("m")
        };
        for unread in [
            r#""auth_required": true"#,
            r#""auth": {"required": true}"#,
            r#""security": [{}], "authRequired": true"#,
        ] {
            let Err(TalkError::CredentialsNeeded { needed, hint }) = asked(unread, &nothing) else {
                panic!("{unread}: called without credentials");
            };
            assert!(!needed.is_empty() && hint.contains("--bearer"), "{needed}");
            let sent = asked(unread, &token).unwrap().headers;
            assert_eq!(sent.get(AUTHORIZATION).unwrap(), "Bearer secret");
            let own = SendOptions {
                headers: vec![("X-Ticket".to_owned(), "7".to_owned())],
                ..SendOptions::new("m")
            };
            assert_eq!(asked(unread, &own).unwrap().headers["x-ticket"], "7");
        }
        let legible = r#""auth": {"required": true, "type": "bearer"}"#;
        assert!(asked(legible, &nothing).is_err());
        assert!(asked(legible, &token).is_ok());
        for open in [r#""auth_required": false"#, r#""auth": {"type": "none"}"#] {
            assert!(asked(open, &nothing).unwrap().headers.is_empty(), "{open}");
        }
    }
}
