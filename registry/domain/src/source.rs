//! The kinds and states of a domain's sources.

use super::text_enum::text_enum;

text_enum! {
    /// The kinds of sources.
    SourceKind {
        /// Both well-known paths of a card.
        WellKnown = "well_known",
        /// One card URL that was registered.
        Url = "url",
        /// One card URL that a catalog of the domain names.
        Entry = "entry",
        /// The catalog of ARD.
        Ard = "ard",
        /// The catalog of AI Catalog.
        AiCatalog = "ai_catalog",
    }
}

impl SourceKind {
    /// The kinds of catalogs. The first one takes precedence over the second.
    pub const CATALOGS: [Self; 2] = [Self::Ard, Self::AiCatalog];

    /// Whether such a source names cards instead of giving one.
    pub const fn is_catalog(self) -> bool {
        matches!(self, Self::Ard | Self::AiCatalog)
    }
}

text_enum! {
    /// The state of a source.
    SourceState {
        /// It was not fetched yet.
        New = "new",
        /// The caller has registered it, and does not see what it gives. No source is stored with this state.
        Recorded = "recorded",
        /// The last fetch succeeded.
        Fresh = "fresh",
        /// The last fetch failed.
        Stale = "stale",
        /// Fetches failed for so long that its agent is not listed by default.
        Gone = "gone",
        /// A catalog that does not exist: no fault, and no visit is made for it alone.
        Absent = "absent",
    }
}
