//! The version-neutral model of a card.
//!
//! The model contains the meaning of a card; the exact bytes stay with the caller. Members that the model does not
//! know are kept in [`AgentCard::unknown`], so nothing is lost.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One agent, as its card describes it, whatever protocol version the card was written for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentCard {
    /// The agent's name. Never empty: a document without a name is not a card.
    pub name: String,
    /// What the agent does, in the publisher's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The agent's own version, free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The organisation that runs the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// The agent's addresses, most preferred first; empty if the agent cannot be called.
    #[serde(default)]
    pub interfaces: Vec<Interface>,
    /// Capabilities beyond sending an answer.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// The agent's skills, in the card's order.
    #[serde(default)]
    pub skills: Vec<Skill>,
    /// Media types accepted by default, lower case (`text` is read as `text/plain`).
    #[serde(default)]
    pub input_modes: Vec<String>,
    /// Media types returned by default, lower case.
    #[serde(default)]
    pub output_modes: Vec<String>,
    /// Named ways to authenticate, sorted by name.
    #[serde(default)]
    pub security_schemes: Vec<SecurityScheme>,
    /// Alternatives of which a caller must meet one; empty if the card requires nothing.
    #[serde(default)]
    pub security: Vec<SecurityRequirement>,
    /// URL of documentation for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation_url: Option<String>,
    /// A picture of the agent. Displayed as a link, never fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
    /// The `signatures` array exactly as received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<Value>,
    /// Top-level members of no version, or with an unreadable value, as received (but with U+FFFD in place of U+0000).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub unknown: Map<String, Value>,
    /// Texts of members that the model does not know, in the card's order, for searching: each text once, at most
    /// [`MAX_OTHER_TEXTS`](crate::MAX_OTHER_TEXTS). Addresses, keys, digests, identifiers and numbers are omitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_texts: Vec<String>,
}

/// The organisation behind an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provider {
    /// The name of the organisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
    /// The site of the organisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// Binding of an address that was found in a member of no version: the card does not state the binding.
pub const UNKNOWN_BINDING: &str = "unknown";

/// One address at which the agent supports one protocol version and binding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// The address as the card writes it.
    pub url: String,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON`, or the card's own text. `JSONRPC` if the card names none, but
    /// [`UNKNOWN_BINDING`] if the address is in a member of no version.
    pub binding: String,
    /// The protocol version as `Major.Minor`, or `None` if the card does not determine it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The tenant a caller copies into every request (1.0 section 8.3.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// Capabilities of an agent beyond answering.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Whether answers can be streamed.
    #[serde(default)]
    pub streaming: bool,
    /// Whether task updates can be pushed to the caller.
    #[serde(default)]
    pub push_notifications: bool,
    /// Whether a more detailed card is available to authenticated callers.
    #[serde(default)]
    pub extended_agent_card: bool,
    /// Whether status changes of a task are listed in its answer. Only up to 0.3; 1.0 removed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub state_transition_history: bool,
    /// Protocol extensions, in the card's order.
    #[serde(default)]
    pub extensions: Vec<Extension>,
}

/// A protocol extension that the agent supports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Extension {
    /// The identifier of the extension.
    pub uri: String,
    /// How the agent uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether a caller must support it.
    #[serde(default)]
    pub required: bool,
    /// Parameters as received; `None` if the card has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
}

/// Something the agent can do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    /// The skill's identifier inside this card. Taken from the name if the card gives none.
    pub id: String,
    /// The skill's name. Taken from the id if the card gives none.
    pub name: String,
    /// What the skill does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Keywords that describe the skill.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Prompts that the skill understands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// Media types accepted, if they differ from the card's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_modes: Vec<String>,
    /// Media types returned, if they differ from the card's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_modes: Vec<String>,
    /// Alternatives of which a caller of this skill must meet one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security: Vec<SecurityRequirement>,
}

/// A named way to authenticate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SecurityScheme {
    /// The name to which requirements refer.
    pub name: String,
    /// The credentials that the scheme requires of the caller.
    pub kind: SchemeKind,
    /// The publisher's explanation of the scheme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Credentials that a scheme requires. The generations differ only in spelling, so one form serves all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum SchemeKind {
    /// A key sent in a header, the query or a cookie.
    ApiKey {
        /// `header`, `query`, `cookie`, or the card's own text.
        location: String,
        /// The header, parameter or cookie that carries the key.
        parameter: String,
    },
    /// An HTTP authentication scheme.
    Http {
        /// `bearer`, `basic`, …, lower case.
        scheme: String,
        /// A hint about the token's format, such as `JWT`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bearer_format: Option<String>,
    },
    /// OAuth 2, in any of its flows.
    Oauth2 {
        /// The flows object as received.
        flows: Value,
        /// URL of the RFC 8414 metadata.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata_url: Option<String>,
    },
    /// `OpenID` Connect, found through its discovery document.
    OpenIdConnect {
        /// URL of the discovery document.
        url: String,
    },
    /// A client certificate (mutual TLS).
    MutualTls,
    /// No credentials, as the card itself says (`none`, `noAuth`).
    None,
    /// A kind that no version defines.
    Other {
        /// The card's own name for the kind.
        label: String,
    },
}

/// Schemes that must all be met together, with the scopes that each must grant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SecurityRequirement {
    /// Scheme names and scopes, in the order of the names. Empty means that callers without credentials are admitted.
    pub schemes: Vec<(String, Vec<String>)>,
}
