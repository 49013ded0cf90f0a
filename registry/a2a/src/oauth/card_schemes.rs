//! Sign-in schemes of a card: its OAuth 2 flows, and the addresses of documents that describe more.

use a2a_card::{AgentCard, AuthScheme, SchemeKind, auth_requirements};
use serde_json::{Map, Value};
use url::Url;

use super::{OauthEndpoints, OauthError, parse_oauth_url};

const MAX_SCHEMES: usize = 20;

/// How a token is obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GrantType {
    /// In a browser, which is redirected back with a code (RFC 6749 section 4.1, RFC 7636).
    AuthorizationCode,
    /// On another device, with a code to type (RFC 8628).
    DeviceCode,
    /// With the client's own secret, without a person (RFC 6749 section 4.4).
    ClientCredentials,
}

/// A scheme of a card that takes access tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OauthScheme {
    /// The card's name of the scheme.
    pub scheme_name: String,
    /// The scopes that the card requires; if it requires none, those that its flows list.
    pub scopes: Vec<String>,
    /// The flows whose addresses the card contains.
    pub flows: Vec<OauthFlow>,
    /// The document that describes the authorization server, if the card names one.
    pub metadata_url: Option<Url>,
    /// Whether that document is `OpenID` Connect's.
    pub is_openid: bool,
}

/// A flow with its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OauthFlow {
    /// The kind of flow.
    pub grant_type: GrantType,
    /// The addresses that it uses.
    pub endpoints: OauthEndpoints,
}

impl OauthScheme {
    /// The flow of this kind, if the card contains its addresses.
    #[must_use]
    pub fn flow_for(&self, grant_type: GrantType) -> Option<&OauthFlow> {
        self.flows.iter().find(|flow| flow.grant_type == grant_type)
    }

    /// The addresses of the card that identify a sign-in.
    #[must_use]
    pub fn identifying_urls(&self) -> Vec<&Url> {
        let tokens = self.flows.iter().map(|flow| &flow.endpoints.token);
        self.metadata_url.iter().chain(tokens).collect()
    }
}

/// The OAuth schemes of an agent, in the card's order. Fails if the card names an address that must not be used.
pub fn oauth_schemes(card: &AgentCard) -> Result<Vec<OauthScheme>, OauthError> {
    let mut schemes: Vec<OauthScheme> = Vec::new();
    for asked in auth_requirements(card).alternatives.iter().flatten() {
        if let Some(sign_in) = parse_oauth_scheme(asked)?
            && !schemes.contains(&sign_in)
        {
            schemes.push(sign_in);
        }
        if schemes.len() == MAX_SCHEMES {
            break;
        }
    }
    Ok(schemes)
}

fn parse_oauth_scheme(auth_scheme: &AuthScheme<'_>) -> Result<Option<OauthScheme>, OauthError> {
    let (flows, document, is_openid) = match auth_scheme.kind.as_deref() {
        Some(SchemeKind::Oauth2 {
            flows,
            metadata_url,
        }) => (flows.as_object(), metadata_url.as_deref(), false),
        Some(SchemeKind::OpenIdConnect { url }) => (None, Some(url.as_str()), true),
        _ => return Ok(None),
    };
    let mut scopes = auth_scheme.scopes.to_vec();
    let mut oauth_flows = Vec::new();
    for (name, grant) in [
        ("authorizationCode", GrantType::AuthorizationCode),
        ("deviceCode", GrantType::DeviceCode),
        ("clientCredentials", GrantType::ClientCredentials),
    ] {
        let Some(flow) = flows.and_then(|flows| camel_or_snake_member(flows, name)?.as_object())
        else {
            continue;
        };
        if let Some(endpoints) = parse_oauth_endpoints(flow, grant)? {
            oauth_flows.push(OauthFlow {
                grant_type: grant,
                endpoints,
            });
            let listed = camel_or_snake_member(flow, "scopes").and_then(Value::as_object);
            if auth_scheme.scopes.is_empty() {
                scopes.extend(listed.into_iter().flat_map(|listed| listed.keys().cloned()));
            }
        }
    }
    scopes.dedup();
    if is_openid && !scopes.iter().any(|scope| scope == "openid") {
        scopes.insert(0, "openid".to_owned());
    }
    Ok(Some(OauthScheme {
        scheme_name: auth_scheme.name.to_owned(),
        scopes,
        flows: oauth_flows,
        metadata_url: document.map(parse_oauth_url).transpose()?,
        is_openid,
    }))
}

