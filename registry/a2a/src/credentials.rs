//! Adds the user's credentials to requests, as the card requires.

use std::sync::Arc;

use a2a_card::{AgentCard, AuthScheme, SchemeKind};
use data_encoding::BASE64;
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};

use super::choice::{
    Credential, CredentialChoice, Given, Means, Obstacle, choose_credentials, credential, is_basic,
    key_place,
};
use super::error::shorten;
use super::{BasicLogin, ClientCertificate, SendOptions, TalkError, TokenSource};

#[derive(Default)]
pub(super) struct Credentials {
    /// Headers: those that schemes require, then the user's own.
    pub headers: HeaderMap,
    /// Keys in the query, by their parameter.
    pub query: Vec<(String, String)>,
    /// Where the bearer token of each request comes from, if it is not among the headers.
    pub tokens: Option<Arc<dyn TokenSource>>,
    pub certificate: Option<ClientCertificate>,
    /// Whether the user gave any of them.
    pub any: bool,
}

/// Chooses the credentials for a card: the first alternative that can be met, and one that requires something before
/// one that requires nothing, so that given credentials are used. A token is sent even if the card requires none: the
/// user gave it for this agent, and cards often omit their security.
pub(super) fn for_card(card: &AgentCard, options: &SendOptions) -> Result<Credentials, TalkError> {
    let own = own_headers(&options.headers)?;
    let means = Means::Given(Given {
        bearer: options.bearer.is_some() || options.tokens.is_some(),
        api_key: options.api_key.is_some(),
        basic: options.basic.is_some(),
        certificate: options.certificate.is_some(),
        headers: own.keys().map(HeaderName::as_str).collect(),
    });
    let wanted = match choose_credentials(card, &means) {
        CredentialChoice::With(wanted) => wanted,
        CredentialChoice::Free => volunteered(card, options)?,
        CredentialChoice::Closed(alternatives) => return Err(needed(&alternatives)),
    };
    let mut credentials = Credentials {
        any: !own.is_empty() || options.certificate.is_some(),
        certificate: options.certificate.clone(),
        ..Credentials::default()
    };
    for credential in &wanted {
        place(credential, options, &mut credentials)?;
    }
    for name in own.keys() {
        credentials.headers.remove(name);
    }
    if own.contains_key(AUTHORIZATION) {
        credentials.tokens = None;
    }
    for (name, value) in &own {
        credentials.headers.append(name, value.clone());
    }
    Ok(credentials)
}

/// For an agent that requires none: the token as a bearer token, the key as a declared scheme defines.
fn volunteered(card: &AgentCard, options: &SendOptions) -> Result<Vec<Credential>, TalkError> {
    let mut credentials = Vec::new();
    if options.bearer.is_some() || options.tokens.is_some() {
        credentials.push(Credential::Bearer);
    } else if options.basic.is_some() {
        credentials.push(Credential::Authorization);
    }
    if options.api_key.is_some() {
        let mut schemes = card.security_schemes.iter();
        let place = schemes.find_map(|scheme| key_place(&scheme.kind));
        credentials.push(place.ok_or(TalkError::KeyHasNoPlace)?);
    }
    Ok(credentials)
}

fn place(
    credential: &Credential,
    options: &SendOptions,
    credentials: &mut Credentials,
) -> Result<(), TalkError> {
    let basic = options.basic.as_ref().map(login).transpose()?;
    let value = match credential {
        Credential::Bearer if options.bearer.is_none() => {
            credentials.tokens = options.tokens.clone();
            credentials.any |= credentials.tokens.is_some();
            return Ok(());
        }
        Credential::Bearer => &options.bearer,
        // The user sets one of another scheme than Basic by hand.
        Credential::Authorization => &basic,
        _ => &options.api_key,
    };
    let Some(value) = value else {
        return Ok(());
    };
    credentials.any = true;
    let headers = &mut credentials.headers;
    match credential {
        Credential::Bearer => {
            headers.insert(AUTHORIZATION, bearer(value)?);
        }
        Credential::Authorization => {
            headers.insert(AUTHORIZATION, secret(value, "the password")?);
        }
        Credential::HeaderKey(parameter) => {
            let name = HeaderName::try_from(parameter).map_err(|_| TalkError::BadHeader {
                name: shorten(parameter),
            })?;
            headers.insert(name, secret(value, "the API key")?);
        }
        Credential::CookieKey(parameter) => {
            let value = secret(&format!("{parameter}={value}"), "the API key's cookie")?;
            headers.append(COOKIE, value);
        }
        Credential::QueryKey(parameter) => {
            credentials.query.push((parameter.clone(), value.clone()));
        }
    }
    Ok(())
}

pub(super) fn bearer(token: &str) -> Result<HeaderValue, TalkError> {
    secret(&format!("Bearer {}", token.trim()), "the bearer token")
}

