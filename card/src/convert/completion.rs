//! Completion of a card for a version: adds required members, and removes members that the version cannot express.

use std::mem;

use serde_json::{Value, json};
use url::Url;

use super::conversion_target::{CONVERTED_EXTENSION, ConversionTarget};
use super::{interfaces, security};
use crate::auth_requirements::has_unreadable_auth;
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::member_reader::{LengthLimit, MAX_LIST_ELEMENTS};
use crate::wire::informal_credentials;
use crate::wire::member_names::is_security_member;
use crate::wire::value_spellings::is_media_type;
use crate::{AgentCard, Capabilities, CardFamily, Extension, ParsedCard, Skill, rules};

/// Media type of a card that names none, as in 0.1.
const DEFAULT_MEDIA_TYPE: &str = "text/plain";

const DEFAULT_VERSION: &str = "0.0.0";

const UNKNOWN_ORGANIZATION: &str = "unknown";

const BLANK_PAGE_URL: &str = "about:blank";

const DEFAULT_SKILL_ID: &str = "default";

/// The card with everything that the version requires, and nothing that the version cannot express.
///
/// Every required text is `Some`, even an empty one; every interface has a version.
pub(super) fn fit_card_to_version(
    parsed: &ParsedCard,
    target: ConversionTarget,
    out: &mut FindingCollector,
) -> AgentCard {
    let root = JsonPointer::Root;
    let mut card = parsed.card.clone();
    remove_unread_security(&mut card, out);
    fill_default(
        &mut card.description,
        &card.name,
        &root.member("description"),
        out,
    );
    fill_default(
        &mut card.version,
        DEFAULT_VERSION,
        &root.member("version"),
        out,
    );
    card.provider.take_if(|provider| {
        let texts = [&provider.organization, &provider.url];
        texts.into_iter().flatten().all(String::is_empty)
    });
    if let Some(provider) = &mut card.provider {
        // One of organization and page is still useful. The other cannot be guessed: the organization is named after
        // the host of the card, and a missing page becomes an empty one.
        let pointer = root.member("provider");
        let url = provider.url.as_deref().unwrap_or_default();
        let host = Url::parse(url)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned));
        let organization = host.unwrap_or_else(|| UNKNOWN_ORGANIZATION.to_owned());
        for (text, default, name) in [
            (
                &mut provider.organization,
                organization.as_str(),
                "organization",
            ),
            (&mut provider.url, BLANK_PAGE_URL, "url"),
        ] {
            text.take_if(|text| text.is_empty());
            fill_default(text, default, &pointer.member(name), out);
        }
    }
    interfaces::convert_interfaces(&mut card.interfaces, parsed, target, out);
    convert_capabilities(&mut card.capabilities, parsed.family, target, out);
    security::convert_security(&mut card, target, out);
    for (modes, name) in [
        (&mut card.input_modes, "defaultInputModes"),
        (&mut card.output_modes, "defaultOutputModes"),
    ] {
        let pointer = root.member(name);
        remove_invalid_media_types(modes, &pointer, out);
        if modes.is_empty() {
            out.add(&rules::CONVERT_DEFAULT, &pointer, DEFAULT_MEDIA_TYPE);
            modes.push(DEFAULT_MEDIA_TYPE.to_owned());
        }
    }
    complete_skills(&mut card, target, out);
    remove_unconverted_members(&mut card, out);
    card
}

fn remove_unread_security(card: &mut AgentCard, out: &mut FindingCollector) {
    let root = JsonPointer::Root;
    let is_unreadable = has_unreadable_auth(card);
    for member in informal_credentials::find_credential_members(&card.unknown) {
        let holder = member.holder.map_or(root, |holder| root.member(holder));
        if is_unreadable || (member.holder.is_none() && is_security_member(member.name)) {
            let pointer = holder.member(member.name);
            out.add_with_value(&rules::CONVERT_SECURITY, &pointer, member.value);
        }
    }
    card.unknown.retain(|name, _| {
        let is_removed = is_security_member(name)
            || (is_unreadable && informal_credentials::is_about_credentials(name));
        !is_removed
    });
}

