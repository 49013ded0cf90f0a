//! Who asks, and the scopes that hold them.

use cedar_policy::{EntityUid, PrincipalConstraint};

/// Who asks: an account with its groups, or an anonymous client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Principal {
    /// The account's name; `None` for an anonymous client.
    pub account: Option<String>,
    /// The identifiers of its groups, as policies name them.
    pub groups: Vec<String>,
}

/// The identifier of anonymous clients as an account. It never stands for an account of that name.
pub const ANONYMOUS: &str = "anonymous";

impl Principal {
    /// The identifier of a group: one that an admin has set has no issuer.
    pub fn group(issuer: Option<&str>, name: &str) -> String {
        match issuer {
            Some(issuer) => format!("{issuer}#{name}"),
            None => name.to_owned(),
        }
    }
}

/// Whom a policy is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrincipalScope {
    /// Everybody, anonymous clients too.
    Everybody,
    /// The account with this name.
    Account(String),
    /// The members of this group.
    Group(String),
    /// Nobody: an account that should be a group, or the other way round.
    Nobody,
}

impl PrincipalScope {
    /// Reads the scope of a policy.
    pub(crate) fn of(constraint: &PrincipalConstraint) -> Self {
        match constraint {
            PrincipalConstraint::Any => Self::Everybody,
            PrincipalConstraint::Is(kind) if kind.to_string() == "Account" => Self::Everybody,
            PrincipalConstraint::Is(_) => Self::Nobody,
            PrincipalConstraint::Eq(entity) => Self::account(entity),
            PrincipalConstraint::In(entity) => Self::member(entity),
            PrincipalConstraint::IsIn(kind, entity) if kind.to_string() == "Account" => {
                Self::member(entity)
            }
            PrincipalConstraint::IsIn(..) => Self::Nobody,
        }
    }

    fn account(entity: &EntityUid) -> Self {
        match entity.type_name().to_string().as_str() {
            "Account" => Self::Account(entity.id().unescaped().to_owned()),
            _ => Self::Nobody,
        }
    }

    /// In Cedar an entity is `in` itself too.
    fn member(entity: &EntityUid) -> Self {
        match entity.type_name().to_string().as_str() {
            "Group" => Self::Group(entity.id().unescaped().to_owned()),
            _ => Self::account(entity),
        }
    }

    /// Whether it holds somebody.
    pub fn holds(&self, principal: &Principal) -> bool {
        match self {
            Self::Everybody => true,
            // Nobody is anonymous by a name.
            Self::Account(name) if name == ANONYMOUS => principal.account.is_none(),
            Self::Account(name) => principal.account.as_ref() == Some(name),
            Self::Group(group) => principal.groups.contains(group),
            Self::Nobody => false,
        }
    }
}
