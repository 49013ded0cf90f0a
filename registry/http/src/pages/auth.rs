//! Labels for the credentials that an agent requires from its callers.

use a2a_registry_core::text;

/// Maximum number of credential kinds in a line; the agent page shows all.
const MAX_KINDS: usize = 3;

/// Label of a value of the filter `auth`.
pub(crate) fn auth_label(value: &str) -> String {
    match value {
        "none" => "No credentials".to_owned(),
        "unknown" => "Not understood".to_owned(),
        "apiKey" => "API key".to_owned(),
        "oauth2" => "OAuth 2.0".to_owned(),
        "openIdConnect" => "OpenID Connect".to_owned(),
        "mutualTLS" => "Client certificate".to_owned(),
        _ => match value.strip_prefix("http:") {
            Some("bearer") => "Bearer token".to_owned(),
            Some("basic") => "User name and password".to_owned(),
            Some(scheme) => format!("HTTP {}", text::single_line(scheme, 30)),
            None => text::single_line(value, 40),
        },
    }
}

pub(crate) fn auth_kinds_sentence(values: &[String]) -> String {
    let mut kinds: Vec<String> = values
        .iter()
        .take(MAX_KINDS)
        .map(|value| auth_label(value))
        .collect();
    if values.len() > MAX_KINDS {
        kinds.push("…".to_owned());
    }
    match values {
        [] => "Credentials not stated".to_owned(),
        [only] if only == "unknown" => "Credentials not understood".to_owned(),
        _ => kinds.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_credentials_of_an_agent_are_named_in_words_of_people() {
        let of = |values: &[&str]| {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            auth_kinds_sentence(&values)
        };
        assert_eq!(of(&["none"]), "No credentials");
        assert_eq!(of(&["http:bearer", "apiKey"]), "Bearer token, API key");
        assert_eq!(of(&["unknown"]), "Credentials not understood");
        assert_eq!(of(&[]), "Credentials not stated");
        assert_eq!(of(&["http:digest"]), "HTTP digest");
        let many = of(&["apiKey", "oauth2", "mutualTLS", "http:x"]);
        assert_eq!(many, "API key, OAuth 2.0, Client certificate, …");
    }
}
