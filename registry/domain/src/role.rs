//! Roles, scopes and permissions: one table of permissions by role, one by scope (docs/govern/accounts.md#roles). A
//! caller has the permissions that both tables give: those of the account's roles and those of the token's scopes.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::text_enum::text_enum;

text_enum! {
    /// A role of an account.
    Role {
        /// Sees what every account may see.
        Reader = "reader",
        /// Registers and manages its own domains.
        Publisher = "publisher",
        /// Decides reviews and suspends agents.
        Curator = "curator",
        /// Sees everything and changes nothing.
        Auditor = "auditor",
        /// Does everything except deciding reviews.
        Admin = "admin",
    }
}

text_enum! {
    /// The scope of a token: an upper bound of what the token may do.
    Scope {
        /// Reads what the account may see.
        Read = "read",
        /// Registers domains, and manages the account's own.
        Register = "register",
        /// Decides reviews, and acts on every agent and domain.
        Curate = "curate",
        /// Reads events, accounts and groups.
        Audit = "audit",
        /// Vouches, rebuilds the index, and manages accounts, groups and the tokens of all accounts.
        Admin = "admin",
        /// Asks what others may find and call, and nothing else.
        Decide = "decide",
    }
}

text_enum! {
    /// The permission that an operation requires.
    Permission {
        /// See what every account may see, the own account and its tokens.
        Read = "read",
        Register = "register",
        /// See every agent, version, attempt and review, listed or not.
        SeeAll = "see_all",
        /// Suspend, resume, deprecate, retire; act for owners.
        Curate = "curate",
        Approve = "approve",
        ReadEvents = "read_events",
        ReadAccounts = "read_accounts",
        /// Vouch for a domain; manage accounts, groups and tokens; rebuild the index; erase.
        Administer = "administer",
        /// Ask what others may find and call.
        Decide = "decide",
    }
}

impl Role {
    pub const fn permissions(self) -> &'static [Permission] {
        use Permission::{
            Administer, Approve, Curate, Decide, Read, ReadAccounts, ReadEvents, Register, SeeAll,
        };
        match self {
            Self::Reader => &[Read],
            Self::Publisher => &[Read, Register],
            Self::Curator => &[Read, Register, SeeAll, Curate, Approve, ReadEvents, Decide],
            Self::Auditor => &[Read, SeeAll, ReadEvents, ReadAccounts, Decide],
            Self::Admin => &[
                Read,
                Register,
                SeeAll,
                Curate,
                ReadEvents,
                ReadAccounts,
                Administer,
                Decide,
            ],
        }
    }

    pub const fn scopes(self) -> &'static [Scope] {
        use Scope::{Admin, Audit, Curate, Decide, Read, Register};
        match self {
            Self::Reader => &[Read],
            Self::Publisher => &[Read, Register],
            Self::Curator => &[Read, Register, Curate, Audit, Decide],
            Self::Auditor => &[Read, Audit, Decide],
            Self::Admin => &[Read, Register, Curate, Audit, Admin, Decide],
        }
    }

    pub fn has_permission(self, permission: Permission) -> bool {
        self.permissions().contains(&permission)
    }

    /// Whether the registry itself is responsible for sources that this role registers.
    pub const fn is_staff(self) -> bool {
        matches!(self, Self::Curator | Self::Admin)
    }
}

impl Scope {
    /// The permissions of a token with this scope, if its account has them too. Every scope except `decide` includes
    /// reading.
    pub const fn permissions(self) -> &'static [Permission] {
        use Permission::{
            Administer, Approve, Curate, Decide, Read, ReadAccounts, ReadEvents, Register, SeeAll,
        };
        match self {
            Self::Read => &[Read, SeeAll],
            Self::Register => &[Read, Register],
            // Curators also use the operations of owners.
            Self::Curate => &[Read, SeeAll, Register, Curate, Approve],
            Self::Audit => &[Read, SeeAll, ReadEvents, ReadAccounts],
            Self::Admin => &[Read, SeeAll, ReadAccounts, Administer],
            Self::Decide => &[Decide],
        }
    }
}

