//! Names of a card's members, in any version and beyond.

use crate::member::is_spelling;

/// Members that contain a whole card, or the part with its name, in real documents.
pub(crate) const NESTS: [&str; 5] = ["agentCard", "agent_card", "agent", "card", "identity"];

pub(crate) const CARD_MEMBERS: [&str; 21] = [
    "name",
    "description",
    "version",
    "provider",
    "url",
    "preferredTransport",
    "additionalInterfaces",
    "supportedInterfaces",
    "protocolVersion",
    "capabilities",
    "supportsAuthenticatedExtendedCard",
    "authentication",
    "securitySchemes",
    "security",
    "securityRequirements",
    "defaultInputModes",
    "defaultOutputModes",
    "skills",
    "documentationUrl",
    "iconUrl",
    "signatures",
];

/// Whether the name, in either spelling, is that of a security member of some version.
pub(crate) fn is_security_member(name: &str) -> bool {
    const MEMBERS: [&str; 4] = [
        "security",
        "securityRequirements",
        "securitySchemes",
        "authentication",
    ];
    MEMBERS.iter().any(|known| is_spelling(name, known))
}
