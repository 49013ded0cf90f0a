//! Completes a card for a version: adds required members, and removes those that it cannot express.

use std::mem;

use serde_json::{Value, json};
use url::Url;

use super::target::{CONVERTED_EXTENSION, ConversionTarget};
use super::{interfaces, security};
use crate::auth_requirements::has_unreadable_auth;
use crate::finding::Findings;
use crate::member::{Length, MAX_LIST};
use crate::pointer::Pointer;
use crate::wire::informal;
use crate::wire::members::is_security_member;
use crate::wire::names::is_media_type;
use crate::{AgentCard, Capabilities, Extension, Family, Parsed, Skill, rules};

/// Media type of a card that names none, as in 0.1.
const DEFAULT_MODE: &str = "text/plain";

const DEFAULT_VERSION: &str = "0.0.0";

const NO_ORGANIZATION: &str = "unknown";

const NO_PAGE: &str = "about:blank";

const DEFAULT_SKILL: &str = "default";

/// The card with everything that the version requires and nothing that it cannot express.
///
/// Every required text is `Some`, even an empty one; every interface has a version.
pub(super) fn complete(parsed: &Parsed, target: ConversionTarget, out: &mut Findings) -> AgentCard {
    let root = Pointer::Root;
    let mut card = parsed.card.clone();
    leave_out_unread_security(&mut card, out);
    fill(
        &mut card.description,
        &card.name,
        &root.name("description"),
        out,
    );
    fill(
        &mut card.version,
        DEFAULT_VERSION,
        &root.name("version"),
        out,
    );
    card.provider.take_if(|provider| {
        let texts = [&provider.organization, &provider.url];
        texts.into_iter().flatten().all(String::is_empty)
    });
    if let Some(provider) = &mut card.provider {
        // One of organisation and page is still useful. The other cannot be guessed: the organisation is named after
        // the host of the card, and a missing page is an empty one.
        let at = root.name("provider");
        let url = provider.url.as_deref().unwrap_or_default();
        let host = Url::parse(url)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned));
        let organization = host.unwrap_or_else(|| NO_ORGANIZATION.to_owned());
        for (text, default, name) in [
            (
                &mut provider.organization,
                organization.as_str(),
                "organization",
            ),
            (&mut provider.url, NO_PAGE, "url"),
        ] {
            text.take_if(|text| text.is_empty());
            fill(text, default, &at.name(name), out);
        }
    }
    interfaces::complete(&mut card.interfaces, parsed, target, out);
    capabilities(&mut card.capabilities, parsed.family, target, out);
    security::complete(&mut card, target, out);
    for (modes, name) in [
        (&mut card.input_modes, "defaultInputModes"),
        (&mut card.output_modes, "defaultOutputModes"),
    ] {
        let at = root.name(name);
        media_types(modes, &at, out);
        if modes.is_empty() {
            out.add(&rules::CONVERT_DEFAULT, &at, DEFAULT_MODE);
            modes.push(DEFAULT_MODE.to_owned());
        }
    }
    skills(&mut card, target, out);
    leave_out(&mut card, out);
    card
}

fn leave_out_unread_security(card: &mut AgentCard, out: &mut Findings) {
    let root = Pointer::Root;
    let is_unreadable = has_unreadable_auth(card);
    for member in informal::members(&card.unknown) {
        let holder = member.holder.map_or(root, |holder| root.name(holder));
        if is_unreadable || (member.holder.is_none() && is_security_member(member.name)) {
            let at = holder.name(member.name);
            out.add_value(&rules::CONVERT_SECURITY, &at, member.value);
        }
    }
    card.unknown.retain(|name, _| {
        let left_out =
            is_security_member(name) || (is_unreadable && informal::is_about_credentials(name));
        !left_out
    });
}

