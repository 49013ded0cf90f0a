//! Warnings about groups and accounts that policies name and that do not exist: probably their names are misspelt.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use a2a_registry_policy::{ANONYMOUS_ACCOUNT, PolicySet, PrincipalScope};
use a2a_registry_store::accounts::{account_page, accounts_by_names};
use a2a_registry_store::groups::{group_page, groups_by_names};

use crate::context::AppContext;
use crate::error::Result;
use crate::visibility::audience::policy_group_name;

/// Maximum number of names in one query.
const NAMES_PER_QUERY: usize = 200;
/// Maximum number of warnings; further unknown names are counted.
const MAX_WARNINGS: usize = 50;
/// Maximum length of an unknown name that is compared with existing ones, in bytes.
const MAX_COMPARED_BYTES: usize = 256;
/// Maximum number of existing names that an unknown one is compared with, the newest first.
const MAX_COMPARED_NAMES: u64 = 1_000;

/// Warns of each group and account that a custom policy names and that no one has ever seen, with the policy and a
/// name that may be meant.
pub async fn unknown_principal_warnings(
    context: &AppContext,
    set: &PolicySet,
) -> Result<Vec<String>> {
    let mut policies_by_scope: BTreeMap<&PrincipalScope, &str> = BTreeMap::new();
    for policy in set.policies().iter().filter(|policy| !policy.is_built_in) {
        let mut named = BTreeSet::new();
        policy.scope.collect_named(&mut named);
        for scope in named {
            policies_by_scope.entry(scope).or_insert(&policy.id);
        }
    }
    let (mut groups, mut accounts) = (Vec::new(), Vec::new());
    for scope in policies_by_scope.keys() {
        match scope {
            PrincipalScope::Group(name) => groups.push(name.clone()),
            PrincipalScope::Account(name) if name != ANONYMOUS_ACCOUNT => {
                accounts.push(name.clone());
            }
            _ => {}
        }
    }
    let unknown_groups = unknown_groups(context, groups).await?;
    let unknown_accounts = unknown_accounts(context, accounts).await?;
    if unknown_groups.is_empty() && unknown_accounts.is_empty() {
        return Ok(Vec::new());
    }
    let known_groups = group_page(&context.store, None, MAX_COMPARED_NAMES).await?;
    let known_groups: Vec<String> = known_groups.iter().map(policy_group_name).collect();
    let known_accounts = account_page(&context.store, None, MAX_COMPARED_NAMES).await?;
    let known_accounts: Vec<String> = known_accounts.into_iter().map(|row| row.name).collect();
    let unknown_groups = unknown_groups
        .into_iter()
        .map(|name| ("group", PrincipalScope::Group(name), &known_groups));
    let unknown_accounts = unknown_accounts
        .into_iter()
        .map(|name| ("account", PrincipalScope::Account(name), &known_accounts));
    let unknown: Vec<_> = unknown_groups.chain(unknown_accounts).collect();
    let further = unknown.len().saturating_sub(MAX_WARNINGS);
    let mut warnings = Vec::new();
    // Each is compared with all known names.
    for (kind, scope, known) in unknown.into_iter().take(MAX_WARNINGS) {
        let (PrincipalScope::Group(name) | PrincipalScope::Account(name)) = &scope else {
            continue;
        };
        let policy = policies_by_scope.get(&scope).copied().unwrap_or_default();
        warnings.push(unknown_principal_warning(policy, kind, name, known));
    }
    if further > 0 {
        warnings.push(format!("{further} more groups and accounts are unknown."));
    }
    Ok(warnings)
}

fn unknown_principal_warning(policy: &str, kind: &str, name: &str, known: &[String]) -> String {
    let guess = match nearest_name(name, known) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("no {kind} of this name has been seen yet."),
    };
    format!("Policy {policy}: the {kind} {name} is unknown; {guess}")
}

/// The existing name that a misspelt one probably means: one letter in three may be wrong.
fn nearest_name<'a>(name: &str, known: &'a [String]) -> Option<&'a String> {
    if name.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let distances = known
        .iter()
        .map(|other| (strsim::damerau_levenshtein(name, other), other));
    let nearest = distances.min_by_key(|(distance, _)| *distance)?;
    (nearest.0 <= name.chars().count() / 3).then_some(nearest.1)
}

async fn unknown_groups(context: &AppContext, names: Vec<String>) -> Result<Vec<String>> {
    let short_name = |name: &String| {
        let short = name
            .split_once('#')
            .map_or(name.as_str(), |(_, short)| short);
        short.to_owned()
    };
    let mut known: HashSet<String> = HashSet::new();
    for chunk in names.chunks(NAMES_PER_QUERY) {
        let short_names: Vec<String> = chunk.iter().map(short_name).collect();
        let rows = groups_by_names(&context.store, &short_names).await?;
        known.extend(rows.iter().map(policy_group_name));
    }
    Ok(leave_out_known(names, &known))
}

async fn unknown_accounts(context: &AppContext, names: Vec<String>) -> Result<Vec<String>> {
    let mut known: HashSet<String> = HashSet::new();
    for chunk in names.chunks(NAMES_PER_QUERY) {
        let rows = accounts_by_names(&context.store, chunk).await?;
        known.extend(rows.into_iter().map(|row| row.name));
    }
    Ok(leave_out_known(names, &known))
}

fn leave_out_known(mut names: Vec<String>, known: &HashSet<String>) -> Vec<String> {
    names.retain(|name| !known.contains(name));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_guessed_and_another_one_is_not() {
        let known = ["finance", "travel", "hr"].map(str::to_owned);
        for (name, meant) in [
            ("finanse", Some("finance")),
            ("fiannce", Some("finance")),
            ("contractors", None),
            ("it", None),
        ] {
            let guess = nearest_name(name, &known).map(String::as_str);
            assert_eq!(guess, meant, "{name}");
        }
        assert_eq!(
            unknown_principal_warning("pii", "group", "finanse", &known),
            "Policy pii: the group finanse is unknown; did you mean finance?"
        );
    }
}
