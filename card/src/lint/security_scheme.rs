//! Rules for single security schemes.

use serde_json::{Map, Value};
use url::Url;

use super::target::{LintTarget, ProtocolGeneration, member_in_either_spelling};
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::{MAX_LIST_ELEMENTS, is_spelling_of};
use crate::rule::Rule;
use crate::wire::v1_0::SCHEME_WRAPPERS;
use crate::{SchemeKind, SecurityScheme};

fn for_each_scheme(
    target: &LintTarget<'_>,
    mut visit: impl FnMut(&SecurityScheme, &JsonPointer<'_>),
) {
    let root = JsonPointer::Root;
    let position = target.position_of("securitySchemes");
    let pointer = position.pointer_in(&root);
    for scheme in &target.parsed.card.security_schemes {
        visit(scheme, &pointer.member(&scheme.name));
    }
}

/// Checks that schemes have the form of the card's version: 1.0 wraps each in a member that names its kind.
pub(super) fn check_security_scheme_format(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let Some(generation) = ProtocolGeneration::from_target(target) else {
        return;
    };
    let Some((position, Value::Object(schemes))) = target.find_member("securitySchemes") else {
        return;
    };
    let root = JsonPointer::Root;
    let pointer = position.pointer_in(&root);
    for (name, scheme) in schemes.iter().take(MAX_LIST_ELEMENTS) {
        let Some(scheme) = scheme.as_object().filter(|scheme| !scheme.is_empty()) else {
            continue;
        };
        if is_wrapped_scheme(scheme) != (generation == ProtocolGeneration::V1) {
            let kind = scheme.get("type").and_then(Value::as_str);
            let first_member = scheme.keys().next().map(String::as_str);
            out.add(
                rule,
                &pointer.member(name),
                kind.or(first_member).unwrap_or_default(),
            );
        }
    }
}

fn is_wrapped_scheme(scheme: &Map<String, Value>) -> bool {
    let is_wrapper = |name: &String| {
        SCHEME_WRAPPERS
            .iter()
            .any(|wrapper| is_spelling_of(name, wrapper))
    };
    scheme.keys().any(is_wrapper)
}

/// Checks that schemes have every member that a caller needs. Does not apply to 0.1, where schemes are only labels.
pub(super) fn check_complete_schemes(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    // The conversion itself reports the schemes of a converted card that it could not complete.
    if target.find_member("securitySchemes").is_none() || target.is_converted() {
        return;
    }
    for_each_scheme(target, |scheme, pointer| {
        let missing = match &scheme.kind {
            SchemeKind::ApiKey { location, .. } if location.is_empty() => "no location of the key",
            SchemeKind::ApiKey { parameter, .. } if parameter.is_empty() => "no `name`",
            SchemeKind::Http { scheme, .. } if scheme.is_empty() => "no `scheme`",
            SchemeKind::Oauth2 { flows, .. } if flows.as_object().is_none_or(Map::is_empty) => {
                "no `flows`"
            }
            SchemeKind::OpenIdConnect { url } if url.is_empty() => "no `openIdConnectUrl`",
            _ => return,
        };
        out.add(rule, pointer, missing);
    });
}

/// Flows of 1.0, the deprecated ones last.
const FLOW_NAMES: [&str; 5] = [
    "authorizationCode",
    "clientCredentials",
    "deviceCode",
    "implicit",
    "password",
];

/// Flows that 1.0 keeps only for old cards.
const DEPRECATED_FLOWS: [&str; 2] = ["implicit", "password"];

fn for_each_oauth_flows(target: &LintTarget<'_>, mut visit: impl FnMut(&Value, &JsonPointer<'_>)) {
    for_each_scheme(target, |scheme, pointer| {
        if let SchemeKind::Oauth2 { flows, .. } = &scheme.kind {
            visit(flows, pointer);
        }
    });
}

pub(super) fn check_single_oauth_flow(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    if ProtocolGeneration::from_target(target) != Some(ProtocolGeneration::V1) {
        return;
    }
    for_each_oauth_flows(target, |flows, pointer| {
        let present_flows = FLOW_NAMES
            .into_iter()
            .filter(|flow| member_in_either_spelling(flows, flow).is_some());
        let present_flows: Vec<&str> = present_flows.collect();
        if present_flows.len() > 1 {
            out.add(rule, pointer, &present_flows.join(", "));
        }
    });
}

/// Checks that no scheme has a deprecated flow: these disclose tokens or passwords to parties that need not see them.
pub(super) fn check_deprecated_flows(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    for_each_oauth_flows(target, |flows, pointer| {
        for flow in DEPRECATED_FLOWS {
            if member_in_either_spelling(flows, flow).is_some() {
                out.add(rule, pointer, flow);
            }
        }
    });
}

/// Checks that the URLs of a scheme are https, so that tokens, and the keys that verify them, are encrypted in
/// transit.
pub(super) fn check_unencrypted_scheme_urls(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    const FLOW_URL_MEMBERS: [&str; 4] = [
        "authorizationUrl",
        "tokenUrl",
        "refreshUrl",
        "deviceAuthorizationUrl",
    ];
    let mut check_url = |text: &str, pointer: &JsonPointer<'_>| {
        if Url::parse(text).is_ok_and(|url| url.scheme() == "http") {
            out.add(rule, pointer, text);
        }
    };
    for_each_scheme(target, |scheme, pointer| match &scheme.kind {
        SchemeKind::OpenIdConnect { url } => check_url(url, pointer),
        SchemeKind::Oauth2 {
            flows,
            metadata_url,
        } => {
            metadata_url.iter().for_each(|url| check_url(url, pointer));
            for flow in FLOW_NAMES
                .into_iter()
                .filter_map(|flow| member_in_either_spelling(flows, flow))
            {
                for name in FLOW_URL_MEMBERS {
                    if let Some(url) = member_in_either_spelling(flow, name).and_then(Value::as_str)
                    {
                        check_url(url, pointer);
                    }
                }
            }
        }
        _ => {}
    });
}
