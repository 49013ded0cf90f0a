//! Rows: agents and the versions of their cards.

/// An agent: the history of the card in one slot.
pub mod agent {
    use a2a_registry_domain::endpoint::EndpointState;
    use a2a_registry_domain::lifecycle::{Lifecycle, LivenessState, Visibility};

    table_row! { "agents":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub domain_id: i64,
        pub domain: String,
        /// `well-known`, or the card URL.
        pub slot: String,
        /// Assigned with the first proof of the domain.
        pub urn: Option<String>,
        /// The company's domain in [`Self::authority_urn`].
        pub authority: Option<String>,
        /// Assigned with an admin's vouch for a host that cannot be proved, under the company's authority. It stays
        /// when [`Self::urn`] takes its place.
        pub authority_urn: Option<String>,
        pub lifecycle: StoredEnum<Lifecycle>,
        /// A `Deprecation` as JSON, from the last time the agent was deprecated.
        pub deprecation: Option<String>,
        pub visibility: StoredEnum<Visibility>,
        /// A JSON array of the ids of groups that see it while it is restricted; null for none.
        pub audience: Option<String>,
        /// A JSON array of the ids of collections whose audience sees it too while it is restricted.
        pub collections: Option<String>,
        /// The groups of those collections' audiences, as in [`Self::audience`], kept up to date with them.
        pub collection_audience: Option<String>,
        /// A JSON object of texts, set by curators.
        pub labels: String,
        /// The thumbprints of its pinned keys, separated by spaces: of its first valid signature, or accepted later.
        pub pins: String,
        /// The account that its card names as owner, which proves this one card.
        pub claimed_by: Option<Uuid>,
        /// The domain's owner, or without one the account that its card names.
        pub owner_id: Option<Uuid>,
        pub submitter: Option<Uuid>,
        /// The account that is responsible for it inside the company.
        pub sponsor_id: Option<Uuid>,
        /// Whether a curator has accepted queries derived from its skills for its ARD entry.
        pub derived_queries: bool,
        /// The version that is served.
        pub approved_version: Option<Uuid>,
        /// When the current term of its approval began.
        pub certified_at: Option<i64>,
        /// When its approval ends; set once its owner was notified.
        pub recertify_at: Option<i64>,
        pub newest_version: Option<Uuid>,
        pub tls: bool,
        pub liveness: StoredEnum<LivenessState>,
        pub liveness_reason: Option<String>,
        /// The last response with status 200 or 304.
        pub last_seen_at: Option<i64>,
        pub last_changed_at: Option<i64>,
        pub gone_since: Option<i64>,
        /// The start of the day in which `changes` are counted.
        pub changes_since: i64,
        pub changes: i32,
        pub created_at: i64,
        pub updated_at: i64,
        pub retired_at: Option<i64>,
        /// The result of the last check of its endpoint.
        pub endpoint: StoredEnum<EndpointState>,
        /// The checked address; null while none is permitted.
        pub endpoint_check_id: Option<i64>,
        pub endpoint_checked_at: Option<i64>,
        /// The last check with an A2A answer.
        pub endpoint_answered_at: Option<i64>,
    }

    impl Model {
        /// An agent whose card was fetched for the first time.
        pub fn new_agent(id: Uuid, domain_id: i64, domain: String, slot: String, now: i64) -> Self {
            Self {
                id,
                domain_id,
                domain,
                slot,
                urn: None,
                authority: None,
                authority_urn: None,
                lifecycle: Lifecycle::Pending.into(),
                deprecation: None,
                visibility: Visibility::Public.into(),
                audience: None,
                collections: None,
                collection_audience: None,
                labels: "{}".into(),
                pins: String::new(),
                claimed_by: None,
                owner_id: None,
                submitter: None,
                sponsor_id: None,
                derived_queries: false,
                approved_version: None,
                certified_at: None,
                recertify_at: None,
                newest_version: None,
                tls: false,
                liveness: LivenessState::Fresh.into(),
                liveness_reason: None,
                last_seen_at: Some(now),
                last_changed_at: None,
                gone_since: None,
                changes_since: now,
                changes: 0,
                created_at: now,
                updated_at: now,
                retired_at: None,
                endpoint: EndpointState::NotChecked.into(),
                endpoint_check_id: None,
                endpoint_checked_at: None,
                endpoint_answered_at: None,
            }
        }

