//! Security of a converted card: schemes with everything that the version requires, and requirements that never become
//! weaker.

use std::collections::HashSet;
use std::mem;

use serde_json::Value;

use super::conversion_target::ConversionTarget;
use super::oauth_flows;
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::{LengthLimit, MAX_LIST_ELEMENTS, unique_values};
use crate::{AgentCard, SchemeKind, SecurityRequirement, SecurityScheme, rules};

enum SchemeConversion {
    Converted,
    /// The scheme requires nothing, so it is removed from the requirements.
    Open,
    /// No version can express the scheme. The requirements still name it, so that the agent does not seem to be open.
    Inexpressible,
}

pub(super) fn convert_security(
    card: &mut AgentCard,
    target: ConversionTarget,
    out: &mut FindingCollector,
) {
    let root = JsonPointer::Root;
    let pointer = root.member("securitySchemes");
    let mut schemes = mem::take(&mut card.security_schemes);
    // At this point, names that differed only in white space are equal.
    schemes.dedup_by(|later, first| later.name == first.name);
    let mut open_schemes = HashSet::new();
    let mut reported_names = HashSet::new();
    for mut scheme in schemes {
        let name = scheme.name.clone();
        let conversion = complete_security_scheme(&mut scheme, target, &pointer.member(&name), out);
        reported_names.insert(name);
        match conversion {
            SchemeConversion::Converted => card.security_schemes.push(scheme),
            SchemeConversion::Open => {
                open_schemes.insert(scheme.name);
            }
            SchemeConversion::Inexpressible => {}
        }
    }
    let list_name = match target {
        ConversionTarget::V1_0 => "securityRequirements",
        ConversionTarget::V0_3 => "security",
    };
    let mut complete_requirements = |requirements: &mut Vec<SecurityRequirement>,
                                     parent: &JsonPointer<'_>| {
        for requirement in &mut *requirements {
            requirement
                .schemes
                .retain(|(name, _)| !open_schemes.contains(name));
            for (name, _) in &requirement.schemes {
                if reported_names.insert(name.clone()) {
                    let found = "required, not described";
                    out.add(&rules::CONVERT_SCHEME, &pointer.member(name), found);
                }
            }
        }
        *requirements = unique_values(mem::take(requirements));
        if requirements.len() > MAX_LIST_ELEMENTS {
            let found = format!("{} elements", requirements.len());
            out.add(&rules::LIST_CUT, &parent.member(list_name), &found);
            requirements.truncate(MAX_LIST_ELEMENTS);
        }
    };
    complete_requirements(&mut card.security, &root);
    let skills = root.member("skills");
    for (index, skill) in card.skills.iter_mut().enumerate() {
        complete_requirements(&mut skill.security, &skills.element(index));
    }
}

/// Sets the location of an API key, and returns a note if the card does not state it.
fn complete_api_key_location(
    location: &mut String,
    parameter: &mut String,
) -> Option<&'static str> {
    let is_complete = !location.is_empty() && !parameter.is_empty();
    if location.is_empty() {
        location.push_str("header");
    }
    if parameter.is_empty() {
        parameter.push_str(match location.as_str() {
            "header" => "X-API-Key",
            _ => "api_key",
        });
    }
    (!is_complete)
        .then_some("The card does not say in full where the key goes; the rest is assumed.")
}

/// Adds the members of a scheme that the versions require; the scheme's description states the assumptions.
fn complete_security_scheme(
    scheme: &mut SecurityScheme,
    target: ConversionTarget,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) -> SchemeConversion {
    let assumption_note = match &mut scheme.kind {
        SchemeKind::ApiKey {
            location,
            parameter,
        } => {
            if !matches!(location.as_str(), "" | "header" | "query" | "cookie") {
                out.add(&rules::CONVERT_SCHEME, pointer, location);
                return SchemeConversion::Inexpressible;
            }
            complete_api_key_location(location, parameter)
        }
        SchemeKind::Http { scheme, .. } => {
            // Lower case can be longer than the original, and would be cut when the card is read again.
            if scheme.chars().count() > LengthLimit::Line.max_chars() {
                out.add(&rules::CONVERT_SCHEME, pointer, scheme);
                return SchemeConversion::Inexpressible;
            }
            let is_named = !scheme.is_empty();
            if !is_named {
                scheme.push_str("bearer");
            }
            (!is_named).then_some("The card does not name the HTTP scheme; bearer is assumed.")
        }
        SchemeKind::Oauth2 { flows, .. } => {
            let completed_flows =
                oauth_flows::convert_oauth_flows(flows, target, &pointer.member("flows"), out);
            let has_flows = !completed_flows.is_empty();
            *flows = Value::Object(completed_flows);
            (!has_flows).then_some("The card describes no OAuth flow that could be converted.")
        }
        SchemeKind::OpenIdConnect { url } => {
            let has_url = !url.is_empty();
            (!has_url).then_some("The card does not say where the discovery document is.")
        }
        SchemeKind::MutualTls => None,
        SchemeKind::None => return SchemeConversion::Open,
        SchemeKind::Other { label } => {
            out.add(&rules::CONVERT_SCHEME, pointer, label);
            return SchemeConversion::Inexpressible;
        }
    };
    if let Some(note) = assumption_note {
        out.add(&rules::CONVERT_SCHEME_ASSUMED, pointer, note);
        scheme.description.get_or_insert_with(|| note.to_owned());
    }
    SchemeConversion::Converted
}
