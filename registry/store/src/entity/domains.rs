//! Rows: domains and what is asked of them.

/// A registered domain.
pub mod domain {
    use sea_orm::entity::prelude::*;

    use crate::Kept;
    use crate::StoreError;
    use a2a_registry_domain::ownership::DomainState;
    use a2a_registry_domain::ownership::OptOut;

    /// A registered domain.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "domains")]
    pub struct Model {
        /// Key.
        #[sea_orm(primary_key)]
        pub id: i64,
        /// `host` or `host:port`.
        pub name: String,
        /// `https` or `http`.
        pub scheme: String,
        /// What it is to callers.
        pub state: Kept<DomainState>,
        /// Rises with a new owner.
        pub generation: i64,
        /// Who registered it.
        pub account_id: Option<Uuid>,
        /// The network it was named from, where nobody with an account did.
        pub nominated_from: Option<String>,
        /// When its generation began; what was decided before counts no more.
        pub generation_since: i64,
        /// Whose proof of it holds, the strongest one's.
        pub owner_id: Option<Uuid>,
        /// Whether its owner's proof is a record, its own or of a domain above.
        pub dns_proved: bool,
        /// Where its owner wants to be told of trouble.
        pub contact: Option<String>,
        /// Who has said so, where it wants not to be listed.
        pub opted_out_by: Option<Kept<OptOut>>,
        /// When its last proof ended without another one standing.
        pub lapsed_at: Option<i64>,
        /// When its proofs are looked at next.
        pub check_due_at: Option<i64>,
        /// Microseconds.
        pub created_at: i64,
        /// Set once it was deleted.
        pub deleted_at: Option<i64>,
        /// When its next visit is due.
        pub visit_due_at: Option<i64>,
        /// How long after the visit before the next one was planned; none where somebody waits for it: a
        /// first visit, or a wish.
        pub visit_interval_us: Option<i64>,
        /// The address block its last visit spoke to, such as `192.0.2.0/24`; none where no limit is set on
        /// that.
        pub network: Option<String>,
        /// The earliest moment politeness allows a visit.
        pub not_before: i64,
        /// When somebody asked for a visit while one was under way.
        pub wanted_at: Option<i64>,
        /// The lease under which a visit is being made.
        pub lease: Option<i64>,
        /// When that lease ends by itself.
        pub leased_until: Option<i64>,
    }

    impl Model {
        /// What it is to callers.
        ///
        /// # Errors
        /// [`StoreErrorKind::CorruptRow`](crate::StoreErrorKind::CorruptRow) where this program does not know it.
        pub fn state(&self) -> Result<DomainState, StoreError> {
            self.state.of("domains", "state", self.id)
        }

        /// Who has said that it wants not to be listed.
        ///
        /// # Errors
        /// [`StoreErrorKind::CorruptRow`](crate::StoreErrorKind::CorruptRow) where this program does not know it.
        pub fn opted_out_by(&self) -> Result<Option<OptOut>, StoreError> {
            let kept = self.opted_out_by.as_ref();
            kept.map(|kept| kept.of("domains", "opted_out_by", self.id))
                .transpose()
        }
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// A proof of ownership.
pub mod proof {
    use sea_orm::entity::prelude::*;

    use crate::Kept;
    use a2a_registry_domain::ownership::Method;

    /// A proof of ownership.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "proofs")]
    pub struct Model {
        /// Key.
        #[sea_orm(primary_key)]
        pub id: i64,
        /// Whose.
        pub domain_id: i64,
        /// How it was given.
        pub method: Kept<Method>,
        /// Who gave it.
        pub actor: String,
        /// Whose it is; nobody's where an admin vouches.
        pub account_id: Option<Uuid>,
        /// The name or URL it was found at.
        pub place: Option<String>,
        /// The challenge's random part.
        pub nonce: Option<String>,
        /// An admin's reason.
        pub reason: Option<String>,
        /// Since when.
        pub proved_at: i64,
        /// When it was last found.
        pub held_at: i64,
        /// Since when it is missing.
        pub absent_since: Option<i64>,
        /// How often it was missing in a row.
        pub absent_looks: i32,
        /// Until when.
        pub ended_at: Option<i64>,
        /// The name below which it covers every host, where it is a record that says so.
        pub zone: Option<String>,
        /// The account whose sources an admin vouches for too.
        pub vouched_account: Option<Uuid>,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// One URL of a domain that yields cards, and how it fares.
pub mod source {
    use sea_orm::entity::prelude::*;

    use crate::Kept;
    use a2a_registry_domain::source::SourceKind;
    use a2a_registry_domain::source::SourceState;

