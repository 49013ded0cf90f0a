//! Rows: domains, their proofs, sources and attempts.

/// A registered domain.
pub mod domain {
    use a2a_registry_domain::ownership::{DomainState, OptOut};
    use a2a_registry_domain::timestamp::Timestamp;

    table_row! { "domains":
        #[sea_orm(primary_key)]
        pub id: i64,
        /// `host` or `host:port`.
        pub name: String,
        /// `https` or `http`.
        pub scheme: String,
        pub state: Kept<DomainState>,
        /// Rises with a new owner.
        pub generation: i64,
        /// The account that registered it.
        pub account_id: Option<Uuid>,
        /// The network of its anonymous registration.
        pub nominated_from: Option<String>,
        /// When its generation began; decisions before it do not count.
        pub generation_since: i64,
        /// Its proved owner: the account with the strongest proof.
        pub owner_id: Option<Uuid>,
        /// Whether its owner's proof is a DNS record, its own or of a parent.
        pub dns_proved: bool,
        /// The methods of the proofs by which it is verified, in order and with spaces between; null while it is not.
        pub proof_methods: Option<String>,
        pub contact: Option<String>,
        /// Who has opted it out of being listed.
        pub opted_out_by: Option<Kept<OptOut>>,
        /// When its last proof ended.
        pub lapsed_at: Option<i64>,
        /// When its next check is due.
        pub check_due_at: Option<i64>,
        pub created_at: i64,
        /// Set once it was deleted.
        pub deleted_at: Option<i64>,
        /// When its next visit is due.
        pub visit_due_at: Option<i64>,
        /// The interval from the last visit to the next planned one; null for a first or requested visit, which
        /// somebody waits for.
        pub visit_interval_us: Option<i64>,
        /// The turn of its requested visit: the lowest is made first. It means nothing while the visit is a planned one.
        pub visit_turn: i64,
        /// Who requested that visit: an account or a network; empty for the registry itself.
        pub visit_requester: Option<String>,
        /// The address block of its last visit, such as `192.0.2.0/24`; null if the block has no limit.
        pub network: Option<String>,
        /// The earliest time of a visit, by the spacing.
        pub not_before: i64,
        /// When a visit was requested while one was under way.
        pub wanted_at: Option<i64>,
        /// The lease under which a visit is being made.
        pub lease: Option<i64>,
        pub leased_until: Option<i64>,
        /// The account that an admin vouches for as owner; [`Model::owner_at`] tells whether that is in force.
        pub vouched_owner: Option<Uuid>,
        /// Since when an admin vouches for it.
        pub vouched_since: Option<i64>,
        pub vouched_until: Option<i64>,
        /// The admin who vouches for it.
        pub vouched_by: Option<String>,
        pub vouched_reason: Option<String>,
    }

    impl Model {
        /// Its scheme, host and port, as origins of card URLs are compared with it.
        pub fn origin(&self) -> String {
            format!("{}://{}", self.scheme, self.name)
        }

        /// The account that may do what an owner may at this time: the one that has proved the domain, or the one that an
        /// admin vouches for where it cannot be proved.
        pub fn owner_at(&self, now: Timestamp) -> Option<Uuid> {
            self.owner_id.or_else(|| self.vouched_owner_at(now))
        }

        /// The account that an admin vouches for as owner, while the vouch is in force. It proves nothing.
        pub fn vouched_owner_at(&self, now: Timestamp) -> Option<Uuid> {
            let in_force = self.owner_id.is_none()
                && self.deleted_at.is_none()
                && self.vouched_until.is_some_and(|until| until > now.0);
            self.vouched_owner.filter(|_| in_force)
        }

        /// Removes the owner vouch.
        pub fn clear_owner_vouch(&mut self) {
            self.vouched_owner = None;
            self.vouched_since = None;
            self.vouched_until = None;
            self.vouched_by = None;
            self.vouched_reason = None;
        }

        /// Whether its owner has proved it by a record or a file. An operator's word is no such proof.
        pub fn is_proved(&self) -> bool {
            self.state == DomainState::Verified && self.owner_id.is_some()
        }
    }

    enum_columns! { "domains", id:
        state -> DomainState,
        opted_out_by -> Option<OptOut>,
    }
}

/// A proof of ownership.
pub mod proof {
    use a2a_registry_domain::ownership::Method;

    table_row! { "proofs":
        #[sea_orm(primary_key)]
        pub id: i64,
        pub domain_id: i64,
        pub method: Kept<Method>,
        pub actor: String,
        /// The account; null for an admin's vouch.
        pub account_id: Option<Uuid>,
        /// The name or URL it was found at.
        pub place: Option<String>,
        /// The nonce of the challenge.
        pub nonce: Option<String>,
        /// An admin's reason.
        pub reason: Option<String>,
        pub proved_at: i64,
        /// When it was last found.
        pub held_at: i64,
        /// Since when it is missing.
        pub absent_since: Option<i64>,
        /// How often it was missing in a row.
        pub absent_looks: i32,
        pub ended_at: Option<i64>,
        /// The name below which it covers every host, for a record with `policy=subdomains`.
        pub zone: Option<String>,
        /// The account whose sources an admin's vouch includes.
        pub vouched_account: Option<Uuid>,
    }
}

