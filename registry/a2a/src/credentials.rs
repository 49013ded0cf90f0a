//! Adds the user's credentials to requests, as the card requires.

use std::sync::Arc;

use a2a_card::{AgentCard, AuthScheme, SchemeKind};
use data_encoding::BASE64;
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};

use super::foreign_text::shorten_to_line;
use super::route_selection::{
    AvailableCredentials, CredentialChoice, CredentialPlacement, ProvidedCredentialKinds,
    UnmetSchemeReason, api_key_placement, choose_credentials, is_http_basic, scheme_placement,
};
use super::{BasicLogin, CallError, ClientCertificate, SendOptions, TokenSource};

#[derive(Default)]
pub(super) struct RequestCredentials {
    /// Headers: those that schemes require, then the user's own.
    pub headers: HeaderMap,
    /// Keys in the query, by their parameter.
    pub query: Vec<(String, String)>,
    /// Where the bearer token of each request comes from, if it is not among the headers.
    pub token_source: Option<Arc<dyn TokenSource>>,
    pub certificate: Option<ClientCertificate>,
    /// Whether the user gave any of them.
    pub is_provided: bool,
}

/// Chooses the credentials for a card: the first alternative that can be met, and one that requires something before
/// one that requires nothing, so that given credentials are used. A token is sent even if the card requires none: the
/// user gave it for this agent, and cards often omit their security.
pub(super) fn select_credentials(
    card: &AgentCard,
    options: &SendOptions,
) -> Result<RequestCredentials, CallError> {
    let user_headers = parse_user_headers(&options.headers)?;
    let available = AvailableCredentials::Provided(ProvidedCredentialKinds {
        bearer: options.bearer_token.is_some() || options.token_source.is_some(),
        api_key: options.api_key.is_some(),
        basic: options.basic_login.is_some(),
        certificate: options.certificate.is_some(),
        headers: user_headers.keys().map(HeaderName::as_str).collect(),
    });
    let placements = match choose_credentials(card, &available) {
        CredentialChoice::Placements(wanted) => wanted,
        CredentialChoice::NotRequired => optional_credential_placements(card, options)?,
        CredentialChoice::Unsatisfiable(alternatives) => {
            return Err(credentials_required_error(&alternatives));
        }
    };
    let mut credentials = RequestCredentials {
        is_provided: !user_headers.is_empty() || options.certificate.is_some(),
        certificate: options.certificate.clone(),
        ..RequestCredentials::default()
    };
    for credential in &placements {
        add_credential(credential, options, &mut credentials)?;
    }
    for name in user_headers.keys() {
        credentials.headers.remove(name);
    }
    if user_headers.contains_key(AUTHORIZATION) {
        credentials.token_source = None;
    }
    for (name, value) in &user_headers {
        credentials.headers.append(name, value.clone());
    }
    Ok(credentials)
}

/// For an agent that requires no credentials: the token as a bearer token, the key as a declared scheme defines.
fn optional_credential_placements(
    card: &AgentCard,
    options: &SendOptions,
) -> Result<Vec<CredentialPlacement>, CallError> {
    let mut credentials = Vec::new();
    if options.bearer_token.is_some() || options.token_source.is_some() {
        credentials.push(CredentialPlacement::Bearer);
    } else if options.basic_login.is_some() {
        credentials.push(CredentialPlacement::Authorization);
    }
    if options.api_key.is_some() {
        let mut schemes = card.security_schemes.iter();
        let place = schemes.find_map(|scheme| api_key_placement(&scheme.kind));
        credentials.push(place.ok_or(CallError::NoApiKeyScheme)?);
    }
    Ok(credentials)
}

