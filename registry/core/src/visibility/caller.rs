//! The caller of an action: an account, or an anonymous client.

use std::collections::BTreeSet;
use std::net::IpAddr;

use a2a_registry_domain::role::{Permission, Role, Roles, Scopes};
use a2a_registry_policy::{PolicySet, Principal};
use a2a_registry_search::ALWAYS_MARK;
use uuid::Uuid;

use crate::config::{GovernanceConfig, RegistrationAccess};
use crate::error::{AppError, Result};
use crate::visibility::policy_labels::{caller_class_restrictions, caller_restrictions};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    Token(Uuid),
    /// A session cookie, on pages only.
    Session(Uuid),
    /// An access token of this issuer.
    AccessToken(String),
    Feed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerAccount {
    pub id: Uuid,
    /// The name that decisions and events record.
    pub name: String,
    pub roles: Roles,
    /// The scopes of the token or session that the roles allow.
    pub scopes: Scopes,
    /// The account's groups of all origins, in order: at most as many as an account may have of each origin.
    pub groups: Vec<Uuid>,
    /// The same groups, as policies name them.
    pub group_names: Vec<String>,
    pub credential: Credential,
}

impl CallerAccount {
    /// Whether the roles and the token's scopes both allow this.
    pub fn has_permission(&self, permission: Permission) -> bool {
        self.roles.has_permission(&self.scopes, permission)
    }

    /// Which of these groups the account is in, in their order.
    pub fn groups_among(&self, named: &BTreeSet<String>) -> Vec<String> {
        let own = self.group_names.iter();
        let own: BTreeSet<&String> = own.filter(|name| named.contains(*name)).collect();
        own.into_iter().cloned().collect()
    }

    /// The role to record with a source that the caller registers, limited to what the token may do.
    pub fn registration_role(&self) -> Role {
        if self.has_permission(Permission::Administer) {
            Role::Admin
        } else if self.has_permission(Permission::Curate) {
            Role::Curator
        } else {
            Role::Publisher
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The account; `None` for an anonymous client.
    pub account: Option<CallerAccount>,
    /// The network of an anonymous client, by which its limits and shares are counted.
    pub network: Option<IpAddr>,
}

/// The label of agents that everyone may find.
pub const PUBLIC_LABEL: &str = "public";
/// The label of agents that any signed-in caller may find with a token that may read.
pub const INTERNAL_LABEL: &str = "internal";
/// The label of agents that callers with [`Permission::SeeAll`] may find.
pub const CURATORS_LABEL: &str = "curators";

/// The label of agents that one account may find, listed or not.
pub fn account_audience_label(account: Uuid) -> String {
    format!("account:{account}")
}

/// The label of agents that the members of one group may find.
pub fn group_audience_label(group: Uuid) -> String {
    format!("group:{group}")
}

fn format_list_or_none(set: &impl ToString) -> String {
    match set.to_string() {
        none if none.is_empty() => "none".to_owned(),
        some => some.replace(',', ", "),
    }
}

/// The key by which searches, open streams and other shares of a caller are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerKey {
    /// An account, with all its tokens and addresses.
    Account(Uuid),
    /// The network of a client without an account; `None` if the address is not known, and for the registry itself.
    Network(Option<IpAddr>),
}

impl Caller {
    pub fn key(&self) -> CallerKey {
        match &self.account {
            Some(account) => CallerKey::Account(account.id),
            None => CallerKey::Network(self.network),
        }
    }

    /// Whether the caller is this account, with a token that may read.
    pub fn is_account(&self, account: Option<Uuid>) -> bool {
        let reader = self.account.as_ref();
        let reader = reader.filter(|account| account.has_permission(Permission::Read));
        let reader_id = reader.map(|account| account.id);
        reader_id.is_some() && reader_id == account
    }

    pub fn has_permission(&self, permission: Permission) -> bool {
        self.account
            .as_ref()
            .is_some_and(|account| account.has_permission(permission))
    }

    pub fn require_account(&self) -> Result<&CallerAccount> {
        self.account.as_ref().ok_or_else(|| {
            AppError::unauthenticated("This needs a token: send it as `Authorization: Bearer …`.")
        })
    }