/// The addresses of a flow; `None` if one that it needs is missing.
fn parse_oauth_endpoints(
    flow: &Map<String, Value>,
    grant_type: GrantType,
) -> Result<Option<OauthEndpoints>, OauthError> {
    let url_member = |name: &str| {
        let text = camel_or_snake_member(flow, name).and_then(Value::as_str);
        let text = text.filter(|text| !text.is_empty());
        text.map(parse_oauth_url).transpose()
    };
    let Some(token) = url_member("tokenUrl")? else {
        return Ok(None);
    };
    let endpoints = OauthEndpoints {
        authorization: url_member("authorizationUrl")?,
        device: url_member("deviceAuthorizationUrl")?,
        refresh: url_member("refreshUrl")?,
        ..OauthEndpoints::from_token_url(token)
    };
    let complete = match grant_type {
        GrantType::AuthorizationCode => endpoints.authorization.is_some(),
        GrantType::DeviceCode => endpoints.device.is_some(),
        GrantType::ClientCredentials => true,
    };
    Ok(complete.then_some(endpoints))
}

/// A member in camelCase or `snake_case`; null counts as absent.
fn camel_or_snake_member<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let snake: String = name
        .chars()
        .flat_map(|character| {
            let underscore = character.is_ascii_uppercase().then_some('_');
            underscore
                .into_iter()
                .chain([character.to_ascii_lowercase()])
        })
        .collect();
    let value = object.get(name).or_else(|| object.get(&snake));
    value.filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn read_from(card: Value) -> Result<Vec<OauthScheme>, OauthError> {
        oauth_schemes(
            &a2a_card::parse_card(card.to_string().as_bytes())
                .unwrap()
                .card,
        )
    }

    fn older(flows: Value) -> Result<Vec<OauthScheme>, OauthError> {
        read_from(
            json!({"name": "A", "url": "https://a.example", "securitySchemes":
            {"o": {"type": "oauth2", "flows": flows}}, "security": [{"o": []}]}),
        )
    }

    #[test]
    fn flows_of_every_version_are_read() {
        let code = json!({"authorizationUrl": "https://l.example/a", "tokenUrl": "https://l.example/t",
            "refreshUrl": "https://l.example/r", "scopes": {"read": "Reads."}});
        let found = older(
            json!({"authorizationCode": code, "clientCredentials": {"tokenUrl": "https://l.example/t"}}),
        );
        let found = found.unwrap().remove(0);
        assert_eq!(
            (found.scheme_name.as_str(), found.scopes.as_slice()),
            ("o", &["read".to_owned()][..])
        );
        let flow = found.flow_for(GrantType::AuthorizationCode).unwrap();
        assert_eq!(flow.endpoints.refresh.as_ref().unwrap().path(), "/r");
        assert!(found.flow_for(GrantType::ClientCredentials).is_some());
        assert!(found.flow_for(GrantType::DeviceCode).is_none());

        let newer = json!({"name": "A", "supportedInterfaces": [{"url": "https://a.example", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "securitySchemes": {
                "d": {"oauth2SecurityScheme": {"flows": {"deviceCode": {"deviceAuthorizationUrl": "https://l.example/d", "tokenUrl": "https://l.example/t"}},
                    "oauth2MetadataUrl": "https://l.example/.well-known/oauth-authorization-server"}},
                "i": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://l.example/.well-known/openid-configuration"}}},
            "securityRequirements": [{"schemes": {"d": {"list": ["write"]}}}, {"schemes": {"i": {"list": []}}}]});
        let found = read_from(newer).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].scopes, ["write"]);
        assert!(found[0].flow_for(GrantType::DeviceCode).is_some() && !found[0].is_openid);
        assert_eq!(found[0].identifying_urls().len(), 2);
        assert!(found[1].is_openid && found[1].flows.is_empty());
        assert_eq!(found[1].scopes, ["openid"]);
    }

    #[test]
    fn a_long_list_of_sign_ins_is_cut() {
        let scheme = |nth: usize| {
            let flows =
                json!({"clientCredentials": {"tokenUrl": format!("https://l.example/{nth}")}});
            (
                format!("s{nth:02}"),
                json!({"type": "oauth2", "flows": flows}),
            )
        };
        let schemes: Map<String, Value> = (0..MAX_SCHEMES + 5).map(scheme).collect();
        let card = json!({"name": "A", "url": "https://a.example", "securitySchemes": schemes});
        assert_eq!(read_from(card).unwrap().len(), MAX_SCHEMES);
    }

    #[test]
    fn a_flow_without_its_addresses_is_none_and_a_bad_address_is_refused() {
        for lacking in [
            json!({"authorizationCode": {"tokenUrl": "https://l.example/t"}}),
            json!({"clientCredentials": {"tokenUrl": ""}}),
            json!({"deviceCode": {"tokenUrl": "https://l.example/t"}}),
            json!({"implicit": {"authorizationUrl": "https://l.example/a"}}),
            json!({"clientCredentials": "https://l.example/t"}),
            json!([]),
        ] {
            assert!(
                older(lacking.clone()).unwrap()[0].flows.is_empty(),
                "{lacking}"
            );
        }
        for bad in ["http://l.example/t", "https://u:p@l.example/t", "t"] {
            let flows = json!({"clientCredentials": {"tokenUrl": bad}});
            assert!(older(flows).is_err(), "{bad}");
        }
    }
}