fn add_credential(
    placement: &CredentialPlacement,
    options: &SendOptions,
    credentials: &mut RequestCredentials,
) -> Result<(), CallError> {
    let basic_value = options
        .basic_login
        .as_ref()
        .map(basic_authorization)
        .transpose()?;
    let value = match placement {
        CredentialPlacement::Bearer if options.bearer_token.is_none() => {
            credentials.token_source = options.token_source.clone();
            credentials.is_provided |= credentials.token_source.is_some();
            return Ok(());
        }
        CredentialPlacement::Bearer => &options.bearer_token,
        // Users set the header of schemes other than Basic by hand.
        CredentialPlacement::Authorization => &basic_value,
        _ => &options.api_key,
    };
    let Some(value) = value else {
        return Ok(());
    };
    credentials.is_provided = true;
    let headers = &mut credentials.headers;
    match placement {
        CredentialPlacement::Bearer => {
            headers.insert(AUTHORIZATION, bearer_header(value)?);
        }
        CredentialPlacement::Authorization => {
            headers.insert(AUTHORIZATION, sensitive_header(value, "the password")?);
        }
        CredentialPlacement::HeaderKey(parameter) => {
            let name = HeaderName::try_from(parameter).map_err(|_| CallError::BadHeader {
                name: shorten_to_line(parameter),
            })?;
            headers.insert(name, sensitive_header(value, "the API key")?);
        }
        CredentialPlacement::CookieKey(parameter) => {
            let value = sensitive_header(&format!("{parameter}={value}"), "the API key's cookie")?;
            headers.append(COOKIE, value);
        }
        CredentialPlacement::QueryKey(parameter) => {
            credentials.query.push((parameter.clone(), value.clone()));
        }
    }
    Ok(())
}

pub(super) fn bearer_header(token: &str) -> Result<HeaderValue, CallError> {
    sensitive_header(&format!("Bearer {}", token.trim()), "the bearer token")
}

/// The value of `Authorization` with a user and a password, in UTF-8 (RFC 7617 section 2).
fn basic_authorization(login: &BasicLogin) -> Result<String, CallError> {
    let BasicLogin { user, password } = login;
    let broken = |text: &str| text.chars().any(char::is_control);
    if user.contains(':') || broken(user) || broken(password) {
        return Err(CallError::InvalidBasicLogin);
    }
    let encoded = BASE64.encode(format!("{user}:{password}").as_bytes());
    Ok(format!("Basic {encoded}"))
}

fn parse_user_headers(name_values: &[(String, String)]) -> Result<HeaderMap, CallError> {
    let mut headers = HeaderMap::new();
    for (name, value) in name_values {
        let bad = || CallError::BadHeader {
            name: shorten_to_line(name),
        };
        let parsed = HeaderName::try_from(name.trim()).map_err(|_| bad())?;
        headers.append(parsed, sensitive_header(value.trim(), name)?);
    }
    Ok(headers)
}