/// Removes the signatures, which cover other bytes, and members of no version; last, as they may use up the findings.
fn leave_out(card: &mut AgentCard, out: &mut Findings) {
    let root = Pointer::Root;
    if !card.signatures.is_empty() {
        let found = format!("{} signatures", card.signatures.len());
        out.add(&rules::CONVERT_UNSIGNED, &root.name("signatures"), &found);
        card.signatures.clear();
    }
    for (name, value) in mem::take(&mut card.unknown) {
        out.add_value(&rules::CONVERT_UNKNOWN, &root.name(&name), &value);
    }
}

fn fill(text: &mut Option<String>, default: &str, at: &Pointer<'_>, out: &mut Findings) {
    if text.is_none() {
        out.add(&rules::CONVERT_DEFAULT, at, default);
        *text = Some(default.to_owned());
    }
}

fn media_types(modes: &mut Vec<String>, at: &Pointer<'_>, out: &mut Findings) {
    modes.retain(|mode| {
        let fits = is_media_type(mode) && mode.chars().count() <= Length::Line.limit();
        if !fits {
            out.add(&rules::CONVERT_MODE, at, mode);
        }
        fits
    });
}

/// Marks the card as converted, and removes capabilities that the version does not know.
fn capabilities(
    capabilities: &mut Capabilities,
    family: Family,
    target: ConversionTarget,
    out: &mut Findings,
) {
    let root = Pointer::Root;
    let at = root.name("capabilities");
    if target == ConversionTarget::V1_0 && capabilities.state_transition_history {
        let at = at.name("stateTransitionHistory");
        out.add(&rules::CONVERT_STATE_HISTORY, &at, "true");
        capabilities.state_transition_history = false;
    }
    let at = at.name("extensions");
    let extensions = &mut capabilities.extensions;
    let from = extensions.iter().find_map(origin).unwrap_or(family);
    extensions
        .retain(|extension| extension.uri != CONVERTED_EXTENSION && !extension.uri.is_empty());
    if extensions.len() >= MAX_LIST {
        let found = format!("{} elements and the mark", extensions.len());
        out.add(&rules::LIST_CUT, &at, &found);
        extensions.truncate(MAX_LIST - 1);
    }
    // Reading ignores params that are not an object; a model from elsewhere may contain any value.
    for extension in extensions.iter_mut() {
        extension.params = extension.params.take().filter(Value::is_object);
    }
    extensions.push(Extension {
        uri: CONVERTED_EXTENSION.to_owned(),
        description: Some("Written by a registry from a card of another form".to_owned()),
        required: false,
        params: Some(json!({"from": from.as_str()})),
    });
}

/// The family that an earlier conversion started from.
fn origin(extension: &Extension) -> Option<Family> {
    if extension.uri != CONVERTED_EXTENSION {
        return None;
    }
    let from = extension.params.as_ref()?.get("from")?;
    from.as_str()?.parse().ok()
}

/// Completes every skill; 1.0 requires at least one, and a tag in each.
fn skills(card: &mut AgentCard, target: ConversionTarget, out: &mut Findings) {
    let root = Pointer::Root;
    let list = root.name("skills");
    let filled = target == ConversionTarget::V1_0;
    if filled && card.skills.is_empty() {
        out.add(&rules::CONVERT_DEFAULT, &list, DEFAULT_SKILL);
        card.skills.push(Skill {
            id: DEFAULT_SKILL.to_owned(),
            name: card.name.clone(),
            description: card.description.clone(),
            tags: vec![DEFAULT_SKILL.to_owned()],
            ..Skill::default()
        });
    }
    for (index, skill) in card.skills.iter_mut().enumerate() {
        let at = list.index(index);
        fill(
            &mut skill.description,
            &skill.name,
            &at.name("description"),
            out,
        );
        if filled && skill.tags.is_empty() {
            out.add(&rules::CONVERT_DEFAULT, &at.name("tags"), &skill.id);
            skill.tags.push(skill.id.clone());
        }
        media_types(&mut skill.input_modes, &at.name("inputModes"), out);
        media_types(&mut skill.output_modes, &at.name("outputModes"), out);
    }
}
