//! Who may do what: one table, role by permission (docs/governance.md#roles).

use super::text_enum::text_enum;

text_enum! {
    /// The role of an account.
    Role {
        /// Registers and manages its own domains.
        Publisher = "publisher",
        /// Decides reviews and suspends agents.
        Curator = "curator",
        /// Everything, tokens included.
        Admin = "admin",
    }
}

text_enum! {
    /// The permission that an act needs.
    Permission {
        /// Register a domain.
        Register = "register",
        /// See every agent, version, attempt and event, listed or not.
        SeeAll = "see_all",
        /// Decide reviews; suspend, resume, deprecate, retire.
        Curate = "curate",
        /// Vouch for a domain; make and revoke tokens; rebuild the index; erase.
        Administer = "administer",
    }
}

impl Role {
    /// Whether this role may do that.
    pub const fn may(self, permission: Permission) -> bool {
        match self {
            Self::Admin => true,
            Self::Curator => !matches!(permission, Permission::Administer),
            Self::Publisher => matches!(permission, Permission::Register),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_admin_administers() {
        for &role in Role::ALL {
            assert_eq!(role.may(Permission::Administer), role == Role::Admin);
        }
        assert!(!Role::Publisher.may(Permission::SeeAll));
        assert!(Role::Curator.may(Permission::Curate));
    }
}