/// A source: one URL of a domain that gives cards, with its state.
pub mod source {
    use a2a_registry_domain::source::{SourceKind, SourceState};

    table_row! { "sources":
        #[sea_orm(primary_key)]
        pub id: i64,
        pub domain_id: i64,
        pub kind: Kept<SourceKind>,
        /// The origin, the card URL, or the catalog's.
        pub url: String,
        /// Its identifier in the catalog that names it.
        pub identifier: Option<String>,
        /// The source of the catalog that names it.
        pub catalog_id: Option<i64>,
        /// When that catalog stopped naming it.
        pub unlisted_since: Option<i64>,
        /// Consecutive fetches of the catalog that did not name it.
        pub unlisted_looks: i32,
        /// Its agent, once it gave a card.
        pub agent_id: Option<Uuid>,
        /// The account that approves the first card.
        pub approve_as: Option<Uuid>,
        /// Which URL gave the last card, and its validators if it has any: of two well-known paths, and of a base URL and the
        /// path under it, one has the card.
        pub validator_url: Option<String>,
        /// `ETag` as received.
        pub etag: Option<String>,
        /// `Last-Modified` as received.
        pub last_modified: Option<String>,
        /// The last `Vary` of the origin, at most 255 bytes.
        pub vary: Option<String>,
        /// The freshness lifetime of its last response, seconds.
        pub max_age: Option<i64>,
        pub next_due_at: i64,
        /// Its planned time, if a request made it due earlier.
        pub planned_at: Option<i64>,
        /// The adaptive interval, microseconds.
        pub interval_us: i64,
        /// Whether the next fetch is a full one, without validators.
        pub full_wanted: bool,
        /// How many requests were ever made for it.
        pub attempts: i64,
        /// Last 200 or 304.
        pub last_success_at: Option<i64>,
        /// Last 200.
        pub last_full_at: Option<i64>,
        /// The address of its last good response.
        pub answered_from: Option<String>,
        /// The cause that its failures count as.
        pub failing_as: Option<String>,
        /// When it began to fail, for whatever cause.
        pub failing_since: Option<i64>,
        /// Consecutive failed fetches.
        pub failures: i32,
        /// When it began to fail for the present cause.
        pub cause_since: Option<i64>,
        /// The last failure for that cause.
        pub cause_latest: Option<i64>,
        /// The number of failures for that cause.
        pub cause_looks: i32,
        pub liveness: Kept<SourceState>,
        /// The reason why it is not fresh.
        pub liveness_reason: Option<String>,
        pub created_at: i64,
        pub ended_at: Option<i64>,
        /// The origin of its last full response, after redirects.
        pub answered_by: Option<String>,
        /// The limit that was reached, where a card was fetched but no agent was created from it.
        pub limit_met: Option<String>,
        /// The digest of its card that the catalog states.
        pub entry_digest: Option<String>,
    }
}

/// One request to an origin.
pub mod attempt {
    table_row! { "attempts":
        #[sea_orm(primary_key, auto_increment = false)]
        pub source_id: i64,
        /// Its number modulo the number of stored attempts: a new one replaces the oldest.
        #[sea_orm(primary_key, auto_increment = false)]
        pub place: i32,
        /// Its number among all requests for its source, from 0.
        pub number: i64,
        /// When it began.
        pub at: i64,
        pub url: String,
        /// How it ended.
        pub outcome: String,
        pub status: Option<i32>,
        /// The address that responded.
        pub address: Option<String>,
        /// One sentence.
        pub detail: String,
        /// Whether it was a conditional request.
        pub conditional: bool,
        pub elapsed_ms: i32,
    }
}

/// The number of visits that may begin, in one row.
pub mod pace {
    use crate::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
    #[sea_orm(table_name = "crawl_pace")]
    pub struct Model {
        /// Always 1.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i64,
        /// Visits that may begin; the fraction is carried on.
        pub visits: f64,
        pub at: i64,
        /// The highest turn of the requested visits that were leased.
        pub turn: i64,
    }
}

/// The totals of a source on one day.
pub mod source_day {
    table_row! { "source_days":
        #[sea_orm(primary_key, auto_increment = false)]
        pub source_id: i64,
        /// Days since 1970, UTC.
        #[sea_orm(primary_key, auto_increment = false)]
        pub day: i32,
        /// The number of fetches.
        pub looks: i32,
        /// The number of successful fetches.
        pub good: i32,
    }
}

/// A registrant of a source.
pub mod source_registrant {
    use a2a_registry_domain::role::Role;

    table_row! { "source_registrants":
        #[sea_orm(primary_key)]
        pub id: i64,
        pub source_id: i64,
        /// Which account; none for anyone.
        pub account_id: Option<Uuid>,
        /// The network of an anonymous caller.
        pub network: Option<String>,
        /// The account's role at that time.
        pub role: Option<Kept<Role>>,
        pub registered_at: i64,
    }
}
