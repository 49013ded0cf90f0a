//! Reads security schemes in the form of 0.2 and 0.3, after `OpenAPI`, with the kind in `type` (0.3 §5.5.3).

use serde_json::Value;

use super::informal::names_no_scheme;
use super::names;
use crate::finding::Findings;
use crate::member::{self, Length, Members};
use crate::{SchemeKind, rules};

/// Reads a scheme by its `type`, or by its members if `type` is missing.
pub(super) fn scheme(
    members: &mut Members<'_>,
    out: &mut Findings,
) -> Option<(SchemeKind, Option<String>)> {
    let description = members.text("description", Length::Prose, out);
    let at = members.at();
    let named = members.text("type", Length::Line, out);
    let label = match &named {
        Some(text) => text.clone(),
        None => {
            let guess = untyped(members)?;
            out.add(&rules::SCHEME_KIND, &at, guess);
            guess.to_owned()
        }
    };
    if names_no_scheme(&label) {
        return None;
    }
    let mut kind = labelled(&label);
    if named.is_some() && !is_exact(&label) {
        out.add(&rules::SCHEME_KIND, &at.name("type"), &label);
    }
    match &mut kind {
        SchemeKind::ApiKey {
            location,
            parameter,
        } => {
            *location = names::take_location(members, out);
            *parameter = members.text("name", Length::Line, out).unwrap_or_default();
        }
        SchemeKind::Http {
            scheme,
            bearer_format,
        } => {
            if let Some(text) = members.text("scheme", Length::Line, out) {
                *scheme = text.to_lowercase();
            }
            *bearer_format = members
                .text("bearerFormat", Length::Line, out)
                .or(bearer_format.take());
        }
        SchemeKind::Oauth2 {
            flows,
            metadata_url,
        } => {
            *flows = names::take_flows(members, out);
            *metadata_url = members.text("oauth2MetadataUrl", Length::Address, out);
        }
        SchemeKind::OpenIdConnect { url } => {
            *url = members
                .text("openIdConnectUrl", Length::Address, out)
                .unwrap_or_default();
        }
        SchemeKind::MutualTls | SchemeKind::None | SchemeKind::Other { .. } => {}
    }
    Some((kind, description))
}

/// Whether the label is one of 0.3, in exact spelling.
fn is_exact(label: &str) -> bool {
    matches!(
        label,
        "apiKey" | "http" | "oauth2" | "openIdConnect" | "mutualTLS"
    )
}

fn untyped(members: &Members<'_>) -> Option<&'static str> {
    if let Some(scheme) = members.peek("scheme").and_then(Value::as_str) {
        // `scheme` alone may name any kind; what it does not name is a scheme of HTTP.
        return Some(match labelled(scheme) {
            SchemeKind::ApiKey { .. } => "apiKey",
            SchemeKind::Oauth2 { .. } => "oauth2",
            SchemeKind::OpenIdConnect { .. } => "openIdConnect",
            SchemeKind::MutualTls => "mutualTLS",
            SchemeKind::None => "none",
            SchemeKind::Http { .. } | SchemeKind::Other { .. } => "http",
        });
    }
    let has = |name: &str| members.peek(name).is_some();
    if has("flows") {
        Some("oauth2")
    } else if has("openIdConnectUrl") {
        Some("openIdConnect")
    } else if has("name") && (has("in") || has("location") || has("in_")) {
        Some("apiKey")
    } else {
        None
    }
}

/// The kind that a label stands for, without details: `bearer`, `api-key`, `OAuth2`, `none`, …
pub(crate) fn labelled(label: &str) -> SchemeKind {
    let http = |scheme: &str, format: Option<&str>| SchemeKind::Http {
        scheme: scheme.to_owned(),
        bearer_format: format.map(str::to_owned),
    };
    let folded = member::folded(label);
    // `api_key_required` names the key as well.
    let named = folded.strip_suffix("required").unwrap_or(&folded);
    match named {
        "apikey" | "key" => SchemeKind::ApiKey {
            location: String::new(),
            parameter: String::new(),
        },
        "http" | "httpauth" => http("", None),
        "bearer" | "bearertoken" | "httpbearer" | "bearerauth" => http("bearer", None),
        "jwt" | "bearerjwt" => http("bearer", Some("JWT")),
        "basic" | "basicauth" | "httpbasic" => http("basic", None),
        "digest" => http("digest", None),
        "oauth" | "oauth2" | "oauth20" | "oauth21" => SchemeKind::Oauth2 {
            flows: Value::Null,
            metadata_url: None,
        },
        "openidconnect" | "oidc" | "openid" => SchemeKind::OpenIdConnect { url: String::new() },
        "mutualtls" | "mtls" | "clientcertificate" => SchemeKind::MutualTls,
        "none" | "noauth" | "public" | "anonymous" | "open" => SchemeKind::None,
        _ => SchemeKind::Other {
            label: label.to_owned(),
        },
    }
}
