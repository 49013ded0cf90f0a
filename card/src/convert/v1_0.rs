//! Writer of completed cards in the form of 1.0 (1.0 §4.4, §4.5).

use serde_json::{Map, Value};

use super::object_builder::{self, ObjectBuilder};
use crate::{AgentCard, Capabilities, Interface, SchemeKind, SecurityRequirement, SecurityScheme};

pub(super) fn card_object(card: &AgentCard) -> Map<String, Value> {
    let schemes = card.security_schemes.iter().filter_map(named_scheme_object);
    let skills = card.skills.iter().map(|skill| {
        let requirements = skill.security.iter().map(requirement_object);
        object_builder::skill_object(skill).with_list("securityRequirements", requirements)
    });
    ObjectBuilder::default()
        .with_member("name", card.name.as_str())
        .with_text("description", card.description.as_ref())
        .with_list(
            "supportedInterfaces",
            card.interfaces.iter().map(interface_object),
        )
        .with_object(
            "provider",
            card.provider.as_ref().map(object_builder::provider_object),
        )
        .with_text("version", card.version.as_ref())
        .with_text("documentationUrl", card.documentation_url.as_ref())
        .with_member("capabilities", capabilities_object(&card.capabilities))
        .with_map("securitySchemes", schemes)
        .with_list(
            "securityRequirements",
            card.security.iter().map(requirement_object),
        )
        .with_member("defaultInputModes", card.input_modes.clone())
        .with_member("defaultOutputModes", card.output_modes.clone())
        .with_list("skills", skills)
        .with_text("iconUrl", card.icon_url.as_ref())
        .into_map()
}

fn interface_object(interface: &Interface) -> ObjectBuilder {
    ObjectBuilder::default()
        .with_member("url", interface.url.as_str())
        .with_member("protocolBinding", interface.binding.as_str())
        .with_text("tenant", interface.tenant.as_ref())
        .with_text("protocolVersion", interface.protocol_version.as_ref())
}

fn capabilities_object(capabilities: &Capabilities) -> ObjectBuilder {
    let extensions = capabilities
        .extensions
        .iter()
        .map(object_builder::extension_object);
    ObjectBuilder::default()
        .with_flag("streaming", capabilities.streaming)
        .with_flag("pushNotifications", capabilities.push_notifications)
        .with_list("extensions", extensions)
        .with_flag("extendedAgentCard", capabilities.extended_agent_card)
}

/// A scheme with its name, inside the member for its kind (1.0 §4.5.1); `None` for a kind that no version defines.
fn named_scheme_object(scheme: &SecurityScheme) -> Option<(String, ObjectBuilder)> {
    let object = ObjectBuilder::default().with_text("description", scheme.description.as_ref());
    let (wrapper, inner) = match &scheme.kind {
        SchemeKind::ApiKey {
            location,
            parameter,
        } => (
            "apiKeySecurityScheme",
            object
                .with_member("location", location.as_str())
                .with_member("name", parameter.as_str()),
        ),
        SchemeKind::Http {
            scheme,
            bearer_format,
        } => (
            "httpAuthSecurityScheme",
            object
                .with_member("scheme", scheme.as_str())
                .with_text("bearerFormat", bearer_format.as_ref()),
        ),
        SchemeKind::Oauth2 {
            flows,
            metadata_url,
        } => (
            "oauth2SecurityScheme",
            object
                .with_member("flows", flows.clone())
                .with_text("oauth2MetadataUrl", metadata_url.as_ref()),
        ),
        SchemeKind::OpenIdConnect { url } => (
            "openIdConnectSecurityScheme",
            object.with_member("openIdConnectUrl", url.as_str()),
        ),
        SchemeKind::MutualTls => ("mtlsSecurityScheme", object),
        SchemeKind::None | SchemeKind::Other { .. } => return None,
    };
    Some((
        scheme.name.clone(),
        ObjectBuilder::default().with_member(wrapper, inner),
    ))
}

/// One alternative. A scheme without scopes has an empty object, as `ProtoJSON` writes it.
fn requirement_object(requirement: &SecurityRequirement) -> ObjectBuilder {
    let schemes = requirement.schemes.iter().map(|(name, scopes)| {
        let scopes = ObjectBuilder::default().with_list("list", scopes.clone());
        (name.clone(), scopes)
    });
    ObjectBuilder::default().with_map("schemes", schemes)
}