        /// The URN that identifies the agent now: its own, or the company's while its domain was never proved.
        pub fn current_urn(&self) -> Option<&str> {
            self.urn.as_deref().or(self.authority_urn.as_deref())
        }

        /// The URN that identified it until its domain was proved, and still leads to it.
        pub fn former_urn(&self) -> Option<&str> {
            let former = self.authority_urn.as_deref();
            former.filter(|_| self.urn.is_some())
        }

        pub fn has_urn(&self, urn: &str) -> bool {
            [&self.urn, &self.authority_urn]
                .into_iter()
                .any(|one| one.as_deref() == Some(urn))
        }
    }

    enum_columns! { "agents", id:
        lifecycle -> Lifecycle,
        visibility -> Visibility,
        liveness -> LivenessState,
        endpoint -> EndpointState,
    }
}

pub mod hold {
    use a2a_registry_domain::lifecycle::Hold;

    table_row! { "holds":
        #[sea_orm(primary_key, auto_increment = false)]
        pub agent_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub hold: StoredEnum<Hold>,
        pub reason: String,
        pub actor: String,
        pub since: i64,
    }

    impl Model {
        /// The kind of the hold; a kind that this program does not know counts as an operator's hold.
        pub fn hold_kind(&self) -> Hold {
            self.hold.known_value().unwrap_or(Hold::Operator)
        }
    }
}

pub mod card_body {
    table_row! { "bodies":
        /// `sha256:` and 64 hex digits.
        #[sea_orm(primary_key, auto_increment = false)]
        pub digest: String,
        pub bytes: Vec<u8>,
    }
}

pub mod version {
    use a2a_registry_domain::coverage::CoverageLevel;
    use a2a_registry_domain::review::{ChangeClass, VersionState};
    use a2a_registry_domain::signature::SignatureState;

    table_row! { "versions":
        /// Identifiers increase with time.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub agent_id: Uuid,
        pub digest: String,
        /// Of the canonical form without signatures.
        pub content_digest: String,
        pub signing: String,
        /// The state of its signatures apart from the proof of the domain; only a proof makes it `valid`.
        pub signature: StoredEnum<SignatureState>,
        /// The key sets that verified its signatures, as JSON.
        pub key_sets: String,
        /// The thumbprints of the keys that verify its signatures, separated by spaces.
        pub thumbprints: String,
        /// The result of each signature with the reason, as JSON.
        pub verdicts: String,
        pub wire_family: String,
        /// The parsed card, as JSON.
        pub model: String,
        /// The findings about the card, as JSON.
        pub findings: String,
        pub has_error: bool,
        /// The `DERIVATION_VERSION` that computed this row.
        pub derivation: i32,
        pub observed_at: i64,
        /// The class of its change from the version approved at that time.
        pub change_class: Option<StoredEnum<ChangeClass>>,
        pub state: StoredEnum<VersionState>,
        pub ever_approved: bool,
        /// The number of fetches with different bytes but the same content.
        pub repeats: i64,
        /// The coverage of the source that it came from.
        pub standing: StoredEnum<CoverageLevel>,
    }

    enum_columns! { "versions", id:
        change_class -> Option<ChangeClass>,
        state -> VersionState,
        standing -> CoverageLevel,
    }
}

pub mod version_source {
    table_row! { "version_sources":
        #[sea_orm(primary_key, auto_increment = false)]
        pub version_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub source_id: i64,
        /// The origin that served it last, after redirects.
        pub answered_by: String,
    }
}
