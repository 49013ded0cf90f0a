//! Documents, the input of the index: one [`Document`] per agent.

use a2a_registry_domain::facet::FacetMap;
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
    /// The skills with their texts, in the card's order.
    pub skills: Vec<SkillText>,
    /// Texts of the card outside its model: searched at a low weight.
    pub other_texts: Vec<String>,
    /// The values of each facet; empty ones are none. The domain and the values about the protocol are searched too.
    pub facets: FacetMap<Vec<String>>,
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
