//! The kinds and states of a domain's sources, and the kinds of their credentials.

use super::text_enum::text_enum;

text_enum! {
    /// The kinds of sources.
    SourceKind {
        /// The two well-known paths of a card.
        WellKnown = "well_known",
        /// One registered card URL.
        Url = "url",
        /// One card URL listed in a catalog of the domain.
        Entry = "entry",
        /// An ARD catalog.
        Ard = "ard",
        /// An AI Catalog.
        AiCatalog = "ai_catalog",
    }
}

impl SourceKind {
    /// The kinds of catalogs. The first one takes precedence over the second.
    pub const CATALOGS: [Self; 2] = [Self::Ard, Self::AiCatalog];

    /// Whether such a source lists cards instead of being one.
    pub const fn is_catalog(self) -> bool {
        matches!(self, Self::Ard | Self::AiCatalog)
    }
}

text_enum! {
    /// The state of a source.
    SourceState {
        /// Not fetched yet.
        New = "new",
        /// Registered by the caller, who may not see its content. No source is stored with this state.
        Recorded = "recorded",
        /// The last fetch succeeded.
        Fresh = "fresh",
        /// The last fetch failed.
        Stale = "stale",
        /// Fetches have failed for so long that its agent is not listed by default.
        Gone = "gone",
        /// A catalog that does not exist: this is no error, and no visit is made for it alone.
        Absent = "absent",
    }
}

text_enum! {
    /// The kinds of credentials with which the crawler fetches a source.
    CredentialKind {
        /// A bearer token.
        Bearer = "bearer",
        /// A user name and a password.
        Basic = "basic",
        /// A header field of any other name.
        Header = "header",
        /// A client that gets access tokens by OAuth 2 client credentials.
        ClientCredentials = "client_credentials",
    }
}
