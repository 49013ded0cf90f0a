//! Rows: domains, their proofs, sources and fetches.

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
        pub state: StoredEnum<DomainState>,
        /// Increases with each new owner.
        pub generation: i64,
        pub account_id: Option<Uuid>,
        /// The network of its anonymous registration.
        pub nominated_from: Option<String>,
        /// When its generation began; earlier decisions do not count.
        pub generation_since: i64,
        /// Its proved owner: the account with the strongest proof.
        pub owner_id: Option<Uuid>,
        /// Whether its owner's proof is a DNS record, its own or a parent's.
        pub dns_proved: bool,
        /// The methods of the proofs that verify it, in order, separated by spaces; null while it is not verified.
        pub proof_methods: Option<String>,
        pub contact: Option<String>,
        pub opted_out_by: Option<StoredEnum<OptOut>>,
        pub lapsed_at: Option<i64>,
        pub check_due_at: Option<i64>,
        pub created_at: i64,
        pub deleted_at: Option<i64>,
        pub visit_due_at: Option<i64>,
        /// The interval from the last visit to the next planned one; null for a first or requested visit.
        pub visit_interval_us: Option<i64>,
        /// The turn of its requested visit: the lowest comes first. Meaningless for a planned visit.
        pub visit_turn: i64,
        /// Who requested that visit: an account or a network; empty for the registry itself.
        pub visit_requester: Option<String>,
        /// The address block of its last visit, such as `192.0.2.0/24`; null if the block has no limit.
        pub network: Option<String>,
        /// The earliest time of a visit that spacing allows.
        pub not_before: i64,
        pub wanted_at: Option<i64>,
        pub lease: Option<i64>,
        pub leased_until: Option<i64>,
        /// The account that an admin vouches for as owner; [`Model::domain_owner_at`] tells whether that is in force.
        pub vouched_owner: Option<Uuid>,
        pub vouched_since: Option<i64>,
        pub vouched_until: Option<i64>,
        pub vouched_by: Option<String>,
        pub vouched_reason: Option<String>,
    }

    impl Model {
        /// Scheme, host and port, as they are compared with origins of card URLs.
        pub fn domain_origin(&self) -> String {
            format!("{}://{}", self.scheme, self.name)
        }

        /// The account with the owner's rights at this time: the one that has proved the domain, or the one that an
        /// admin vouches for if the domain cannot be proved.
        pub fn domain_owner_at(&self, now: Timestamp) -> Option<Uuid> {
            self.owner_id.or_else(|| self.vouched_owner_at(now))
        }

        /// The account that an admin vouches for as owner, while the vouch is in force. It proves nothing.
        pub fn vouched_owner_at(&self, now: Timestamp) -> Option<Uuid> {
            let in_force = self.owner_id.is_none()
                && self.deleted_at.is_none()
                && self.vouched_until.is_some_and(|until| until > now.0);
            self.vouched_owner.filter(|_| in_force)
        }

        pub fn clear_owner_vouch(&mut self) {
            self.vouched_owner = None;
            self.vouched_since = None;
            self.vouched_until = None;
            self.vouched_by = None;
            self.vouched_reason = None;
        }

        /// Whether it can be proved, which requires a host name on port 443 (docs/publish/prove.md).
        pub fn can_be_proved(&self) -> bool {
            self.scheme == "https" && self.has_plain_host_name()
        }

        /// Whether its name is a host name on its scheme's own port.
        pub fn has_plain_host_name(&self) -> bool {
            !self.name.contains(':') && self.name.parse::<std::net::IpAddr>().is_err()
        }

        /// Whether an admin vouches for the host and no account has proved it.
        pub fn is_only_vouched(&self) -> bool {
            self.state == DomainState::Verified && self.owner_id.is_none()
        }

        /// Whether its owner has proved it by a record or a file. An operator's vouch does not count.
        pub fn is_domain_proved(&self) -> bool {
            self.state == DomainState::Verified && self.owner_id.is_some()
        }
    }

    enum_columns! { "domains", id:
        state -> DomainState,
        opted_out_by -> Option<OptOut>,
    }
}

pub mod proof {
    use a2a_registry_domain::ownership::Method;

    table_row! { "proofs":
        #[sea_orm(primary_key)]
        pub id: i64,
        pub domain_id: i64,
        pub method: StoredEnum<Method>,
        pub actor: String,
        /// Null for an admin's vouch.
        pub account_id: Option<Uuid>,
        /// The name or URL where it was found.
        pub place: Option<String>,
        pub nonce: Option<String>,
        pub reason: Option<String>,
        pub proved_at: i64,
        pub held_at: i64,
        pub absent_since: Option<i64>,
        pub absent_looks: i32,
        pub ended_at: Option<i64>,
        /// The name below which it covers every host, for a record with `policy=subdomains`.
        pub zone: Option<String>,
        /// The account whose sources an admin's vouch includes.
        pub vouched_account: Option<Uuid>,
    }
}

