//! Documents, the input of the index: one [`AgentDocument`] per agent.

use a2a_registry_domain::facet::FacetMap;
use uuid::Uuid;

/// The longest filter, facet or lookup value in bytes. Longer ones are left out of the index.
pub const MAX_VALUE_BYTES: usize = 1024;

/// The longest text in bytes that is searched and highlighted per field of an agent; the rest is cut.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Maximum number of bytes of texts outside the card's model that are searched and highlighted; the rest is cut.
pub const MAX_OTHER_TEXT_BYTES: usize = 8 * 1024;

/// Maximum number of skills of an agent that are searched, filtered by and highlighted; the rest are left out.
pub const MAX_SKILLS: usize = 500;

/// Maximum number of separately rendered skills that a hit shows.
pub const MAX_SHOWN_SKILLS: usize = 10;

/// One agent in the index. Texts are arbitrary; values of filters and facets must be normalized, because the index
/// compares them byte by byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentDocument {
    /// One document per agent id.
    pub id: Uuid,
    /// The rendered hit, a JSON object, returned byte for byte. If skills are rendered separately, the member `skills`
    /// is added with up to [`MAX_SHOWN_SKILLS`] of them.
    pub hit: Vec<u8>,
    /// The entry rendered for catalogs, returned with the hit; empty if catalogs do not list the agent.
    pub catalog_entry: Vec<u8>,
    pub name: String,
    pub description: String,
    pub provider: String,
    pub skills: Vec<SkillText>,
    /// Texts of the card outside its model, searched at a low weight.
    pub other_texts: Vec<String>,
    /// Facet values. The domain and the protocol values are also searched as text.
    pub facets: FacetMap<Vec<String>>,
    /// Visibility labels: a caller needs one of them to see the agent. Without labels it is hidden from all callers.
    pub visible_to: Vec<String>,
    /// Labels by rules, which are kept beside the document: marked labels of callers are compared with these.
    pub rule_labels: Vec<String>,
    /// The agent's identifier in catalogs; empty if they do not list it.
    pub identifier: String,
    /// Further values for exact filters and counts, each with its path; at most `MAX_ATTRIBUTES`.
    pub attributes: Vec<(String, String)>,
    /// Exact keys for [`lookup`](super::Index::lookup_agents_by_key): `url:…`, `host:…`, `urn:…`, `digest:…`, `name:…`.
    pub lookup_keys: Vec<String>,
    /// A key shared by the agent and its duplicates only: half of a SHA-256 digest. 0 for none.
    pub duplicate_key: u128,
    /// Rank among duplicates: the agent with the highest preference represents the group, then the one seen first.
    pub preference: u8,
    /// When the agent was first seen; microseconds since 1970 UTC.
    pub created_at: i64,
    /// When the agent changed last; microseconds since 1970 UTC.
    pub updated_at: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillText {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
    /// The skill as shown in hits, as one line of JSON; empty, for all skills alike, if the hit already contains them.
    pub rendered: String,
}
