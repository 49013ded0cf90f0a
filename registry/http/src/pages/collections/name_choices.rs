//! Names of groups and accounts that the form of a collection proposes.

use std::collections::BTreeSet;

use a2a_registry_api::limits::MAX_PAGE_SIZE;
use a2a_registry_core::accounts::account_operations::account_list;
use a2a_registry_core::accounts::groups::group_list;
use a2a_registry_core::collections::actions::collection_list;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::Result;
use a2a_registry_core::paging::PageRequest;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Permission;
use a2a_registry_policy::Principal;
use a2a_registry_store::groups::ADMIN_ORIGIN;

/// The names in other collections, and for those who read accounts also a page of all groups and accounts. Other names
/// can be typed.
#[derive(Default)]
pub(super) struct NameChoices {
    pub groups: BTreeSet<String>,
    pub accounts: BTreeSet<String>,
}

impl NameChoices {
    /// Loads the names; none if the page has no form.
    pub async fn load(context: &AppContext, caller: &Caller, has_form: bool) -> Result<Self> {
        if !has_form {
            return Ok(Self::default());
        }
        let collections = collection_list(context, caller).await?.collections;
        let own = caller.account.iter().map(|account| account.name.clone());
        let owners = collections.iter().flat_map(|one| one.owners.clone());
        let audiences = collections.iter().filter_map(|one| one.audience.clone());
        let mut choices = Self {
            groups: audiences.flatten().collect(),
            accounts: own.chain(owners).collect(),
        };
        if caller.has_permission(Permission::ReadAccounts) {
            let page = PageRequest {
                page_size: Some(MAX_PAGE_SIZE),
                page_token: None,
            };
            let groups = group_list(context, caller, &page).await?.groups;
            choices.groups.extend(groups.iter().map(|one| {
                let issuer = (one.origin != ADMIN_ORIGIN).then_some(one.origin.as_str());
                Principal::format_group_id(issuer, &one.name)
            }));
            let accounts = account_list(context, caller, &page).await?.accounts;
            choices
                .accounts
                .extend(accounts.into_iter().map(|one| one.name));
        }
        Ok(choices)
    }
}
