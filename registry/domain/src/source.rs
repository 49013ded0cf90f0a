//! What is asked of a domain.

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
    /// The kinds of catalogs. What the first one says about an agent counts before what the second one says.
    pub const CATALOGS: [Self; 2] = [Self::Ard, Self::AiCatalog];

    /// Whether such a source names cards instead of giving one.
    pub const fn is_catalog(self) -> bool {
        matches!(self, Self::Ard | Self::AiCatalog)
    }
}

text_enum! {
    /// How a source fares.
    SourceState {
        /// It was not asked yet.
        New = "new",
        /// The last look succeeded.
        Fresh = "fresh",
        /// The last look failed.
        Stale = "stale",
        /// It fails for so long that what it feeds leaves search.
        Gone = "gone",
        /// A catalog that is not there: no fault, and no visit is made for it alone.
        Absent = "absent",
    }
}
