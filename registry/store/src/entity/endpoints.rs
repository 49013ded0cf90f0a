//! Rows: endpoint checks, their hosts and history, and what owners and admins permit.

/// A host of endpoints: scheme, host and port. One check of it runs at a time.
pub mod endpoint_host {
    table_row! { "endpoint_hosts":
        #[sea_orm(primary_key, auto_increment = false)]
        pub origin: String,
        /// Its registrable domain, or the host itself if it has none.
        pub site: String,
        /// When the first of its checks is due; null if it has none.
        pub due_at: Option<i64>,
        /// The earliest time of a check that spacing allows.
        pub not_before: i64,
        pub lease: Option<i64>,
        /// After a lease the end of the pause of its address block.
        pub leased_until: Option<i64>,
        /// The address block that it had when it was last asked; null if the block has no limit.
        pub network: Option<String>,
        pub created_at: i64,
    }
}

/// An address that is checked, with its last result. All agents that name it share it.
pub mod endpoint_check {
    use a2a_registry_domain::endpoint::EndpointState;

    table_row! { "endpoint_checks":
        #[sea_orm(primary_key)]
        pub id: i64,
        /// The SHA-256 of form, URL and tenant, in hex.
        pub key: String,
        pub origin: String,
        /// The crawler's name of the binding and version.
        pub form: String,
        pub url: String,
        pub tenant: Option<String>,
        pub due_at: i64,
        pub state: StoredEnum<EndpointState>,
        pub reason: Option<String>,
        /// The authentication scheme that the server names.
        pub auth_scheme: Option<String>,
        /// The HTTP status.
        pub status: Option<i32>,
        pub elapsed_ms: Option<i32>,
        pub checked_at: Option<i64>,
        /// The last check with an A2A answer.
        pub answered_at: Option<i64>,
    }
}

/// The last result of one day.
pub mod endpoint_day {
    use a2a_registry_domain::endpoint::EndpointState;

    table_row! { "endpoint_days":
        #[sea_orm(primary_key, auto_increment = false)]
        pub check_id: i64,
        /// Days since 1970, UTC.
        #[sea_orm(primary_key, auto_increment = false)]
        pub day: i32,
        pub state: StoredEnum<EndpointState>,
        pub elapsed_ms: i32,
    }
}

/// What the owner of a domain and an admin have said about checks of its endpoints. A vouch counts for the generation
/// of the domain in which it was given.
pub mod endpoint_permission {
    table_row! { "endpoint_permissions":
        #[sea_orm(primary_key, auto_increment = false)]
        pub domain_id: i64,
        /// Whether the owner has turned checks off.
        pub checks_off: bool,
        pub vouched_generation: Option<i64>,
        pub vouched_by: Option<String>,
        pub vouched_at: Option<i64>,
        pub vouched_reason: Option<String>,
    }

    impl Model {
        /// The permission of a domain about which nothing was said.
        pub const fn new_permission(domain_id: i64) -> Self {
            Self {
                domain_id,
                checks_off: false,
                vouched_generation: None,
                vouched_by: None,
                vouched_at: None,
                vouched_reason: None,
            }
        }
    }
}
