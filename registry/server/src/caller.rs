//! The caller of an act: an account, or an anonymous client.

use std::net::IpAddr;

use a2a_registry_domain::role::{Permission, Role};
use uuid::Uuid;

use crate::error::{AppError, ErrorKind};

/// An account, authenticated by its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its identifier.
    pub id: Uuid,
    /// Its name, as decisions and events record it.
    pub name: String,
    /// Its role.
    pub role: Role,
}

/// The caller of an act: an account, or an anonymous client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The account; `None` for an anonymous client.
    pub account: Option<Account>,
    /// The network of an anonymous write, by which its limits are counted.
    pub network: Option<IpAddr>,
}

/// The label of agents that everybody may find.
pub const PUBLIC: &str = "public";
/// The label of agents that any signed-in caller may find.
pub const INTERNAL: &str = "internal";
/// The label of agents that callers with [`Permission::SeeAll`] may find.
pub const CURATORS: &str = "curators";

/// The label of agents that one account may find, listed or not.
pub fn account_label(account: Uuid) -> String {
    format!("account:{account}")
}

impl Caller {
    /// Whether the caller is this account.
    pub(crate) fn is(&self, account: Option<Uuid>) -> bool {
        let own = self.account.as_ref().map(|account| account.id);
        own.is_some() && own == account
    }

    /// Whether the caller has this permission.
    pub fn may(&self, permission: Permission) -> bool {
        self.account
            .as_ref()
            .is_some_and(|account| account.role.may(permission))
    }

    /// The caller's account, if it has this permission.
    ///
    /// # Errors
    /// `Unauthenticated` for an anonymous client, `Forbidden` for an account without the permission.
    pub fn demand(&self, permission: Permission) -> Result<&Account, AppError> {
        match &self.account {
            None => Err(AppError::new(
                ErrorKind::Unauthenticated,
                "This needs a token: send it as `Authorization: Bearer …`.",
            )),
            Some(account) if account.role.may(permission) => Ok(account),
            Some(account) => Err(AppError::new(
                ErrorKind::Forbidden,
                format!("The role {} may not do this.", account.role),
            )),
        }
    }

    /// The labels that all anonymous clients, or all accounts, have in common.
    pub fn class_labels(&self) -> Vec<String> {
        let mut labels = vec![PUBLIC.to_owned()];
        if self.account.is_some() {
            labels.push(INTERNAL.to_owned());
        }
        labels
    }

    /// The caller's labels: an agent is visible to a caller with one of its labels.
    pub fn labels(&self) -> Vec<String> {
        let mut labels = self.class_labels();
        if let Some(account) = &self.account {
            if account.role.may(Permission::SeeAll) {
                labels.push(CURATORS.to_owned());
            }
            labels.push(account_label(account.id));
        }
        labels
    }
}
