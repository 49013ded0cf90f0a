//! Rows: agents and the versions of their cards.

/// An agent: the history of the card in one slot.
pub mod agent {
    use a2a_registry_domain::lifecycle::{Lifecycle, LivenessState, Visibility};

    table_row! { "agents":
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub domain_id: i64,
        /// That domain's name.
        pub domain: String,
        /// `well-known`, or the card URL.
        pub slot: String,
        /// Assigned with the first proof.
        pub urn: Option<String>,
        pub lifecycle: Kept<Lifecycle>,
        /// A `Deprecation` in JSON, of the last time that the agent was deprecated.
        pub deprecation: Option<String>,
        pub visibility: Kept<Visibility>,
        /// The groups that see it while it is restricted: a JSON array of their ids. Without one, none.
        pub audience: Option<String>,
        /// The collections whose audience sees it too while it is restricted: a JSON array of their ids.
        pub collections: Option<String>,
        /// The groups of these audiences, as [`Self::audience`]; follows them.
        pub collection_audience: Option<String>,
        /// JSON object of texts, set by curators.
        pub labels: String,
        /// The thumbprints of its pinned keys, with spaces between; those of the first valid signature until others are
        /// accepted.
        pub pins: String,
        /// The account that its card names as its owner, which proves this one card.
        pub claimed_by: Option<Uuid>,
        /// Its owner: the domain's owner, or without one the account that its card names.
        pub owner_id: Option<Uuid>,
        /// The account that registered the source.
        pub submitter: Option<Uuid>,
        /// The account that answers for it inside the company.
        pub sponsor_id: Option<Uuid>,
        /// Whether a curator has accepted queries that are derived from its skills, for its entry of ARD.
        pub derived_queries: bool,
        /// The version served.
        pub approved_version: Option<Uuid>,
        /// Since when the term of its approval runs.
        pub certified_at: Option<i64>,
        /// When its approval ends, once its owner was told of that.
        pub recertify_at: Option<i64>,
        /// The version fetched last.
        pub newest_version: Option<Uuid>,
        /// Whether the card came over valid TLS.
        pub tls: bool,
        pub liveness: Kept<LivenessState>,
        /// The reason why it is not fresh.
        pub liveness_reason: Option<String>,
        /// Last 200 or 304.
        pub last_seen_at: Option<i64>,
        /// Last new version.
        pub last_changed_at: Option<i64>,
        /// Since when it is gone.
        pub gone_since: Option<i64>,
        /// The beginning of the day in which `changes` are counted.
        pub changes_since: i64,
        /// New versions in that day.
        pub changes: i32,
        pub created_at: i64,
        pub updated_at: i64,
        /// The time at which it was retired.
        pub retired_at: Option<i64>,
    }

    impl Model {
        /// An agent whose card was fetched for the first time.
        pub fn found(id: Uuid, domain_id: i64, domain: String, slot: String, now: i64) -> Self {
            Self {
                id,
                domain_id,
                domain,
                slot,
                urn: None,
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
            }
        }
    }

    enum_columns! { "agents", id:
        lifecycle -> Lifecycle,
        visibility -> Visibility,
        liveness -> LivenessState,
    }
}

/// A hold on an agent.
pub mod hold {
    use a2a_registry_domain::lifecycle::Hold;

    table_row! { "holds":
        #[sea_orm(primary_key, auto_increment = false)]
        pub agent_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub hold: Kept<Hold>,
        pub reason: String,
        pub actor: String,
        pub since: i64,
    }

    impl Model {
        /// The hold as it is shown. A kind that this program does not know was set by a later one, and is shown as an
        /// operator's hold.
        pub fn shown(&self) -> Hold {
            self.hold.known().unwrap_or(Hold::Operator)
        }
    }
}

/// Received bytes, by their digest.
pub mod body {
    table_row! { "bodies":
        /// `sha256:` and 64 hex digits.
        #[sea_orm(primary_key, auto_increment = false)]
        pub digest: String,
        /// Exactly as received.
        pub bytes: Vec<u8>,
    }
}

/// One stored version of a card.
pub mod version {
    use a2a_registry_domain::coverage::CoverageLevel;
    use a2a_registry_domain::review::{ChangeClass, VersionState};
    use a2a_registry_domain::signature::SignatureState;

    table_row! { "versions":
        /// Identifier; rises with time.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub agent_id: Uuid,
        /// Of the bytes.
        pub digest: String,
        /// Of the canonical form without signatures.
        pub content_digest: String,
        pub signing: String,
        /// The state of its signatures without a proof of the domain; only a proof makes it `valid`.
        pub signature: Kept<SignatureState>,
        /// JSON of the key sets that verified its signatures.
        pub key_sets: String,
        /// The thumbprints of the keys with which its signatures verify, with spaces between.
        pub thumbprints: String,
        /// JSON of the result of each of its signatures, with the reason.
        pub verdicts: String,
        /// The wire format it was read as.
        pub wire_family: String,
        /// JSON of the card's model.
        pub model: String,
        /// JSON of its findings.
        pub findings: String,
        /// Whether one of them is an error.
        pub has_error: bool,
        /// The `DERIVATION` that made this row.
        pub derivation: i32,
        /// When it was first seen.
        pub observed_at: i64,
        /// The class of its change against the version approved then.
        pub change_class: Option<Kept<ChangeClass>>,
        /// The decision on it.
        pub state: Kept<VersionState>,
        /// Whether it was approved once.
        pub ever_approved: bool,
        /// The number of fetches of different bytes with the same content.
        pub repeats: i64,
        /// The coverage of the source that gave it.
        pub standing: Kept<CoverageLevel>,
    }

    enum_columns! { "versions", id:
        change_class -> Option<ChangeClass>,
        state -> VersionState,
        standing -> CoverageLevel,
    }
}

/// A source that gave a version of a card.
pub mod version_source {
    table_row! { "version_sources":
        #[sea_orm(primary_key, auto_increment = false)]
        pub version_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub source_id: i64,
        /// The origin that answered last, after redirects.
        pub answered_by: String,
    }
}
