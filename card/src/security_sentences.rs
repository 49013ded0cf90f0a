//! Sentences in plain English about the credentials that a caller needs.

use crate::auth_requirements::{AuthScheme, auth_requirements};
use crate::member_reader::unique_values;
use crate::{AgentCard, SchemeKind};

/// One sentence for each alternative, without a full stop: `` Send an API key in the header `X-Api-Key` ``.
///
/// Names in the sentences are the card's own text in backticks, not escaped for any output. A card that requires
/// nothing but declares schemes has one sentence for each scheme. A card without schemes and requirements has one
/// sentence: that no credentials are needed, or that the requirement cannot be read.
pub fn security_sentences(card: &AgentCard) -> Vec<String> {
    let requirements = auth_requirements(card);
    if requirements.unreadable {
        return vec![UNREADABLE_REQUIREMENT.to_owned()];
    }
    let mut sentences: Vec<String> = requirements
        .alternatives
        .iter()
        .map(|schemes| capitalize(&auth_alternative_sentence(schemes)))
        .collect();
    if sentences.is_empty() {
        sentences.push(capitalize(NO_CREDENTIALS));
    }
    unique_values(sentences)
}

const UNREADABLE_REQUIREMENT: &str = "The card requires credentials in a form that cannot be read";

const NO_CREDENTIALS: &str = "call without credentials";

/// The requirements of one alternative, joined by "and".
fn auth_alternative_sentence(schemes: &[AuthScheme<'_>]) -> String {
    let clauses: Vec<String> = schemes
        .iter()
        .map(|scheme| match &scheme.kind {
            Some(kind) => scheme_clause(kind, scheme.scopes),
            None => format!(
                "authenticate with `{}`, which the card does not describe",
                scheme.name
            ),
        })
        .collect();
    if clauses.is_empty() {
        NO_CREDENTIALS.to_owned()
    } else {
        clauses.join(" and ")
    }
}

/// The requirement of one scheme, as a clause that begins in lower case.
fn scheme_clause(kind: &SchemeKind, scopes: &[String]) -> String {
    match kind {
        SchemeKind::ApiKey {
            location,
            parameter,
        } => match (location.as_str(), parameter.as_str()) {
            ("", "") => "send an API key; the card does not say where".to_owned(),
            ("", name) => format!("send an API key as `{name}`"),
            ("header", "") => "send an API key in a header".to_owned(),
            ("header", name) => format!("send an API key in the header `{name}`"),
            ("query", name) => format!("send an API key in the query parameter `{name}`"),
            ("cookie", name) => format!("send an API key in the cookie `{name}`"),
            (place, name) => format!("send an API key in `{place}` as `{name}`"),
        },
        SchemeKind::Http {
            scheme,
            bearer_format,
        } => match (scheme.as_str(), bearer_format) {
            ("bearer", Some(format)) => format!("send a bearer token ({format})"),
            ("bearer", None) => "send a bearer token".to_owned(),
            ("basic", _) => "send a user name and a password (HTTP Basic)".to_owned(),
            ("", _) => "authenticate with HTTP; the card does not say how".to_owned(),
            (other, _) => format!("authenticate with the HTTP scheme `{other}`"),
        },
        SchemeKind::Oauth2 { .. } => {
            let mut text = "get an OAuth 2.0 access token".to_owned();
            if !scopes.is_empty() {
                let scopes: Vec<String> = scopes.iter().map(|s| format!("`{s}`")).collect();
                text.push_str(&format!(" with the scopes {}", scopes.join(", ")));
            }
            text
        }
        SchemeKind::OpenIdConnect { url } if url.is_empty() => {
            "sign in with OpenID Connect".to_owned()
        }
        SchemeKind::OpenIdConnect { url } => format!("sign in with OpenID Connect at `{url}`"),
        SchemeKind::MutualTls => "present a client certificate (mutual TLS)".to_owned(),
        SchemeKind::None => NO_CREDENTIALS.to_owned(),
        SchemeKind::Other { label } => format!("authenticate with `{label}`"),
    }
}

fn capitalize(clause: &str) -> String {
    let mut characters = clause.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::parse_card;

    fn sentences_for_members(members: &str) -> Vec<String> {
        let text = format!(r#"{{"name":"A","url":"https://a.example",{members}}}"#);
        security_sentences(&parse_card(text.as_bytes()).unwrap().card)
    }

    #[test]
    fn every_alternative_is_one_sentence() {
        let actual = sentences_for_members(
            r#""securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
                "jwt": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}},
                "oauth": {"type": "oauth2", "flows": {}},
                "tls": {"type": "mutualTLS"}
            },
            "security": [{"key": []}, {"jwt": [], "tls": []}, {"oauth": ["read", "write"]}, {}, {"gone": []}]"#,
        );
        assert_eq!(
            actual,
            [
                "Send an API key in the header `X-Api-Key`",
                "Send a bearer token (JWT) and present a client certificate (mutual TLS)",
                "Get an OAuth 2.0 access token with the scopes `read`, `write`",
                "Call without credentials",
                "Authenticate with `gone`, which the card does not describe",
            ]
        );
    }

    #[test]
    fn a_card_without_security_asks_for_nothing() {
        assert_eq!(
            sentences_for_members(r#""security": []"#),
            ["Call without credentials"]
        );
        assert_eq!(
            sentences_for_members(r#""authentication": {"schemes": ["apiKey"]}"#),
            ["Send an API key; the card does not say where"]
        );
    }
}
