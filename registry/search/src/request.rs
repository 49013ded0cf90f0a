//! Search request: text, filters, order, page and facets.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use uuid::Uuid;

use crate::vectors::{Snapshot, Vectors};

/// The most words of a query that are searched for; the rest is ignored and a hint says so.
pub const MAX_QUERY_WORDS: usize = 32;

/// The most hits one search gives.
pub const MAX_LIMIT: usize = 1_000;

/// The most ids that [`FrozenOrder::places`](super::FrozenOrder::places) gives.
pub const MAX_ORDER: usize = 1_000;

/// The most values one search may name over all its filters.
pub const MAX_FILTER_VALUES: usize = 256;

/// A search over the agents a caller may see.
#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// Words to find, in plain language. Nothing, or a text without any word, matches every agent.
    pub text: Option<String>,
    /// What the agents have to be.
    pub filters: Filters,
    /// The caller's visibility labels; an agent is found when it carries one of them.
    pub visible_to: Vec<String>,
    /// The visibility labels that everybody of the caller's class holds. Scores, and what else counts how often words
    /// are used, count the agents that carry one of these and no others, so that they tell of nobody's own.
    pub class: Vec<String>,
    /// The order of the hits.
    pub sort: Sort,
    /// How many hits to give, at most [`MAX_LIMIT`]. With 0 there are still total and facets.
    pub limit: usize,
    /// Continue after this position of the same search.
    pub after: Option<SortPosition>,
    /// The facets to count over everything that matches.
    pub facets: Vec<FacetName>,
    /// Whether each hit has an explanation of its score.
    pub explain: bool,
    /// Whether the order is to be held for the pages that follow, where there are any.
    pub freeze: bool,
    /// What the text means, where agents are to be found by that too.
    pub meaning: Option<Meaning>,
}

/// What a query means, to find agents that say the same in other words.
#[derive(Debug, Clone)]
pub struct Meaning {
    /// The vectors of all agents.
    pub vectors: Arc<Vectors>,
    /// The query's vector of unit length, of the same model.
    pub query: Arc<[f32]>,
    /// How near an agent has to be at least to match, as a cosine.
    pub cutoff: f32,
    /// Whether words are neither asked for nor scored.
    pub alone: bool,
}

impl Meaning {
    /// A number that stands for who is near, and how near, as far as that lies in the query and in these vectors; the same in every
    /// process that holds the same.
    pub(super) fn digest(&self, vectors: &Snapshot) -> u64 {
        let mut hasher = DefaultHasher::new();
        vectors.digest().hash(&mut hasher);
        self.query
            .iter()
            .for_each(|number| number.to_bits().hash(&mut hasher));
        self.cutoff.to_bits().hash(&mut hasher);
        hasher.finish()
    }
}

/// Conditions on agents. Values inside one list are alternatives, different lists must all hold; an empty
/// list asks nothing. Values are compared exactly, except where the member says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// A skill's id, or words that all occur in the names of the agent's skills.
    pub skill: Vec<String>,
    /// A tag, in any case.
    pub tag: Vec<String>,
    /// A capability.
    pub capability: Vec<String>,
    /// A binding.
    pub binding: Vec<String>,
    /// A protocol version.
    pub protocol_version: Vec<String>,
    /// A provider's organisation, in any case.
    pub provider: Vec<String>,
    /// A domain.
    pub domain: Vec<String>,
    /// An authentication scheme.
    pub auth: Vec<String>,
    /// A media type accepted.
    pub input_mode: Vec<String>,
    /// A media type given.
    pub output_mode: Vec<String>,
    /// A label as `key=value`.
    pub label: Vec<String>,
    /// A lifecycle; without one only `approved` and `deprecated` agents are found.
    pub lifecycle: Vec<String>,
    /// A liveness; without one every agent but the `gone` ones is found.
    pub liveness: Vec<String>,
    /// Result of checking the card's signatures.
    pub signature: Vec<String>,
    /// Minimum trust level, 0 to 4; agents without a level never reach it.
    pub trust_at_least: Option<u8>,
}

/// The order of hits. Equal hits are ordered by id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Sort {
    /// Best match first; without a text the same as [`Sort::Updated`].
    #[default]
    Relevance,
    /// By name without regard to case and accents, A first.
    Name,
    /// Last changed first.
    Updated,
    /// First seen last comes first.
    Newest,
}

impl Sort {
    /// Every order.
    pub const ALL: [Self; 4] = [Self::Relevance, Self::Name, Self::Updated, Self::Newest];

    /// The order that a search for this text is really given in: without anything to be relevant to, by the last
    /// change.
    pub fn in_force(self, text: Option<&str>) -> Self {
        let asks_text = || text.is_some_and(|text| super::syntax::read(text).asks_text());
        match self {
            Self::Relevance if !asks_text() => Self::Updated,
            sort => sort,
        }
    }