/// The value of `Authorization` with a user and a password, in UTF-8 (RFC 7617 section 2).
fn login(login: &BasicLogin) -> Result<String, TalkError> {
    let BasicLogin { user, password } = login;
    let broken = |text: &str| text.chars().any(char::is_control);
    if user.contains(':') || broken(user) || broken(password) {
        return Err(TalkError::BadLogin);
    }
    let encoded = BASE64.encode(format!("{user}:{password}").as_bytes());
    Ok(format!("Basic {encoded}"))
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

/// A header value that is never shown in debug output.
fn secret(value: &str, name: &str) -> Result<HeaderValue, TalkError> {
    let mut value = HeaderValue::try_from(value).map_err(|_| TalkError::BadHeader {
        name: shorten(name),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The error for missing credentials: every alternative in words, and the flag for the first one.
fn needed(alternatives: &[Vec<AuthScheme<'_>>]) -> TalkError {
    let mut words = Vec::new();
    let mut hint = None;
    for alternative in alternatives.iter().take(4) {
        let mut parts = Vec::new();
        for asked in alternative.iter().take(4) {
            let (what, flag) = ask(asked);
            let scoped = if asked.scopes.is_empty() {
                String::new()
            } else {
                format!(" with {}", asked.scopes.join(" "))
            };
            parts.push(format!("{what}{scoped}"));
            hint.get_or_insert(flag);
        }
        words.push(parts.join(" and "));
    }
    if words.is_empty() {
        words.push("credentials that the card describes in an unknown form".to_owned());
    }
    TalkError::CredentialsNeeded {
        needed: shorten(&words.join(", or ")),
        hint: hint
            .unwrap_or("use --bearer @FILE or --header 'NAME: VALUE'")
            .to_owned(),
    }
}

/// Description of a scheme's credential, and the flag to provide it.
fn ask(asked: &AuthScheme<'_>) -> (String, &'static str) {
    const BY_HAND: &str = "use --header 'NAME: VALUE'";
    const BEARER: &str = "use --bearer @FILE";
    const SIGN_IN: &str = "sign in with `credentials add`, or use --bearer @FILE";
    const KEY: &str = "use --api-key @FILE";
    match credential(asked) {
        Ok(None) => ("nothing".to_owned(), ""),
        Ok(Some(Credential::Bearer)) => {
            let what = match asked.kind.as_deref() {
                Some(SchemeKind::Oauth2 { .. }) => "an OAuth 2 access token",
                Some(SchemeKind::OpenIdConnect { .. }) => "an OpenID Connect token",
                _ => "a bearer token",
            };
            let hint = match asked.kind.as_deref() {
                Some(SchemeKind::Oauth2 { .. } | SchemeKind::OpenIdConnect { .. }) => SIGN_IN,
                _ => BEARER,
            };
            (what.to_owned(), hint)
        }
        Ok(Some(Credential::Authorization)) if is_basic(asked) => {
            ("HTTP basic authentication".to_owned(), "use --basic USER")
        }
        Ok(Some(Credential::Authorization)) => {
            let scheme = match asked.kind.as_deref() {
                Some(SchemeKind::Http { scheme, .. }) => scheme,
                _ => "",
            };
            let what = format!("HTTP {scheme} authentication");
            (what, "use --header 'Authorization: …'")
        }
        Ok(Some(Credential::HeaderKey(name))) => (format!("an API key in the header {name}"), KEY),
        Ok(Some(Credential::CookieKey(name))) => (format!("an API key in the cookie {name}"), KEY),
        Ok(Some(Credential::QueryKey(name))) => (format!("an API key in the query {name}"), KEY),
        Err(Obstacle::NoPlace) => (
            "an API key at an unknown place in the request".to_owned(),
            BY_HAND,
        ),
        Err(Obstacle::Certificate) => (
            "a client certificate".to_owned(),
            "use --cert FILE --key FILE",
        ),
        Err(Obstacle::Unknown(label)) => {
            (format!("{label} (a scheme send does not know)"), BY_HAND)
        }
        Err(Obstacle::Unexplained) => (
            format!("{}, which the card does not describe", asked.name),
            BY_HAND,
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

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

    #[test]
    fn a_key_whose_place_is_not_known_is_given_by_hand() {
        let scheme = r#""securitySchemes": {"k": {"type": "apiKey", "in": "body", "name": "key"}}"#;
        let asking = format!(r#"{scheme}, "security": [{{"k": []}}]"#);
        let key = SendOptions {
            api_key: Some("secret".to_owned()),
            ..SendOptions::new("m")
        };
        let Err(TalkError::CredentialsNeeded { hint, .. }) = asked(&asking, &key) else {
            panic!("the key went somewhere");
        };
        assert!(hint.contains("--header"), "{hint}");
        let own = SendOptions {
            headers: vec![("X-Ticket".to_owned(), "7".to_owned())],
            ..SendOptions::new("m")
        };
        assert_eq!(asked(&asking, &own).unwrap().headers["x-ticket"], "7");
        assert_eq!(asked(scheme, &key).err(), Some(TalkError::KeyHasNoPlace));
    }
}
