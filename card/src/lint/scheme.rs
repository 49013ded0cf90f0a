//! Rules for single security schemes.

use serde_json::{Map, Value};
use url::Url;

use super::subject::{Generation, Subject, member};
use crate::finding::Findings;
use crate::member::{MAX_LIST, is_spelling};
use crate::pointer::Pointer;
use crate::rule::Rule;
use crate::wire::v1_0::WRAPPERS;
use crate::{SchemeKind, SecurityScheme};

fn each(subject: &Subject<'_>, mut visit: impl FnMut(&SecurityScheme, &Pointer<'_>)) {
    let root = Pointer::Root;
    let spot = subject.spot("securitySchemes");
    let at = spot.below(&root);
    for scheme in &subject.parsed.card.security_schemes {
        visit(scheme, &at.name(&scheme.name));
    }
}

/// Schemes have the form of the card's version: 1.0 wraps each in a member naming its kind.
pub(super) fn form(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let Some(generation) = Generation::of(subject) else {
        return;
    };
    let Some((spot, Value::Object(schemes))) = subject.find("securitySchemes") else {
        return;
    };
    let root = Pointer::Root;
    let at = spot.below(&root);
    for (name, scheme) in schemes.iter().take(MAX_LIST) {
        let Some(scheme) = scheme.as_object().filter(|scheme| !scheme.is_empty()) else {
            continue;
        };
        if is_wrapped(scheme) != (generation == Generation::V1) {
            let kind = scheme.get("type").and_then(Value::as_str);
            let first = scheme.keys().next().map(String::as_str);
            out.add(rule, &at.name(name), kind.or(first).unwrap_or_default());
        }
    }
}

fn is_wrapped(scheme: &Map<String, Value>) -> bool {
    let wraps = |name: &String| WRAPPERS.iter().any(|wrapper| is_spelling(name, wrapper));
    scheme.keys().any(wraps)
}

/// Schemes have every member that a caller needs. Not for 0.1, where schemes are only labels.
pub(super) fn incomplete(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    // The conversion itself reports the schemes of a converted card that it could not complete.
    if subject.find("securitySchemes").is_none() || subject.is_converted() {
        return;
    }
    each(subject, |scheme, at| {
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
        out.add(rule, at, missing);
    });
}

/// The flows of 1.0, the deprecated ones last.
const FLOWS: [&str; 5] = [
    "authorizationCode",
    "clientCredentials",
    "deviceCode",
    "implicit",
    "password",
];

/// Flows that 1.0 keeps for old cards only.
const DEPRECATED_FLOWS: [&str; 2] = ["implicit", "password"];

fn each_flows(subject: &Subject<'_>, mut visit: impl FnMut(&Value, &Pointer<'_>)) {
    each(subject, |scheme, at| {
        if let SchemeKind::Oauth2 { flows, .. } = &scheme.kind {
            visit(flows, at);
        }
    });
}

pub(super) fn one_flow(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    if Generation::of(subject) != Some(Generation::V1) {
        return;
    }
    each_flows(subject, |flows, at| {
        let present = FLOWS
            .into_iter()
            .filter(|flow| member(flows, flow).is_some());
        let present: Vec<&str> = present.collect();
        if present.len() > 1 {
            out.add(rule, at, &present.join(", "));
        }
    });
}

/// No scheme has a deprecated flow: these disclose tokens or passwords to parties that need not see them.
pub(super) fn deprecated_flow(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    each_flows(subject, |flows, at| {
        for flow in DEPRECATED_FLOWS {
            if member(flows, flow).is_some() {
                out.add(rule, at, flow);
            }
        }
    });
}

/// The URLs of a scheme are https, so that tokens and the keys that verify them travel encrypted.
pub(super) fn plain_http(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    const ADDRESSES: [&str; 4] = [
        "authorizationUrl",
        "tokenUrl",
        "refreshUrl",
        "deviceAuthorizationUrl",
    ];
    let mut visit = |text: &str, at: &Pointer<'_>| {
        if Url::parse(text).is_ok_and(|url| url.scheme() == "http") {
            out.add(rule, at, text);
        }
    };
    each(subject, |scheme, at| match &scheme.kind {
        SchemeKind::OpenIdConnect { url } => visit(url, at),
        SchemeKind::Oauth2 {
            flows,
            metadata_url,
        } => {
            metadata_url.iter().for_each(|url| visit(url, at));
            for flow in FLOWS.into_iter().filter_map(|flow| member(flows, flow)) {
                for name in ADDRESSES {
                    if let Some(url) = member(flow, name).and_then(Value::as_str) {
                        visit(url, at);
                    }
                }
            }
        }
        _ => {}
    });
}