    /// The caller's account, if it has this permission.
    pub fn require_permission(&self, permission: Permission) -> Result<&CallerAccount> {
        match self.require_account()? {
            account if account.has_permission(permission) => Ok(account),
            account => Err(AppError::forbidden(format!(
                "The account or its token may not do this: the account has the roles {}, and the token has the \
                 scopes {}.",
                format_list_or_none(&account.roles),
                format_list_or_none(&account.scopes)
            ))),
        }
    }

    /// Refuses a caller who may not register. In an open registry anyone may register without an account, but an
    /// account always needs the permission.
    pub fn require_registration_right(&self, governance: &GovernanceConfig) -> Result<()> {
        if self.account.is_some() || governance.registration == RegistrationAccess::Token {
            self.require_permission(Permission::Register)?;
        }
        Ok(())
    }

    /// The caller as policies see it: an account whose token may not read counts as anonymous.
    pub fn principal(&self) -> Principal {
        let reader = self.account.as_ref();
        let reader = reader.filter(|account| account.has_permission(Permission::Read));
        reader.map_or_else(Principal::default, |account| Principal {
            account: Some(account.name.clone()),
            groups: account.group_names.clone(),
        })
    }

    fn base_labels(&self) -> Vec<String> {
        let mut labels = vec![PUBLIC_LABEL.to_owned()];
        if self.has_permission(Permission::Read) {
            labels.push(INTERNAL_LABEL.to_owned());
        }
        labels
    }

    fn group_labels(&self) -> impl Iterator<Item = String> {
        let reader = self.account.iter();
        let reader = reader.filter(|account| account.has_permission(Permission::Read));
        reader.flat_map(|account| account.groups.iter().copied().map(group_audience_label))
    }

    /// The labels that all anonymous clients, or all accounts, have in common: they show what every one of them can
    /// find.
    pub fn caller_class_labels(&self, policies: &PolicySet) -> Vec<String> {
        restrict_labels(self.base_labels(), caller_class_restrictions(policies))
    }

    /// The caller's labels without regard to policies.
    pub fn labels_without_policies(&self) -> Vec<String> {
        let mut labels = self.base_labels();
        labels.extend(self.group_labels());
        let reader = self.account.iter();
        let reader = reader.filter(|account| account.has_permission(Permission::Read));
        labels.extend(reader.map(|account| account_audience_label(account.id)));
        if self.has_permission(Permission::SeeAll) {
            labels.push(CURATORS_LABEL.to_owned());
        }
        labels
    }

    /// The caller's labels: an agent is visible to a caller with one of its labels, unless the policies of this set
    /// restrict it (`a2a_registry_search::sees`). Policies bind neither those who see everything nor owners.
    pub fn labels(&self, policies: &PolicySet) -> Vec<String> {
        let mut labels = self.base_labels();
        labels.extend(self.group_labels());
        let mut own_label = None;
        if let Some(account) = &self.account {
            if account.has_permission(Permission::SeeAll) {
                labels.push(CURATORS_LABEL.to_owned());
            }
            own_label = account
                .has_permission(Permission::Read)
                .then(|| account_audience_label(account.id));
        }
        if self.has_permission(Permission::SeeAll) {
            labels.extend(own_label);
            return labels;
        }
        let restrictions = caller_restrictions(policies, &self.principal());
        let is_restricted = restrictions.as_ref().is_none_or(|some| !some.is_empty());
        let mut labels = restrict_labels(labels, restrictions);
        labels.extend(own_label.map(|own| match is_restricted {
            true => format!("{ALWAYS_MARK}{own}"),
            false => own,
        }));
        labels
    }
}

/// Restricts plain labels by policies; empty if nothing is permitted.
fn restrict_labels(mut labels: Vec<String>, restrictions: Option<Vec<String>>) -> Vec<String> {
    match restrictions {
        None => Vec::new(),
        Some(narrowing) => {
            labels.extend(narrowing);
            labels
        }
    }
}
