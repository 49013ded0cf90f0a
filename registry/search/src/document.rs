//! Documents, the input of the index: one [`Document`] per agent.

use uuid::Uuid;

/// The longest value, in bytes, of a filter, a facet or a lookup. A longer one is left out of the index, so it can
/// neither be filtered by nor counted.
pub const MAX_VALUE_BYTES: usize = 1024;

/// The longest text, in bytes, that is searched and highlighted in one field of one agent; the rest is cut.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The most bytes of the texts outside the card's model that are searched and highlighted; the rest is cut.
pub const MAX_OTHER_BYTES: usize = 8 * 1024;

/// The most skills of one agent that are searched, filtered by and highlighted; the rest is left out.
pub const MAX_SKILLS: usize = 500;

/// The most skills that a hit shows of those that are rendered apart.
pub const MAX_SHOWN_SKILLS: usize = 10;

/// One agent in the index. Texts are arbitrary; the values of filters and facets must be normalised, because the index
/// compares them byte by byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// Id of the agent; one document per id.
    pub id: Uuid,
    /// The rendered hit, a JSON object, stored and returned byte for byte. Where skills are rendered apart, the member
    /// `skills` is added to it, with [`MAX_SHOWN_SKILLS`] of them.
    pub hit: Vec<u8>,
    /// The agent as it is rendered in catalogs, stored and returned beside the hit; empty for one that catalogs do not list.
    pub entry: Vec<u8>,
    /// The agent's name: searched, suggested, sorted by.
    pub name: String,
    /// The agent's description.
    pub description: String,
    /// The provider's organisation as text.
    pub provider: String,
    /// The domain that publishes the card; searched, and an exact filter and facet.
    pub domain: String,
    /// The skills with their texts, in the card's order.
    pub skills: Vec<SkillText>,
    /// Texts of the card outside its model: searched at a low weight.
    pub other_texts: Vec<String>,
    /// Every tag of the agent, for filter and facet.
    pub tags: Vec<String>,
    /// Every skill id, for filter and facet.
    pub skill_ids: Vec<String>,
    /// Capabilities: `streaming`, `push_notifications`, `extended_agent_card` or an extension's URI.
    pub capabilities: Vec<String>,
    /// Bindings of the interfaces.
    pub bindings: Vec<String>,
    /// Protocol versions as `Major.Minor`.
    pub protocol_versions: Vec<String>,
    /// Authentication schemes, `none` included.
    pub auth: Vec<String>,
    /// Media types that the agent accepts.
    pub input_modes: Vec<String>,
    /// Media types that the agent produces.
    pub output_modes: Vec<String>,
    /// Curators' labels, each as `key=value`.
    pub labels: Vec<String>,
    /// The provider's organisation, lower-cased, for filter and facet; empty when the card names none.
    pub provider_key: String,
    /// Lifecycle as shown: `pending`, `approved`, `suspended`, …
    pub lifecycle: String,
    /// Liveness: `fresh`, `stale` or `gone`.
    pub liveness: String,
    /// Result of checking the card's signatures: `unsigned`, `valid`, `untrusted`, `invalid` or `unknown`.
    pub signature: String,
    /// Whether neither an owner nor a sponsor answers for the agent.
    pub unmanaged: bool,
    /// Trust level 0 to 4; `None` if the agent has none. A higher number counts as 4.
    pub trust: Option<u8>,
    /// Visibility labels; a caller needs one of them to see the agent. An agent without any is invisible to everybody.
    pub visible_to: Vec<String>,
    /// Identifier in catalogs; empty for an agent that catalogs do not list.
    pub identifier: String,
    /// Further values to filter by exactly and to count, each with the path that names it; at most
    /// [`MAX_ATTRIBUTES`](super::MAX_ATTRIBUTES). An agent without one of a path has no value of it.
    pub attributes: Vec<(String, String)>,
    /// Exact keys for [`lookup`](super::Index::lookup), with their prefix: `url:…`, `host:…`, `urn:…`, `digest:…`, `name:…`.
    pub lookups: Vec<String>,
    /// Key that all duplicates of the agent have, and no other agents: half of a SHA-256 digest. 0 if it has none.
    pub group: u128,
    /// Preference among its duplicates: the highest one stands for the others, of equal ones the one first seen.
    pub preference: u8,
    /// Time when the agent was first seen, in microseconds since 1970 UTC.
    pub created_at: i64,
    /// Time of the agent's last change, in microseconds since 1970 UTC.
    pub updated_at: i64,
}

/// The texts of one skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillText {
    /// The skill's id as the card gives it.
    pub id: String,
    /// The skill's name.
    pub name: String,
    /// The skill's description.
    pub description: String,
    /// The skill's tags.
    pub tags: Vec<String>,
    /// Example requests.
    pub examples: Vec<String>,
    /// The skill as hits show it, rendered as JSON in one line; empty, for all skills alike, where the hit has them itself.
    pub rendered: String,
}
