//! Writes a completed card in the form of 1.0 (1.0 §4.4, §4.5).

use serde_json::{Map, Value};

use super::object::{self, Object};
use crate::{AgentCard, Capabilities, Interface, SchemeKind, SecurityRequirement, SecurityScheme};

pub(super) fn write(card: &AgentCard) -> Map<String, Value> {
    let schemes = card.security_schemes.iter().filter_map(scheme);
    let skills = card.skills.iter().map(|skill| {
        let requirements = skill.security.iter().map(requirement);
        object::skill(skill).list("securityRequirements", requirements)
    });
    Object::default()
        .with("name", card.name.as_str())
        .text("description", card.description.as_ref())
        .list("supportedInterfaces", card.interfaces.iter().map(interface))
        .option("provider", card.provider.as_ref().map(object::provider))
        .text("version", card.version.as_ref())
        .text("documentationUrl", card.documentation_url.as_ref())
        .with("capabilities", capabilities(&card.capabilities))
        .named("securitySchemes", schemes)
        .list(
            "securityRequirements",
            card.security.iter().map(requirement),
        )
        .with("defaultInputModes", card.input_modes.clone())
        .with("defaultOutputModes", card.output_modes.clone())
        .list("skills", skills)
        .text("iconUrl", card.icon_url.as_ref())
        .into_map()
}

fn interface(interface: &Interface) -> Object {
    Object::default()
        .with("url", interface.url.as_str())
        .with("protocolBinding", interface.binding.as_str())
        .text("tenant", interface.tenant.as_ref())
        .text("protocolVersion", interface.protocol_version.as_ref())
}

fn capabilities(capabilities: &Capabilities) -> Object {
    let extensions = capabilities.extensions.iter().map(object::extension);
    Object::default()
        .flag("streaming", capabilities.streaming)
        .flag("pushNotifications", capabilities.push_notifications)
        .list("extensions", extensions)
        .flag("extendedAgentCard", capabilities.extended_agent_card)
}

/// One scheme by its name, inside the member for its kind (1.0 §4.5.1); `None` for a kind that no version knows.
fn scheme(scheme: &SecurityScheme) -> Option<(String, Object)> {
    let object = Object::default().text("description", scheme.description.as_ref());
    let (wrapper, inner) = match &scheme.kind {
        SchemeKind::ApiKey {
            location,
            parameter,
        } => (
            "apiKeySecurityScheme",
            object
                .with("location", location.as_str())
                .with("name", parameter.as_str()),
        ),
        SchemeKind::Http {
            scheme,
            bearer_format,
        } => (
            "httpAuthSecurityScheme",
            object
                .with("scheme", scheme.as_str())
                .text("bearerFormat", bearer_format.as_ref()),
        ),
        SchemeKind::Oauth2 {
            flows,
            metadata_url,
        } => (
            "oauth2SecurityScheme",
            object
                .with("flows", flows.clone())
                .text("oauth2MetadataUrl", metadata_url.as_ref()),
        ),
        SchemeKind::OpenIdConnect { url } => (
            "openIdConnectSecurityScheme",
            object.with("openIdConnectUrl", url.as_str()),
        ),
        SchemeKind::MutualTls => ("mtlsSecurityScheme", object),
        SchemeKind::None | SchemeKind::Other { .. } => return None,
    };
    Some((scheme.name.clone(), Object::default().with(wrapper, inner)))
}

/// One alternative. No scopes are an empty object, as `ProtoJSON` writes them.
fn requirement(requirement: &SecurityRequirement) -> Object {
    let schemes = requirement.schemes.iter().map(|(name, scopes)| {
        let scopes = Object::default().list("list", scopes.clone());
        (name.clone(), scopes)
    });
    Object::default().named("schemes", schemes)
}
