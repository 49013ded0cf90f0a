//! Pages of lists, with facets, hints and suggestions.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::{
    Account, DomainView, Event, FindingView, FoundAgent, Group, Hit, Review, Session, Token,
    Version,
};

/// A page of agents. With `fields`, each hit has only the named members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    /// Agents on this page.
    #[schema(value_type = Vec<FoundAgent>)]
    pub agents: Vec<Hit>,
    /// Exact number of matches; those on all pages, unless `fitting=true` leaves some out.
    pub total: u64,
    /// Exact number of the matches that fit `q` well and are not `weak`; `total` without `q`.
    #[serde(default)]
    #[schema(required = true)]
    pub total_fitting: u64,
    /// Exact number of hits on all pages, with `group=content`; null without it.
    #[serde(default)]
    pub groups: Option<u64>,
    /// Counts for the requested facets, over the matches that `facets_count` names.
    pub facets: BTreeMap<String, Facet>,
    /// Member that numbers the matches counted in `facets`: `total`, or `total_fitting` with `fitting=true`.
    #[serde(default)]
    #[schema(required = true)]
    pub facets_count: String,
    /// `relevance`, `name`, `updated`, `newest`, or `resumed` if the list could not continue in the mode of the
    /// previous page and restarts as full-text search; hits may then repeat.
    pub order: String,
    /// Search mode: `lexical`, `hybrid` or `semantic`.
    pub mode: String,
    /// Phrases of `q` that were applied as filters; null if there are none, or with `understand=false`.
    #[serde(default)]
    pub understood: Option<Understood>,
    /// Suggestions for a better search.
    pub hints: Vec<Hint>,
    /// `page_token` of the next page; null on the last page.
    pub next_page_token: Option<String>,
}

/// `facets_count` of a list of all matches.
pub const FACETS_COUNT_TOTAL: &str = "total";
/// `facets_count` of a list of the matches that fit.
pub const FACETS_COUNT_FITTING: &str = "total_fitting";

impl AgentList {
    /// Whether matches that do not fit are left out of hits and facets.
    pub fn has_only_fitting(&self) -> bool {
        self.facets_count == FACETS_COUNT_FITTING
    }
}

/// Values of one facet among the matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Facet {
    /// The most frequent values.
    pub values: Vec<FacetValue>,
    /// Number of matches with other values.
    pub other_count: u64,
}

/// A facet value and its count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FacetValue {
    /// Value for the filter of the same name.
    pub value: String,
    /// Number of matches with this value.
    pub count: u64,
}

/// Suggestion for a better search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hint {
    /// Kind of the suggestion, such as `filter`, `empty` or `only_weak`.
    pub kind: String,
    /// The suggestion, as a sentence.
    pub text: String,
    /// Number of agents that the named filter excludes.
    pub hidden: Option<u64>,
}

/// Phrases of a search text that were applied as filters, and the text without them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Understood {
    /// The text that was searched, with excluded words as `-word`; may be empty.
    pub q: String,
    /// The phrases, in the order of the text; never empty.
    pub parts: Vec<UnderstoodPart>,
}

/// A phrase of a search text that was applied as a filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnderstoodPart {
    /// The words of the text.
    pub text: String,
    /// The parameter that they stand for, such as `auth`; `q` for excluded words.
    pub parameter: String,
    /// The value of the parameter, such as `none`, or `-acme`.
    pub value: String,
}

/// One line about these phrases for a reader, such as `Understood: auth=none ("without login")`; `None` without any.
pub fn understood_line(parts: &[UnderstoodPart]) -> Option<String> {
    let part_texts: Vec<String> = parts
        .iter()
        .map(|part| format!("{}={} (\"{}\")", part.parameter, part.value, part.text))
        .collect();
    (!part_texts.is_empty()).then(|| format!("Understood: {}", part_texts.join(", ")))
}

/// Completions of a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Suggestions {
    /// Best first.
    pub suggestions: Vec<SuggestionView>,
}

/// One completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SuggestionView {
    /// The completed text.
    pub text: String,
    /// `name`, `skill` or `tag`.
    pub kind: String,
    /// Number of agents that have it.
    pub count: u64,
}

/// Agents with a given address, host, URN, digest or name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Lookup {
    /// Best match first; never empty.
    pub agents: Vec<Hit>,
}

macro_rules! page {
    ($(#[$meta:meta])* $name:ident, $members:ident: $item:ty) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
        pub struct $name {
            /// Entries of this page.
            pub $members: Vec<$item>,
            /// `page_token` of the next page; null on the last page.
            pub next_page_token: Option<String>,
        }
    };
}

page!(
    /// A page of an agent's stored versions, newest first.
    VersionList, versions: Version
);
page!(
    /// A page of domains, by name.
    DomainList, domains: DomainView
);
page!(
    /// A page of reviews, oldest first.
    ReviewList, reviews: Review
);
page!(
    /// A page of events, oldest first.
    EventList, events: Event
);
page!(
    /// A page of tokens, newest first.
    TokenList, tokens: Token
);
page!(
    /// A page of sessions, newest first.
    SessionList, sessions: Session
);
page!(
    /// A page of accounts, newest first.
    AccountList, accounts: Account
);
page!(
    /// A page of groups, newest first.
    GroupList, groups: Group
);

/// Lint findings of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindingList {
    /// Digest of the card.
    #[schema(value_type = super::limits::Digest)]
    pub digest: String,
    /// Findings in the order of the card.
    pub findings: Vec<FindingView>,
}

/// Lint findings of a card that was sent to be linted, and how the card was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CardLint {
    /// Digest of the card.
    #[schema(value_type = super::limits::Digest)]
    pub digest: String,
    /// Name of the agent.
    pub name: String,
    /// Wire format that the card was read as, such as `1.0` or `0.3`.
    pub wire_family: String,
    /// The feature of the card that determined its wire format.
    pub reason: String,
    /// Findings, the most severe first, each with its position.
    pub findings: Vec<FindingView>,
}

/// Deserializes an optional parameter that is not text. An empty value is an error; a missing one is not.
pub fn deserialize_nonempty_parameter<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    parameter: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(parameter).map(Some)
}
