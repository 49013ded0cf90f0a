//! Names of a card's members, in all versions and in real cards.

use crate::member_reader::is_spelling_of;

/// Members that contain a whole card, or the part with its name, in real documents.
pub(crate) const NESTING_MEMBERS: [&str; 5] =
    ["agentCard", "agent_card", "agent", "card", "identity"];

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

/// The members of a skill in any version.
pub(crate) const SKILL_MEMBERS: [&str; 9] = [
    "id",
    "name",
    "description",
    "tags",
    "examples",
    "inputModes",
    "outputModes",
    "security",
    "securityRequirements",
];

/// Whether the name, in either spelling, belongs to a security member of some version.
pub(crate) fn is_security_member(name: &str) -> bool {
    const SECURITY_MEMBERS: [&str; 4] = [
        "security",
        "securityRequirements",
        "securitySchemes",
        "authentication",
    ];
    SECURITY_MEMBERS
        .iter()
        .any(|known| is_spelling_of(name, known))
}
