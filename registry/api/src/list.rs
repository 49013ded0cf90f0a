//! Lists and what goes with them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{DomainView, Event, FindingView, Hit, Review, Token, Version};

/// A page of agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    /// The page.
    pub agents: Vec<Hit>,
    /// How many match in all; exact.
    pub total: u64,
    /// Counts over all matches, for the facets asked for.
    pub facets: BTreeMap<String, Facet>,
    /// `relevance`, `name`, `updated`, `newest`, or `resumed` where a frozen order had expired.
    pub order: String,
    /// How the text was matched: `lexical`, `hybrid` or `semantic`.
    pub mode: String,
    /// What else to try.
    pub hints: Vec<Hint>,
    /// Give this as `page_token` for the next page; null at the end.
    pub next_page_token: Option<String>,
}

/// How often each value occurs among the matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Facet {
    /// The most frequent values.
    pub values: Vec<FacetValue>,
    /// How many matches carry values beyond those.
    pub other_count: u64,
}

/// One value and its count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FacetValue {
    /// The value, as the filter of the same name takes it.
    pub value: String,
    /// How many matches carry it.
    pub count: u64,
}

/// Something to try instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hint {
    /// What kind of advice this is, such as `filter` or `empty`.
    pub kind: String,
    /// The advice.
    pub text: String,
    /// How many agents the named filter hides.
    pub hidden: Option<u64>,
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
    /// How many agents carry it.
    pub count: u64,
}

/// Agents behind one address, host, URN or digest.
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
            /// The page.
            pub $members: Vec<$item>,
            /// Give this as `page_token` for the next page; null at the end.
            pub next_page_token: Option<String>,
        }
    };
}

page!(
    /// A page of an agent's kept versions, newest first.
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

/// A card's findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindingList {
    /// The card they are about.
    #[schema(value_type = super::limits::Digest)]
    pub digest: String,
    /// In the card's order.
    pub findings: Vec<FindingView>,
}
