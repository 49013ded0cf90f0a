//! Writer of completed cards in the form of 0.3 (0.3 §5.5, §5.6).

use serde_json::{Map, Value};

use super::object_builder::{self, ObjectBuilder};
use crate::{AgentCard, Capabilities, Interface, SchemeKind, SecurityRequirement, SecurityScheme};

pub(super) fn card_object(card: &AgentCard) -> Map<String, Value> {
    let preferred_interface = card.interfaces.first();
    let version = preferred_interface.and_then(|interface| interface.protocol_version.as_deref());
    // `additionalInterfaces` repeats the preferred interface (0.3 §5.6), but a list of only that one is redundant.
    let additional_interfaces = if card.interfaces.len() > 1 {
        card.interfaces.as_slice()
    } else {
        &[]
    };
    let schemes = card.security_schemes.iter().filter_map(named_scheme_object);
    let skills = card.skills.iter().map(|skill| {
        let requirements = skill.security.iter().map(requirement_object);
        object_builder::skill_object(skill)
            .with_list("security", requirements)
            .into()
    });
    let skills: Vec<Value> = skills.collect();
    let capabilities = &card.capabilities;
    ObjectBuilder::default()
        .with_member("protocolVersion", format!("{}.0", version.unwrap_or("0.3")))
        .with_member("name", card.name.as_str())
        .with_text("description", card.description.as_ref())
        .with_text("url", preferred_interface.map(|interface| &interface.url))
        .with_text(
            "preferredTransport",
            preferred_interface.map(|interface| &interface.binding),
        )
        .with_list(
            "additionalInterfaces",
            additional_interfaces.iter().map(interface_object),
        )
        .with_text("iconUrl", card.icon_url.as_ref())
        .with_object(
            "provider",
            card.provider.as_ref().map(object_builder::provider_object),
        )
        .with_text("version", card.version.as_ref())
        .with_text("documentationUrl", card.documentation_url.as_ref())
        .with_member("capabilities", self::capabilities_object(capabilities))
        .with_map("securitySchemes", schemes)
        .with_list("security", card.security.iter().map(requirement_object))
        .with_member("defaultInputModes", card.input_modes.clone())
        .with_member("defaultOutputModes", card.output_modes.clone())
        .with_member("skills", skills)
        .with_flag(
            "supportsAuthenticatedExtendedCard",
            capabilities.extended_agent_card,
        )
        .into_map()
}

fn interface_object(interface: &Interface) -> ObjectBuilder {
    ObjectBuilder::default()
        .with_member("url", interface.url.as_str())
        .with_member("transport", interface.binding.as_str())
}

/// The capabilities, without the extended card's flag, which is a member of the card in 0.3.
fn capabilities_object(capabilities: &Capabilities) -> ObjectBuilder {
    let extensions = capabilities
        .extensions
        .iter()
        .map(object_builder::extension_object);
    ObjectBuilder::default()
        .with_flag("streaming", capabilities.streaming)
        .with_flag("pushNotifications", capabilities.push_notifications)
        .with_flag(
            "stateTransitionHistory",
            capabilities.state_transition_history,
        )
        .with_list("extensions", extensions)
}

/// A scheme with its name and its `type` (0.3 §5.5.3); `None` for a kind that no version defines.
fn named_scheme_object(scheme: &SecurityScheme) -> Option<(String, ObjectBuilder)> {
    let typed_object = |kind: &str| {
        ObjectBuilder::default()
            .with_member("type", kind)
            .with_text("description", scheme.description.as_ref())
    };
    let object = match &scheme.kind {
        SchemeKind::ApiKey {
            location,
            parameter,
        } => typed_object("apiKey")
            .with_member("in", location.as_str())
            .with_member("name", parameter.as_str()),
        SchemeKind::Http {
            scheme,
            bearer_format,
        } => typed_object("http")
            .with_member("scheme", scheme.as_str())
            .with_text("bearerFormat", bearer_format.as_ref()),
        SchemeKind::Oauth2 {
            flows,
            metadata_url,
        } => typed_object("oauth2")
            .with_member("flows", flows.clone())
            .with_text("oauth2MetadataUrl", metadata_url.as_ref()),
        SchemeKind::OpenIdConnect { url } => {
            typed_object("openIdConnect").with_member("openIdConnectUrl", url.as_str())
        }
        SchemeKind::MutualTls => typed_object("mutualTLS"),
        SchemeKind::None | SchemeKind::Other { .. } => return None,
    };
    Some((scheme.name.clone(), object))
}

/// One alternative: scopes by scheme name.
fn requirement_object(requirement: &SecurityRequirement) -> ObjectBuilder {
    let mut object = ObjectBuilder::default();
    for (name, scopes) in &requirement.schemes {
        object = object.with_member(name, scopes.clone());
    }
    object
}
