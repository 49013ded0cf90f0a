//! What a card is found by: labels, tags and modes in the values of the search interface.

use std::collections::HashMap;

use crate::member::{is_spelling, unique};
use crate::wire::informal;
use crate::wire::v0_2::labelled;
use crate::{AgentCard, SchemeKind, SecurityScheme};

/// How a caller authenticates: `none`, `apiKey`, `http:<scheme>`, `oauth2`, `openIdConnect`, `mutualTLS`, or
/// the card's own text (`http` where it names no scheme).
///
/// The schemes that the requirements name, in their order and each label once; `none` where an alternative
/// asks for nothing. A card that declares schemes without requiring any is labelled by all of them: real
/// cards mean so. A card without either is `none` by the rule of its version, unless it says elsewhere, or in
/// a form that cannot be read, that something is needed: that is `unknown`.
pub fn auth_labels(card: &AgentCard) -> Vec<String> {
    if has_unread_demand(card) {
        return vec!["unknown".to_owned()];
    }
    let declared = declared(card);
    let mut labels = Vec::new();
    for requirement in &card.security {
        if requirement.schemes.is_empty() {
            labels.push("none".to_owned());
        }
        for (name, _) in &requirement.schemes {
            // A requirement may name a scheme that the card forgot to declare.
            labels.push(match declared.get(name.as_str()) {
                Some(scheme) => label(&scheme.kind),
                None => label(&labelled(name)),
            });
        }
    }
    if labels.is_empty() {
        labels.extend(card.security_schemes.iter().map(|s| label(&s.kind)));
    }
    if labels.is_empty() {
        labels.push("none".to_owned());
    }
    unique(labels)
}

/// The card's security schemes by name.
pub(crate) fn declared(card: &AgentCard) -> HashMap<&str, &SecurityScheme> {
    let schemes = card.security_schemes.iter();
    schemes
        .map(|scheme| (scheme.name.as_str(), scheme))
        .collect()
}

/// Whether the name, in either spelling, is that of a member that speaks of security in some version.
pub(crate) fn is_security_member(name: &str) -> bool {
    const MEMBERS: [&str; 4] = [
        "security",
        "securityRequirements",
        "securitySchemes",
        "authentication",
    ];
    MEMBERS.iter().any(|known| is_spelling(name, known))
}

/// Whether the card says that callers must bring something, and nowhere legibly what: such an agent may be
/// closed to whoever brings nothing.
///
/// ```
/// let card = br#"{"name": "Echo", "url": "https://echo.example", "auth_required": true}"#;
/// assert!(a2a_card::has_unread_demand(&a2a_card::parse(card)?.card));
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn has_unread_demand(card: &AgentCard) -> bool {
    let declared = declared(card);
    let asks = |(name, _): &(String, Vec<String>)| {
        let scheme = declared.get(name.as_str());
        scheme.map_or_else(|| labelled(name), |scheme| scheme.kind.clone()) != SchemeKind::None
    };
    let legible = card
        .security_schemes
        .iter()
        .any(|scheme| scheme.kind != SchemeKind::None)
        || card.security.iter().flat_map(|r| &r.schemes).any(asks);
    !legible && informal::told(&card.unknown).demands()
}

/// The label of one scheme.
fn label(kind: &SchemeKind) -> String {
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

/// The tags of all skills in lower case, each once, in the order of their first appearance.
pub fn tags(card: &AgentCard) -> Vec<String> {
    unique(
        card.skills
            .iter()
            .flat_map(|skill| &skill.tags)
            .map(|tag| tag.to_lowercase()),
    )
}

/// The media types that the card or any of its skills takes, each once.
pub fn all_input_modes(card: &AgentCard) -> Vec<String> {
    let skills = card.skills.iter().flat_map(|skill| &skill.input_modes);
    unique(card.input_modes.iter().chain(skills).cloned())
}

/// The media types that the card or any of its skills gives, each once.
pub fn all_output_modes(card: &AgentCard) -> Vec<String> {
    let skills = card.skills.iter().flat_map(|skill| &skill.output_modes);
    unique(card.output_modes.iter().chain(skills).cloned())
}

/// `streaming`, `push_notifications` and `extended_agent_card` where the card has them, then the URIs of its
/// extensions.
pub fn capability_labels(card: &AgentCard) -> Vec<String> {
    let capabilities = &card.capabilities;
    let flags = [
        (capabilities.streaming, "streaming"),
        (capabilities.push_notifications, "push_notifications"),
        (capabilities.extended_agent_card, "extended_agent_card"),
    ];
    let set = flags.into_iter().filter(|(set, _)| *set);
    let extensions = capabilities.extensions.iter().map(|ext| ext.uri.clone());
    unique(set.map(|(_, label)| label.to_owned()).chain(extensions))
}

#[cfg(test)]
#[path = "facets_tests.rs"]
mod tests;