/// A header value that is never shown in debug output.
fn sensitive_header(value: &str, name: &str) -> Result<HeaderValue, CallError> {
    let mut value = HeaderValue::try_from(value).map_err(|_| CallError::BadHeader {
        name: shorten_to_line(name),
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The error for missing credentials: every alternative in words, and the flag for the first one.
fn credentials_required_error(alternatives: &[Vec<AuthScheme<'_>>]) -> CallError {
    let mut descriptions = Vec::new();
    let mut hint = None;
    for alternative in alternatives.iter().take(4) {
        let mut parts = Vec::new();
        for auth_scheme in alternative.iter().take(4) {
            let (description, flag) = describe_scheme(auth_scheme);
            let scoped = if auth_scheme.scopes.is_empty() {
                String::new()
            } else {
                format!(" with {}", auth_scheme.scopes.join(" "))
            };
            parts.push(format!("{description}{scoped}"));
            hint.get_or_insert(flag);
        }
        descriptions.push(parts.join(" and "));
    }
    if descriptions.is_empty() {
        descriptions.push("credentials that the card describes in an unknown form".to_owned());
    }
    CallError::CredentialsRequired {
        needed: shorten_to_line(&descriptions.join(", or ")),
        hint: hint
            .unwrap_or("use --bearer @FILE or --header 'NAME: VALUE'")
            .to_owned(),
    }
}

/// Description of a scheme's credential, and the flag to provide it.
fn describe_scheme(auth_scheme: &AuthScheme<'_>) -> (String, &'static str) {
    const HEADER_HINT: &str = "use --header 'NAME: VALUE'";
    const BEARER_HINT: &str = "use --bearer @FILE";
    const SIGN_IN_HINT: &str = "sign in with `credentials add`, or use --bearer @FILE";
    const API_KEY_HINT: &str = "use --api-key @FILE";
    match scheme_placement(auth_scheme) {
        Ok(None) => ("nothing".to_owned(), ""),
        Ok(Some(CredentialPlacement::Bearer)) => {
            let what = match auth_scheme.kind.as_deref() {
                Some(SchemeKind::Oauth2 { .. }) => "an OAuth 2 access token",
                Some(SchemeKind::OpenIdConnect { .. }) => "an OpenID Connect token",
                _ => "a bearer token",
            };
            let hint = match auth_scheme.kind.as_deref() {
                Some(SchemeKind::Oauth2 { .. } | SchemeKind::OpenIdConnect { .. }) => SIGN_IN_HINT,
                _ => BEARER_HINT,
            };
            (what.to_owned(), hint)
        }
        Ok(Some(CredentialPlacement::Authorization)) if is_http_basic(auth_scheme) => {
            ("HTTP basic authentication".to_owned(), "use --basic USER")
        }
        Ok(Some(CredentialPlacement::Authorization)) => {
            let scheme = match auth_scheme.kind.as_deref() {
                Some(SchemeKind::Http { scheme, .. }) => scheme,
                _ => "",
            };
            let what = format!("HTTP {scheme} authentication");
            (what, "use --header 'Authorization: …'")
        }
        Ok(Some(CredentialPlacement::HeaderKey(name))) => {
            (format!("an API key in the header {name}"), API_KEY_HINT)
        }
        Ok(Some(CredentialPlacement::CookieKey(name))) => {
            (format!("an API key in the cookie {name}"), API_KEY_HINT)
        }
        Ok(Some(CredentialPlacement::QueryKey(name))) => {
            (format!("an API key in the query {name}"), API_KEY_HINT)
        }
        Err(UnmetSchemeReason::UnknownLocation) => (
            "an API key in an unknown location of the request".to_owned(),
            HEADER_HINT,
        ),
        Err(UnmetSchemeReason::ClientCertificate) => (
            "a client certificate".to_owned(),
            "use --cert FILE --key FILE",
        ),
        Err(UnmetSchemeReason::UnknownKind(label)) => (
            format!("{label} (a scheme that `send` does not support)"),
            HEADER_HINT,
        ),
        Err(UnmetSchemeReason::Undeclared) => (
            format!("{}, which the card does not describe", auth_scheme.name),
            HEADER_HINT,
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;

    fn asked(members: &str, options: &SendOptions) -> Result<RequestCredentials, CallError> {
        let card = format!(r#"{{"name": "A", "url": "https://a.example", {members}}}"#);
        select_credentials(
            &a2a_card::parse_card(card.as_bytes()).unwrap().card,
            options,
        )
    }

    #[test]
    fn a_demand_in_no_known_form_is_met_by_what_the_user_gives() {
        let nothing = SendOptions::new("m");
        let token = SendOptions {
            bearer_token: Some("secret".to_owned()),
            ..SendOptions::new("m")
        };
        for unread in [
            r#""auth_required": true"#,
            r#""auth": {"required": true}"#,
            r#""security": [{}], "authRequired": true"#,
        ] {
            let Err(CallError::CredentialsRequired { needed, hint }) = asked(unread, &nothing)
            else {
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
        let Err(CallError::CredentialsRequired { hint, .. }) = asked(&asking, &key) else {
            panic!("the key went somewhere");
        };
        assert!(hint.contains("--header"), "{hint}");
        let own = SendOptions {
            headers: vec![("X-Ticket".to_owned(), "7".to_owned())],
            ..SendOptions::new("m")
        };
        assert_eq!(asked(&asking, &own).unwrap().headers["x-ticket"], "7");
        assert_eq!(asked(scheme, &key).err(), Some(CallError::NoApiKeyScheme));
    }
}
