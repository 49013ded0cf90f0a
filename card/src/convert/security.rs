//! Completes the security of a converted card: schemes with everything that the version requires, and requirements
//! that never become weaker.

use std::collections::HashSet;
use std::mem;

use serde_json::Value;

use super::flows;
use super::target::ConversionTarget;
use crate::finding::Findings;
use crate::member::{Length, MAX_LIST, unique};
use crate::pointer::Pointer;
use crate::{AgentCard, SchemeKind, SecurityRequirement, SecurityScheme, rules};

enum Fate {
    Kept,
    /// It requires nothing, so it is removed from the requirements.
    Open,
    /// No version can express it. The requirements still name it: the agent must not seem to be open.
    Unsayable,
}

pub(super) fn complete(card: &mut AgentCard, target: ConversionTarget, out: &mut Findings) {
    let root = Pointer::Root;
    let at = root.name("securitySchemes");
    let mut schemes = mem::take(&mut card.security_schemes);
    // Names that differed only in white space are equal by now.
    schemes.dedup_by(|later, first| later.name == first.name);
    let mut open = HashSet::new();
    let mut told = HashSet::new();
    for mut scheme in schemes {
        let name = scheme.name.clone();
        let fate = complete_scheme(&mut scheme, target, &at.name(&name), out);
        told.insert(name);
        match fate {
            Fate::Kept => card.security_schemes.push(scheme),
            Fate::Open => {
                open.insert(scheme.name);
            }
            Fate::Unsayable => {}
        }
    }
    let list = match target {
        ConversionTarget::V1_0 => "securityRequirements",
        ConversionTarget::V0_3 => "security",
    };
    let mut free = |requirements: &mut Vec<SecurityRequirement>, holder: &Pointer<'_>| {
        for requirement in &mut *requirements {
            requirement.schemes.retain(|(name, _)| !open.contains(name));
            for (name, _) in &requirement.schemes {
                if told.insert(name.clone()) {
                    let found = "required, not described";
                    out.add(&rules::CONVERT_SCHEME, &at.name(name), found);
                }
            }
        }
        *requirements = unique(mem::take(requirements));
        if requirements.len() > MAX_LIST {
            let found = format!("{} elements", requirements.len());
            out.add(&rules::LIST_CUT, &holder.name(list), &found);
            requirements.truncate(MAX_LIST);
        }
    };
    free(&mut card.security, &root);
    let skills = root.name("skills");
    for (index, skill) in card.skills.iter_mut().enumerate() {
        free(&mut skill.security, &skills.index(index));
    }
}

/// Sets the location of a key, and returns a remark if the card does not give it.
fn complete_key(location: &mut String, parameter: &mut String) -> Option<&'static str> {
    let told = !location.is_empty() && !parameter.is_empty();
    if location.is_empty() {
        location.push_str("header");
    }
    if parameter.is_empty() {
        parameter.push_str(match location.as_str() {
            "header" => "X-API-Key",
            _ => "api_key",
        });
    }
    (!told).then_some("The card does not say in full where the key goes; the rest is assumed.")
}

/// Adds the members of a scheme that the versions require; assumptions are stated in its description.
fn complete_scheme(
    scheme: &mut SecurityScheme,
    target: ConversionTarget,
    at: &Pointer<'_>,
    out: &mut Findings,
) -> Fate {
    let assumed = match &mut scheme.kind {
        SchemeKind::ApiKey {
            location,
            parameter,
        } => {
            if !matches!(location.as_str(), "" | "header" | "query" | "cookie") {
                out.add(&rules::CONVERT_SCHEME, at, location);
                return Fate::Unsayable;
            }
            complete_key(location, parameter)
        }
        SchemeKind::Http { scheme, .. } => {
            // Lower case can be longer than the original, and would be cut when it is read again.
            if scheme.chars().count() > Length::Line.limit() {
                out.add(&rules::CONVERT_SCHEME, at, scheme);
                return Fate::Unsayable;
            }
            let told = !scheme.is_empty();
            if !told {
                scheme.push_str("bearer");
            }
            (!told).then_some("The card does not name the HTTP scheme; bearer is assumed.")
        }
        SchemeKind::Oauth2 { flows, .. } => {
            let complete = flows::complete(flows, target, &at.name("flows"), out);
            let told = !complete.is_empty();
            *flows = Value::Object(complete);
            (!told).then_some("The card describes no flow that could be written here.")
        }
        SchemeKind::OpenIdConnect { url } => {
            let told = !url.is_empty();
            (!told).then_some("The card does not say where the discovery document is.")
        }
        SchemeKind::MutualTls => None,
        SchemeKind::None => return Fate::Open,
        SchemeKind::Other { label } => {
            out.add(&rules::CONVERT_SCHEME, at, label);
            return Fate::Unsayable;
        }
    };
    if let Some(note) = assumed {
        out.add(&rules::CONVERT_SCHEME_ASSUMED, at, note);
        scheme.description.get_or_insert_with(|| note.to_owned());
    }
    Fate::Kept
}
