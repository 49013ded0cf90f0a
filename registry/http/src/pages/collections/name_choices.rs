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

/// Maximum number of proposed names of one kind.
const MAX_NAMES: usize = 200;

/// The names in other collections, and for those who read accounts also a page of all groups and accounts. Other names
/// can be typed.
#[derive(Default)]
pub(super) struct NameChoices {
    pub groups: Vec<String>,
    pub accounts: Vec<String>,
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
        let mut groups: BTreeSet<String> = audiences.flatten().collect();
        let mut accounts: BTreeSet<String> = own.chain(owners).collect();
        if caller.has_permission(Permission::ReadAccounts) {
            let page = PageRequest {
                page_size: Some(MAX_PAGE_SIZE),
                page_token: None,
            };
            let listed = group_list(context, caller, &page).await?.groups;
            groups.extend(listed.iter().map(|one| {
                let issuer = (one.origin != ADMIN_ORIGIN).then_some(one.origin.as_str());
                Principal::format_group_id(issuer, &one.name)
            }));
            let listed = account_list(context, caller, &page).await?.accounts;
            accounts.extend(listed.into_iter().map(|one| one.name));
        }
        Ok(Self {
            groups: first_names(groups),
            accounts: first_names(accounts),
        })
    }
}

fn first_names(names: BTreeSet<String>) -> Vec<String> {
    names.into_iter().take(MAX_NAMES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_names_are_proposed_than_a_page_bears() {
        let names: BTreeSet<String> = (0..=MAX_NAMES).map(|n| format!("{n:04}")).collect();
        let proposed = first_names(names);
        assert_eq!(proposed.len(), MAX_NAMES);
        assert_eq!(proposed.first().map(String::as_str), Some("0000"));
    }
}
