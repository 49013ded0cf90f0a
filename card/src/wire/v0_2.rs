//! Reader of security schemes in the form of 0.2 and 0.3, after `OpenAPI`, with the kind in `type` (0.3 §5.5.3).

use serde_json::Value;

use super::informal_credentials::is_access_policy_label;
use super::value_spellings;
use crate::finding::FindingCollector;
use crate::member_reader::{self, LengthLimit, MemberReader};
use crate::{SchemeKind, rules};

/// Reads a scheme by its `type`, or by its members if `type` is missing.
pub(super) fn take_typed_scheme(
    members: &mut MemberReader<'_>,
    out: &mut FindingCollector,
) -> Option<(SchemeKind, Option<String>)> {
    let description = members.take_text("description", LengthLimit::Prose, out);
    let pointer = members.pointer();
    let declared_type = members.take_text("type", LengthLimit::Line, out);
    let label = match &declared_type {
        Some(text) => text.clone(),
        None => {
            let guessed_type = infer_scheme_type(members)?;
            out.add(&rules::SCHEME_KIND, &pointer, guessed_type);
            guessed_type.to_owned()
        }
    };
    if is_access_policy_label(&label) {
        return None;
    }
    let mut kind = scheme_kind_from_label(&label);
    if declared_type.is_some() && !is_defined_scheme_type(&label) {
        out.add(&rules::SCHEME_KIND, &pointer.member("type"), &label);
    }
    match &mut kind {
        SchemeKind::ApiKey {
            location,
            parameter,
        } => {
            *location = value_spellings::take_api_key_location(members, out);
            *parameter = members
                .take_text("name", LengthLimit::Line, out)
                .unwrap_or_default();
        }
        SchemeKind::Http {
            scheme,
            bearer_format,
        } => {
            if let Some(text) = members.take_text("scheme", LengthLimit::Line, out) {
                *scheme = text.to_lowercase();
            }
            *bearer_format = members
                .take_text("bearerFormat", LengthLimit::Line, out)
                .or(bearer_format.take());
        }
        SchemeKind::Oauth2 {
            flows,
            metadata_url,
        } => {
            *flows = value_spellings::take_oauth_flows(members, out);
            *metadata_url = members.take_text("oauth2MetadataUrl", LengthLimit::Address, out);
        }
        SchemeKind::OpenIdConnect { url } => {
            *url = members
                .take_text("openIdConnectUrl", LengthLimit::Address, out)
                .unwrap_or_default();
        }
        SchemeKind::MutualTls | SchemeKind::None | SchemeKind::Other { .. } => {}
    }
    Some((kind, description))
}

/// Whether the label is a type of 0.3, in its exact spelling.
fn is_defined_scheme_type(label: &str) -> bool {
    matches!(
        label,
        "apiKey" | "http" | "oauth2" | "openIdConnect" | "mutualTLS"
    )
}

fn infer_scheme_type(members: &MemberReader<'_>) -> Option<&'static str> {
    if let Some(scheme) = members.peek_member("scheme").and_then(Value::as_str) {
        // `scheme` alone may name any kind; a value that names no other kind is an HTTP scheme.
        return Some(match scheme_kind_from_label(scheme) {
            SchemeKind::ApiKey { .. } => "apiKey",
            SchemeKind::Oauth2 { .. } => "oauth2",
            SchemeKind::OpenIdConnect { .. } => "openIdConnect",
            SchemeKind::MutualTls => "mutualTLS",
            SchemeKind::None => "none",
            SchemeKind::Http { .. } | SchemeKind::Other { .. } => "http",
        });
    }
    let has_member = |name: &str| members.peek_member(name).is_some();
    if has_member("flows") {
        Some("oauth2")
    } else if has_member("openIdConnectUrl") {
        Some("openIdConnect")
    } else if has_member("name")
        && (has_member("in") || has_member("location") || has_member("in_"))
    {
        Some("apiKey")
    } else {
        None
    }
}

/// The kind that a label means, without details: `bearer`, `api-key`, `OAuth2`, `none`, …
pub(crate) fn scheme_kind_from_label(label: &str) -> SchemeKind {
    let http_kind = |scheme: &str, format: Option<&str>| SchemeKind::Http {
        scheme: scheme.to_owned(),
        bearer_format: format.map(str::to_owned),
    };
    let folded_label = member_reader::fold_name(label);
    // `api_key_required` names the key as well.
    let scheme_name = folded_label
        .strip_suffix("required")
        .unwrap_or(&folded_label);
    match scheme_name {
        "apikey" | "key" => SchemeKind::ApiKey {
            location: String::new(),
            parameter: String::new(),
        },
        "http" | "httpauth" => http_kind("", None),
        "bearer" | "bearertoken" | "httpbearer" | "bearerauth" => http_kind("bearer", None),
        "jwt" | "bearerjwt" => http_kind("bearer", Some("JWT")),
        "basic" | "basicauth" | "httpbasic" => http_kind("basic", None),
        "digest" => http_kind("digest", None),
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