/// A set of enum values, written as one text: the values' texts in the order of declaration, joined by commas.
macro_rules! text_set {
    ($(#[$meta:meta])* $name:ident of $member:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(BTreeSet<$member>);

        impl $name {
            pub fn contains(&self, member: $member) -> bool {
                self.0.contains(&member)
            }

            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }

            /// The values, in the order of declaration.
            pub fn iter(&self) -> impl Iterator<Item = $member> {
                self.0.iter().copied()
            }

            #[must_use]
            pub fn intersection(&self, other: &Self) -> Self {
                Self(self.0.intersection(&other.0).copied().collect())
            }

            /// A value that the other set lacks, if any.
            pub fn first_not_in(&self, other: &Self) -> Option<$member> {
                self.0.difference(&other.0).next().copied()
            }
        }

        impl FromIterator<$member> for $name {
            fn from_iter<I: IntoIterator<Item = $member>>(members: I) -> Self {
                Self(members.into_iter().collect())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let texts: Vec<_> = self.iter().map($member::as_str).collect();
                f.write_str(&texts.join(","))
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let texts = text.split(',').filter(|text| !text.is_empty());
                texts.map(str::parse).collect()
            }
        }
    };
}

text_set! {
    Roles of Role
}

text_set! {
    Scopes of Scope
}

impl Roles {
    /// The roles of an account stored with a single role: there an admin could also approve.
    pub fn from_legacy_role(role: Role) -> Self {
        match role {
            Role::Admin => [Role::Admin, Role::Curator].into_iter().collect(),
            other => [other].into_iter().collect(),
        }
    }

    /// The most powerful role, for places that show only one.
    pub fn main_role(&self) -> Role {
        let by_weight = [
            Role::Admin,
            Role::Curator,
            Role::Publisher,
            Role::Auditor,
            Role::Reader,
        ];
        let main = by_weight.into_iter().find(|role| self.contains(*role));
        main.unwrap_or(Role::Reader)
    }

    pub fn scopes(&self) -> Scopes {
        self.iter().flat_map(Role::scopes).copied().collect()
    }

    /// Whether an account with these roles has a permission when it uses a token with these scopes.
    pub fn has_permission(&self, scopes: &Scopes, permission: Permission) -> bool {
        let within = |scope: Scope| scope.permissions().contains(&permission);
        self.iter().any(|role| role.has_permission(permission)) && scopes.iter().any(within)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_an_admin_administers_and_only_a_curator_approves() {
        for &role in Role::ALL {
            assert_eq!(
                role.has_permission(Permission::Administer),
                role == Role::Admin
            );
            assert_eq!(
                role.has_permission(Permission::Approve),
                role == Role::Curator
            );
            assert!(role.has_permission(Permission::Read));
        }
        assert!(!Role::Publisher.has_permission(Permission::SeeAll));
        assert_eq!(Role::Reader.permissions(), [Permission::Read]);
    }

    #[test]
    fn an_auditor_changes_nothing() {
        use Permission::{Administer, Approve, Curate, Register};
        for change in [Register, Curate, Approve, Administer] {
            assert!(!Role::Auditor.has_permission(change), "{change}");
        }
    }

    /// Each permission of a role is in some scope that the role can give a token, and each of its scopes has some
    /// permission of the role.
    #[test]
    fn the_scopes_of_a_role_give_its_permissions() {
        for &role in Role::ALL {
            let roles: Roles = [role].into_iter().collect();
            for &permission in role.permissions() {
                assert!(
                    roles.has_permission(&roles.scopes(), permission),
                    "{role}: {permission}"
                );
            }
            for scope in role.scopes() {
                let mut given = scope.permissions().iter();
                assert!(
                    given.any(|permission| role.has_permission(*permission)),
                    "{role}: {scope}"
                );
            }
        }
    }

    #[test]
    fn a_scope_never_gives_what_no_role_has() {
        let reader: Roles = [Role::Reader].into_iter().collect();
        let all: Scopes = Scope::ALL.iter().copied().collect();
        for &permission in Permission::ALL {
            assert_eq!(
                reader.has_permission(&all, permission),
                permission == Permission::Read
            );
            assert!(!reader.has_permission(&Scopes::default(), permission));
        }
    }

    #[test]
    fn sets_are_kept_as_text() {
        let roles: Roles = "curator,admin".parse().unwrap();
        assert_eq!(roles.to_string(), "curator,admin");
        assert_eq!("admin,curator".parse::<Roles>().unwrap(), roles);
        assert_eq!(roles, Roles::from_legacy_role(Role::Admin));
        assert_eq!(roles.main_role(), Role::Admin);
        assert!("curator,king".parse::<Roles>().is_err());
        assert!("".parse::<Scopes>().unwrap().is_empty());
    }
}