    /// The name in requests and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Relevance => "relevance",
            Self::Name => "name",
            Self::Updated => "updated",
            Self::Newest => "newest",
        }
    }
}

/// The place of one hit in an order: what it is ordered by, and its id.
#[derive(Debug, Clone, PartialEq)]
pub struct SortPosition {
    /// What the order compares.
    pub value: SortValue,
    /// The agent, which decides between equal values.
    pub id: Uuid,
}

/// What an order compares.
#[derive(Debug, Clone, PartialEq)]
pub enum SortValue {
    /// The score of [`Sort::Relevance`] with a text.
    Score(f32),
    /// The folded name of [`Sort::Name`].
    Name(String),
    /// The time of [`Sort::Updated`] and [`Sort::Newest`], in microseconds since 1970 UTC.
    Time(i64),
}

/// A facet that can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FacetName {
    /// Tags.
    Tag,
    /// Skill ids.
    Skill,
    /// Capabilities.
    Capability,
    /// Bindings.
    Binding,
    /// Protocol versions.
    ProtocolVersion,
    /// Providers, lower-cased.
    Provider,
    /// Domains.
    Domain,
    /// Authentication schemes.
    Auth,
    /// Media types accepted.
    InputMode,
    /// Media types given.
    OutputMode,
    /// Labels as `key=value`.
    Label,
    /// Trust levels `L0` to `L4`, and `none`.
    Trust,
    /// Lifecycles.
    Lifecycle,
    /// Liveness.
    Liveness,
    /// Result of checking the card's signatures.
    Signature,
}

impl FacetName {
    /// Every facet, in the order of their names in the contract.
    pub const ALL: [Self; 15] = [
        Self::Tag,
        Self::Skill,
        Self::Capability,
        Self::Binding,
        Self::ProtocolVersion,
        Self::Provider,
        Self::Domain,
        Self::Auth,
        Self::InputMode,
        Self::OutputMode,
        Self::Label,
        Self::Trust,
        Self::Lifecycle,
        Self::Liveness,
        Self::Signature,
    ];

    /// The name in requests and answers, the same as the filter's.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tag => "tag",
            Self::Skill => "skill",
            Self::Capability => "capability",
            Self::Binding => "binding",
            Self::ProtocolVersion => "protocol_version",
            Self::Provider => "provider",
            Self::Domain => "domain",
            Self::Auth => "auth",
            Self::InputMode => "input_mode",
            Self::OutputMode => "output_mode",
            Self::Label => "label",
            Self::Trust => "trust",
            Self::Lifecycle => "lifecycle",
            Self::Liveness => "liveness",
            Self::Signature => "signature",
        }
    }

    /// The facet of this name, if there is one.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|facet| facet.as_str() == name)
    }
}

impl Filters {
    /// Every list with its name.
    pub(super) fn lists(&self) -> [(FacetName, &[String]); 14] {
        [
            (FacetName::Skill, &self.skill),
            (FacetName::Tag, &self.tag),
            (FacetName::Capability, &self.capability),
            (FacetName::Binding, &self.binding),
            (FacetName::ProtocolVersion, &self.protocol_version),
            (FacetName::Provider, &self.provider),
            (FacetName::Domain, &self.domain),
            (FacetName::Auth, &self.auth),
            (FacetName::InputMode, &self.input_mode),
            (FacetName::OutputMode, &self.output_mode),
            (FacetName::Label, &self.label),
            (FacetName::Lifecycle, &self.lifecycle),
            (FacetName::Liveness, &self.liveness),
            (FacetName::Signature, &self.signature),
        ]
    }

    /// The same filters without those of one name.
    pub(super) fn without(&self, facet: FacetName) -> Self {
        let mut filters = self.clone();
        match facet {
            FacetName::Skill => filters.skill.clear(),
            FacetName::Tag => filters.tag.clear(),
            FacetName::Capability => filters.capability.clear(),
            FacetName::Binding => filters.binding.clear(),
            FacetName::ProtocolVersion => filters.protocol_version.clear(),
            FacetName::Provider => filters.provider.clear(),
            FacetName::Domain => filters.domain.clear(),
            FacetName::Auth => filters.auth.clear(),
            FacetName::InputMode => filters.input_mode.clear(),
            FacetName::OutputMode => filters.output_mode.clear(),
            FacetName::Label => filters.label.clear(),
            FacetName::Lifecycle => filters.lifecycle.clear(),
            FacetName::Liveness => filters.liveness.clear(),
            FacetName::Signature => filters.signature.clear(),
            FacetName::Trust => filters.trust_at_least = None,
        }
        filters
    }
}
