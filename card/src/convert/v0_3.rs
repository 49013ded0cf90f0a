//! Writes a completed card in the form of 0.3 (0.3 §5.5, §5.6).

use serde_json::{Map, Value};

use super::object::{self, Object};
use crate::{AgentCard, Capabilities, Interface, SchemeKind, SecurityRequirement, SecurityScheme};

pub(super) fn write(card: &AgentCard) -> Map<String, Value> {
    let preferred = card.interfaces.first();
    let version = preferred.and_then(|interface| interface.protocol_version.as_deref());
    // The additional ones repeat the preferred one (0.3 §5.6), but a list of only that one is redundant.
    let additional = if card.interfaces.len() > 1 {
        card.interfaces.as_slice()
    } else {
        &[]
    };
    let schemes = card.security_schemes.iter().filter_map(scheme);
    let skills = card.skills.iter().map(|skill| {
        let requirements = skill.security.iter().map(requirement);
        object::skill(skill).list("security", requirements).into()
    });
    let skills: Vec<Value> = skills.collect();
    let capabilities = &card.capabilities;
    Object::default()
        .with("protocolVersion", format!("{}.0", version.unwrap_or("0.3")))
        .with("name", card.name.as_str())
        .text("description", card.description.as_ref())
        .text("url", preferred.map(|interface| &interface.url))
        .text(
            "preferredTransport",
            preferred.map(|interface| &interface.binding),
        )
        .list("additionalInterfaces", additional.iter().map(interface))
        .text("iconUrl", card.icon_url.as_ref())
        .option("provider", card.provider.as_ref().map(object::provider))
        .text("version", card.version.as_ref())
        .text("documentationUrl", card.documentation_url.as_ref())
        .with("capabilities", self::capabilities(capabilities))
        .named("securitySchemes", schemes)
        .list("security", card.security.iter().map(requirement))
        .with("defaultInputModes", card.input_modes.clone())
        .with("defaultOutputModes", card.output_modes.clone())
        .with("skills", skills)
        .flag(
            "supportsAuthenticatedExtendedCard",
            capabilities.extended_agent_card,
        )
        .into_map()
}

fn interface(interface: &Interface) -> Object {
    Object::default()
        .with("url", interface.url.as_str())
        .with("transport", interface.binding.as_str())
}

/// The capabilities; the flag for the extended card is beside them.
fn capabilities(capabilities: &Capabilities) -> Object {
    let extensions = capabilities.extensions.iter().map(object::extension);
    Object::default()
        .flag("streaming", capabilities.streaming)
        .flag("pushNotifications", capabilities.push_notifications)
        .flag(
            "stateTransitionHistory",
            capabilities.state_transition_history,
        )
        .list("extensions", extensions)
}

/// One scheme by its name, with its `type` (0.3 §5.5.3); `None` for a kind that no version knows.
fn scheme(scheme: &SecurityScheme) -> Option<(String, Object)> {
    let typed = |kind: &str| {
        Object::default()
            .with("type", kind)
            .text("description", scheme.description.as_ref())
    };
    let object = match &scheme.kind {
        SchemeKind::ApiKey {
            location,
            parameter,
        } => typed("apiKey")
            .with("in", location.as_str())
            .with("name", parameter.as_str()),
        SchemeKind::Http {
            scheme,
            bearer_format,
        } => typed("http")
            .with("scheme", scheme.as_str())
            .text("bearerFormat", bearer_format.as_ref()),
        SchemeKind::Oauth2 {
            flows,
            metadata_url,
        } => typed("oauth2")
            .with("flows", flows.clone())
            .text("oauth2MetadataUrl", metadata_url.as_ref()),
        SchemeKind::OpenIdConnect { url } => {
            typed("openIdConnect").with("openIdConnectUrl", url.as_str())
        }
        SchemeKind::MutualTls => typed("mutualTLS"),
        SchemeKind::None | SchemeKind::Other { .. } => return None,
    };
    Some((scheme.name.clone(), object))
}

/// One alternative: scopes by the name of the scheme.
fn requirement(requirement: &SecurityRequirement) -> Object {
    let mut object = Object::default();
    for (name, scopes) in &requirement.schemes {
        object = object.with(name, scopes.clone());
    }
    object
}