    /// One URL of a domain that yields cards, and how it fares.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "sources")]
    pub struct Model {
        /// Key.
        #[sea_orm(primary_key)]
        pub id: i64,
        /// Whose.
        pub domain_id: i64,
        /// What it is.
        pub kind: Kept<SourceKind>,
        /// The origin, the card URL, or the catalog's.
        pub url: String,
        /// What the catalog calls it, where a catalog names it.
        pub identifier: Option<String>,
        /// The source that is the catalog which names it.
        pub catalog_id: Option<i64>,
        /// Since when that catalog does not name it any more.
        pub unlisted_since: Option<i64>,
        /// Looks at the catalog in a row that did not find it.
        pub unlisted_looks: i32,
        /// The agent it feeds, once it gave a card.
        pub agent_id: Option<Uuid>,
        /// The account on whose word the first card is approved.
        pub approve_as: Option<Uuid>,
        /// Which URL gave the validators.
        pub validator_url: Option<String>,
        /// `ETag` as received.
        pub etag: Option<String>,
        /// `Last-Modified` as received.
        pub last_modified: Option<String>,
        /// The request fields by which the origin last said that its answer differs, at most 255 bytes.
        pub vary: Option<String>,
        /// Seconds its last answer may be called fresh, where it says so.
        pub max_age: Option<i64>,
        /// When it is due.
        pub next_due_at: i64,
        /// When it would be due, where somebody asked for it sooner.
        pub planned_at: Option<i64>,
        /// The adaptive interval, microseconds.
        pub interval_us: i64,
        /// Ask for the whole card next time.
        pub full_wanted: bool,
        /// How many requests were ever made for it.
        pub attempts: i64,
        /// Last 200 or 304.
        pub last_success_at: Option<i64>,
        /// Last 200.
        pub last_full_at: Option<i64>,
        /// The address that its last good answer came from.
        pub answered_from: Option<String>,
        /// The outcome that its failures count as.
        pub failing_as: Option<String>,
        /// Since when it fails, whatever the causes.
        pub failing_since: Option<i64>,
        /// Looks in a row that failed.
        pub failures: i32,
        /// Since when it fails for the cause in force.
        pub cause_since: Option<i64>,
        /// When it last did.
        pub cause_latest: Option<i64>,
        /// How often it did.
        pub cause_looks: i32,
        /// How it fares.
        pub liveness: Kept<SourceState>,
        /// Why it is not fresh.
        pub liveness_reason: Option<String>,
        /// Microseconds.
        pub created_at: i64,
        /// Set once it is asked no more.
        pub ended_at: Option<i64>,
        /// The origin that gave its last answer in full, after redirects.
        pub answered_by: Option<String>,
        /// The limit that was reached, where a card was fetched but no agent was created from it.
        pub limit_met: Option<String>,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// One request to an origin.
pub mod attempt {
    use sea_orm::entity::prelude::*;

    /// One request to an origin.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "attempts")]
    pub struct Model {
        /// For which source.
        #[sea_orm(primary_key, auto_increment = false)]
        pub source_id: i64,
        /// The rest of its number by how many are kept: a new one takes the place of the oldest.
        #[sea_orm(primary_key, auto_increment = false)]
        pub place: i32,
        /// Its number among all requests for its source, from 0.
        pub number: i64,
        /// When it began.
        pub at: i64,
        /// What was asked.
        pub url: String,
        /// How it ended.
        pub outcome: String,
        /// HTTP status.
        pub status: Option<i32>,
        /// Who answered.
        pub address: Option<String>,
        /// One sentence.
        pub detail: String,
        /// Whether only what has changed was asked for.
        pub conditional: bool,
        /// Milliseconds.
        pub elapsed_ms: i32,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// How many visits may begin, of one row.
pub mod pace {
    use sea_orm::entity::prelude::*;

    /// How many visits may begin, of one row.
    #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
    #[sea_orm(table_name = "crawl_pace")]
    pub struct Model {
        /// Always 1.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i64,
        /// Visits that may begin; the fraction is carried on.
        pub visits: f64,
        /// As of when.
        pub at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// How a source fared on one day.
pub mod source_day {
    use sea_orm::entity::prelude::*;

    /// How a source fared on one day.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "source_days")]
    pub struct Model {
        /// Which source.
        #[sea_orm(primary_key, auto_increment = false)]
        pub source_id: i64,
        /// Days since 1970, UTC.
        #[sea_orm(primary_key, auto_increment = false)]
        pub day: i32,
        /// How often it was asked.
        pub looks: i32,
        /// How often it had a card.
        pub good: i32,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Somebody who has registered a source.
pub mod source_registrant {
    use sea_orm::entity::prelude::*;

    use crate::Kept;
    use a2a_registry_domain::role::Role;

    /// Somebody who has registered a source.
    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "source_registrants")]
    pub struct Model {
        /// Key.
        #[sea_orm(primary_key)]
        pub id: i64,
        /// Which source.
        pub source_id: i64,
        /// Which account; none for anyone.
        pub account_id: Option<Uuid>,
        /// The network that anyone came from.
        pub network: Option<String>,
        /// What the account was then.
        pub role: Option<Kept<Role>>,
        /// Microseconds.
        pub registered_at: i64,
    }

    /// None: joins are written where they are needed.
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