/// Removes the signatures, which cover other bytes, and members of no version. Runs last, because it may use up the
/// findings.
fn remove_unconverted_members(card: &mut AgentCard, out: &mut FindingCollector) {
    let root = JsonPointer::Root;
    if !card.signatures.is_empty() {
        let found = format!("{} signatures", card.signatures.len());
        out.add(&rules::CONVERT_UNSIGNED, &root.member("signatures"), &found);
        card.signatures.clear();
    }
    for (name, value) in mem::take(&mut card.unknown) {
        out.add_with_value(&rules::CONVERT_UNKNOWN, &root.member(&name), &value);
    }
}

fn fill_default(
    text: &mut Option<String>,
    default: &str,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) {
    if text.is_none() {
        out.add(&rules::CONVERT_DEFAULT, pointer, default);
        *text = Some(default.to_owned());
    }
}

fn remove_invalid_media_types(
    modes: &mut Vec<String>,
    pointer: &JsonPointer<'_>,
    out: &mut FindingCollector,
) {
    modes.retain(|mode| {
        let is_valid = is_media_type(mode) && mode.chars().count() <= LengthLimit::Line.max_chars();
        if !is_valid {
            out.add(&rules::CONVERT_MODE, pointer, mode);
        }
        is_valid
    });
}

/// Marks the card as converted, and removes capabilities that the version does not know.
fn convert_capabilities(
    capabilities: &mut Capabilities,
    family: CardFamily,
    target: ConversionTarget,
    out: &mut FindingCollector,
) {
    let root = JsonPointer::Root;
    let pointer = root.member("capabilities");
    if target == ConversionTarget::V1_0 && capabilities.state_transition_history {
        let pointer = pointer.member("stateTransitionHistory");
        out.add(&rules::CONVERT_STATE_HISTORY, &pointer, "true");
        capabilities.state_transition_history = false;
    }
    let pointer = pointer.member("extensions");
    let extensions = &mut capabilities.extensions;
    let original = extensions
        .iter()
        .find_map(original_card_family)
        .unwrap_or(family);
    extensions
        .retain(|extension| extension.uri != CONVERTED_EXTENSION && !extension.uri.is_empty());
    if extensions.len() >= MAX_LIST_ELEMENTS {
        let found = format!("{} elements and the mark", extensions.len());
        out.add(&rules::LIST_CUT, &pointer, &found);
        extensions.truncate(MAX_LIST_ELEMENTS - 1);
    }
    // The reader ignores params that are not an object; a model from another source may contain any value.
    for extension in extensions.iter_mut() {
        extension.params = extension.params.take().filter(Value::is_object);
    }
    extensions.push(Extension {
        uri: CONVERTED_EXTENSION.to_owned(),
        description: Some("Written by a registry from a card of another form".to_owned()),
        required: false,
        params: Some(json!({"from": original.as_str()})),
    });
}

/// The original family of a card that was converted before.
fn original_card_family(extension: &Extension) -> Option<CardFamily> {
    if extension.uri != CONVERTED_EXTENSION {
        return None;
    }
    let name = extension.params.as_ref()?.get("from")?;
    name.as_str()?.parse().ok()
}

/// Completes every skill; 1.0 requires at least one skill, with a tag in each.
fn complete_skills(card: &mut AgentCard, target: ConversionTarget, out: &mut FindingCollector) {
    let root = JsonPointer::Root;
    let skills_pointer = root.member("skills");
    let requires_elements = target == ConversionTarget::V1_0;
    if requires_elements && card.skills.is_empty() {
        out.add(&rules::CONVERT_DEFAULT, &skills_pointer, DEFAULT_SKILL_ID);
        card.skills.push(Skill {
            id: DEFAULT_SKILL_ID.to_owned(),
            name: card.name.clone(),
            description: card.description.clone(),
            tags: vec![DEFAULT_SKILL_ID.to_owned()],
            ..Skill::default()
        });
    }
    for (index, skill) in card.skills.iter_mut().enumerate() {
        let pointer = skills_pointer.element(index);
        fill_default(
            &mut skill.description,
            &skill.name,
            &pointer.member("description"),
            out,
        );
        if requires_elements && skill.tags.is_empty() {
            out.add(&rules::CONVERT_DEFAULT, &pointer.member("tags"), &skill.id);
            skill.tags.push(skill.id.clone());
        }
        remove_invalid_media_types(&mut skill.input_modes, &pointer.member("inputModes"), out);
        remove_invalid_media_types(&mut skill.output_modes, &pointer.member("outputModes"), out);
    }
}