/// One URL of a domain that serves cards, with its state.
pub mod source {
    use a2a_registry_domain::source::{SourceKind, SourceState};

    table_row! { "sources":
        #[sea_orm(primary_key)]
        pub id: i64,
        pub domain_id: i64,
        pub kind: StoredEnum<SourceKind>,
        /// The origin, or the URL of the card or catalog.
        pub url: String,
        /// Its identifier in the catalog that lists it.
        pub identifier: Option<String>,
        /// The source of the catalog that lists it.
        pub catalog_id: Option<i64>,
        pub unlisted_since: Option<i64>,
        /// Consecutive fetches of the catalog that did not list it.
        pub unlisted_looks: i32,
        pub agent_id: Option<Uuid>,
        /// The account that approves its first card.
        pub approve_as: Option<Uuid>,
        /// The URL of the last card, with validators if there are any: of the two well-known paths, or of a base URL
        /// and the path under it, only one has the card.
        pub validator_url: Option<String>,
        /// `ETag` as received.
        pub etag: Option<String>,
        /// `Last-Modified` as received.
        pub last_modified: Option<String>,
        /// The last `Vary` of the origin, at most 255 bytes.
        pub vary: Option<String>,
        /// The freshness lifetime of its last response; seconds.
        pub max_age: Option<i64>,
        pub next_due_at: i64,
        /// Its planned time, if a request made it due earlier.
        pub planned_at: Option<i64>,
        pub interval_us: i64,
        /// Whether the next fetch is made without validators.
        pub full_wanted: bool,
        pub attempts: i64,
        /// The last response with status 200 or 304.
        pub last_success_at: Option<i64>,
        /// The last response with status 200.
        pub last_full_at: Option<i64>,
        /// The address of its last good response.
        pub answered_from: Option<String>,
        /// The cause that its failures count as.
        pub failing_as: Option<String>,
        /// When it began to fail, whatever the cause.
        pub failing_since: Option<i64>,
        pub failures: i32,
        pub cause_since: Option<i64>,
        pub cause_latest: Option<i64>,
        pub cause_looks: i32,
        pub liveness: StoredEnum<SourceState>,
        pub liveness_reason: Option<String>,
        pub created_at: i64,
        pub ended_at: Option<i64>,
        /// The origin of its last full response, after redirects.
        pub answered_by: Option<String>,
        /// The limit that kept its card from becoming an agent.
        pub limit_met: Option<String>,
        /// The card's digest according to the catalog.
        pub entry_digest: Option<String>,
    }
}

pub mod fetch_attempt {
    table_row! { "attempts":
        #[sea_orm(primary_key, auto_increment = false)]
        pub source_id: i64,
        /// Its number modulo the number of stored attempts, so that a new one replaces the oldest.
        #[sea_orm(primary_key, auto_increment = false)]
        pub place: i32,
        /// Its number among all requests for its source, from 0.
        pub number: i64,
        pub at: i64,
        pub url: String,
        pub outcome: String,
        pub status: Option<i32>,
        pub address: Option<String>,
        pub detail: String,
        pub conditional: bool,
        pub elapsed_ms: i32,
    }
}

/// The pace of the crawler, in one row: how many visits may begin.
pub mod pace {
    use crate::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
    #[sea_orm(table_name = "crawl_pace")]
    pub struct Model {
        /// The table's only row has 1.
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i64,
        /// Visits that may begin; the fraction is carried over.
        pub visits: f64,
        pub at: i64,
        /// The highest turn of the requested visits that were leased.
        pub turn: i64,
    }
}

pub mod source_day {
    table_row! { "source_days":
        #[sea_orm(primary_key, auto_increment = false)]
        pub source_id: i64,
        /// Days since 1970, UTC.
        #[sea_orm(primary_key, auto_increment = false)]
        pub day: i32,
        /// Fetches, of which `good` succeeded.
        pub looks: i32,
        pub good: i32,
    }
}

pub mod source_registrant {
    use a2a_registry_domain::role::Role;

    table_row! { "source_registrants":
        #[sea_orm(primary_key)]
        pub id: i64,
        pub source_id: i64,
        /// Null for a registrant without an account.
        pub account_id: Option<Uuid>,
        pub network: Option<String>,
        pub role: Option<StoredEnum<Role>>,
        pub registered_at: i64,
    }
}
