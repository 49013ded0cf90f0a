//! Search facets of a card: labels, tags and modes.

use crate::auth_requirements::auth_requirements;
use crate::member_reader::unique_values;
use crate::{AgentCard, SchemeKind};

/// Labels of the ways to authenticate: `none`, `apiKey`, `http:<scheme>`, `oauth2`, `openIdConnect`, `mutualTLS`, or
/// the card's own text (`http` if it names no scheme).
///
/// The labels of the schemes that the requirements name, in their order and without duplicates; `none` if an
/// alternative requires nothing. A card that declares schemes without requiring any gets the labels of all of them,
/// because that is what real cards intend. A card without schemes and requirements is `none` by the rule of its
/// version, or `unknown` if it mentions credentials elsewhere or in an unreadable form.
pub fn auth_labels(card: &AgentCard) -> Vec<String> {
    let requirements = auth_requirements(card);
    if requirements.unreadable {
        return vec!["unknown".to_owned()];
    }
    let mut labels = Vec::new();
    for alternative in &requirements.alternatives {
        if alternative.is_empty() {
            labels.push("none".to_owned());
        }
        for scheme in alternative {
            // A requirement may name a scheme that the card does not declare.
            labels.push(match &scheme.kind {
                Some(kind) => scheme_label(kind),
                None => scheme.name.to_owned(),
            });
        }
    }
    if labels.is_empty() {
        labels.push("none".to_owned());
    }
    unique_values(labels)
}

fn scheme_label(kind: &SchemeKind) -> String {
    match kind {
        SchemeKind::ApiKey { .. } => "apiKey".to_owned(),
        SchemeKind::Http { scheme, .. } if scheme.is_empty() => "http".to_owned(),
        SchemeKind::Http { scheme, .. } => format!("http:{scheme}"),
        SchemeKind::Oauth2 { .. } => "oauth2".to_owned(),
        SchemeKind::OpenIdConnect { .. } => "openIdConnect".to_owned(),
        SchemeKind::MutualTls => "mutualTLS".to_owned(),
        SchemeKind::None => "none".to_owned(),
        SchemeKind::Other { label } => label.clone(),
    }
}

/// The tags of all skills in lower case, without duplicates, in the order of first appearance.
pub fn skill_tags(card: &AgentCard) -> Vec<String> {
    unique_values(
        card.skills
            .iter()
            .flat_map(|skill| &skill.tags)
            .map(|tag| tag.to_lowercase()),
    )
}

/// The media types that the card or any of its skills accepts, without duplicates.
pub fn all_input_modes(card: &AgentCard) -> Vec<String> {
    let skills = card.skills.iter().flat_map(|skill| &skill.input_modes);
    unique_values(card.input_modes.iter().chain(skills).cloned())
}

/// The media types that the card or any of its skills returns, without duplicates.
pub fn all_output_modes(card: &AgentCard) -> Vec<String> {
    let skills = card.skills.iter().flat_map(|skill| &skill.output_modes);
    unique_values(card.output_modes.iter().chain(skills).cloned())
}

/// Labels of the capabilities: `streaming`, `push_notifications`, `extended_agent_card` if the card has them, then the
/// URIs of its extensions.
pub fn capability_labels(card: &AgentCard) -> Vec<String> {
    let capabilities = &card.capabilities;
    let flags = [
        (capabilities.streaming, "streaming"),
        (capabilities.push_notifications, "push_notifications"),
        (capabilities.extended_agent_card, "extended_agent_card"),
    ];
    let enabled = flags.into_iter().filter(|(set, _)| *set);
    let extensions = capabilities.extensions.iter().map(|ext| ext.uri.clone());
    unique_values(enabled.map(|(_, label)| label.to_owned()).chain(extensions))
}

#[cfg(test)]
#[path = "facets_tests.rs"]
mod tests;
