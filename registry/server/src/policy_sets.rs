//! Policy sets as they are kept, and the policies that are shipped.

use std::sync::Arc;

use a2a_registry_domain::admission_rules::{Rule, Rules};
use a2a_registry_policy::{Fault, Policy, PolicySet, PolicyText, PrincipalScope};
use a2a_registry_store::entity::policy_set;
use a2a_registry_store::{Handle, policies};

use crate::collection_filters::{CollectionFilters, collections_to_keep};
use crate::config::IdentityConfig;
use crate::error::AppError;

/// The policies of a registry in which nobody has written any: everybody finds and calls every agent that visibility and
/// holds leave to them.
fn shipped_set() -> Vec<PolicyText> {
    vec![text(
        "everybody",
        "// Whoever may see an agent finds it and may call it.\npermit (principal, action, resource);\n",
    )]
}

/// The rules of admission that stand beside every set, in the order in which they are named in a decision, each with its
/// text. A policy of the same identifier replaces one.
const ADMISSION: [(&str, Rule, &str); 5] = [
    (
        "approve-all",
        Rule::ApproveAll,
        r#"// `governance.approve_all`: whatever it is.
permit (principal, action == Action::"admit", resource);
"#,
    ),
    (
        "allow-domains",
        Rule::AllowDomains,
        r#"// Domains of `governance.allow_domains`: without proof, up to critical changes.
permit (principal, action == Action::"admit", resource)
when { resource.allow_listed && resource.covered && !resource.has_error && resource.change != "critical" };
"#,
    ),
    (
        "verified-domain",
        Rule::VerifiedDomain,
        r#"// What a proved domain publishes: its first card, and small changes.
permit (principal, action == Action::"admit", resource)
when { resource.verified && resource.covered && !resource.has_error && ["first", "none", "low"].contains(resource.change) };
"#,
    ),
    (
        "no-change",
        Rule::NoChange,
        r#"// What means the same as what was approved.
permit (principal, action == Action::"admit", resource)
when { resource.change == "none" };
"#,
    ),
    (
        "low-change",
        Rule::LowChange,
        r#"// Small changes of what was approved.
permit (principal, action == Action::"admit", resource)
when { resource.change == "low" };
"#,
    ),
];

/// Who may register stands in the configuration and in roles; this leaves it to them.
const REGISTRATION: (&str, &str) = (
    "registration",
    "// Whoever may register, any domain.\npermit (principal, action == Action::\"register\", resource);\n",
);

/// The policies that stand beside every set.
pub(crate) fn beside(rules: &Rules) -> Vec<PolicyText> {
    let admission = ADMISSION.iter();
    let admission = admission.filter(|(_, rule, _)| rules.approve_all || *rule != Rule::ApproveAll);
    let admission = admission.map(|(id, _, policy)| text(id, policy));
    let (id, policy) = REGISTRATION;
    admission.chain([text(id, policy)]).collect()
}

/// The rule that a shipped policy is, and its place among them.
pub(crate) fn shipped_rule(id: &str) -> Option<(usize, Rule)> {
    let place = ADMISSION.iter().position(|(shipped, ..)| *shipped == id)?;
    Some((place, ADMISSION[place].1))
}

fn text(id: &str, text: &str) -> PolicyText {
    PolicyText {
        id: id.to_owned(),
        text: text.to_owned(),
    }
}

/// The policies of a kept set.
pub(crate) fn written(row: &policy_set::Model) -> Result<Vec<PolicyText>, AppError> {
    serde_json::from_str(&row.policies).map_err(|error| {
        AppError::internal(format!("policy set {} is broken: {error}", row.number))
    })
}

/// The set with the highest number, compiled; the shipped one has the number 0.
///
/// # Errors
/// Where the database fails, or this version of the program cannot compile it.
pub(crate) async fn newest_set(on: &impl Handle, rules: &Rules) -> Result<PolicySet, AppError> {
    let newest = policies::policy_set_newest(on).await?;
    compiled(newest, rules).await
}

/// The number of a kept set.
pub(crate) fn number_of(row: &policy_set::Model) -> u64 {
    u64::try_from(row.number).unwrap_or(0)
}

/// A set with the policies that stand beside every set, compiled away from the threads that answer requests: a large one takes
/// seconds.
///
/// # Errors
/// Every fault of the policies, or where the work was aborted.
pub(crate) async fn compiled_beside(
    number: u64,
    texts: Vec<PolicyText>,
    rules: &Rules,
) -> Result<Result<PolicySet, Vec<Fault>>, AppError> {
    let beside = beside(rules);
    let compile = move || PolicySet::compile_beside(number, &texts, &beside);
    let compiled = tokio::task::spawn_blocking(compile).await;
    compiled.map_err(|error| AppError::internal(format!("compiling was aborted: {error}")))
}

/// A set that somebody writes now, as [`compiled_beside`] compiles it. A policy about a group that the configuration leaves out
/// is a fault: it would be about nobody.
///
/// # Errors
/// As [`compiled_beside`].
pub(crate) async fn compiled_new(
    texts: Vec<PolicyText>,
    rules: &Rules,
    identity: &IdentityConfig,
) -> Result<Result<PolicySet, Vec<Fault>>, AppError> {
    let set = compiled_beside(0, texts, rules).await?;
    Ok(set.and_then(|set| {
        let deselected: Vec<Fault> = deselections(&set, identity)
            .map(|(policy, text)| Fault::of_whole(&policy.id, &policy.text, text))
            .collect();
        match deselected.is_empty() {
            true => Ok(set),
            false => Err(deselected),
        }
    }))
}

/// The policies of a set that are about a group that the configuration leaves out, each with what it says of that group.
pub(crate) fn deselections<'a>(
    set: &'a PolicySet,
    identity: &'a IdentityConfig,
) -> impl Iterator<Item = (&'a Policy, String)> {
    set.policies().iter().filter_map(|policy| {
        let PrincipalScope::Group(group) = &policy.scope else {
            return None;
        };
        identity.deselection(group).map(|text| (policy, text))
    })
}

/// A kept set, compiled; the shipped one without.
///
/// # Errors
/// Where this version of the program cannot compile it.
pub(crate) async fn compiled(
    row: Option<policy_set::Model>,
    rules: &Rules,
) -> Result<PolicySet, AppError> {
    let (number, texts) = match &row {
        Some(row) => (number_of(row), written(row)?),
        None => (0, shipped_set()),
    };
    let set = compiled_beside(number, texts, rules)
        .await?
        .map_err(|faults| {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            AppError::internal(format!(
                "policy set {number} cannot be compiled: {}",
                faults.join("; ")
            ))
        })?;
    Ok(match row.and_then(|row| row.collections) {
        Some(kept) => set.asking(Arc::new(CollectionFilters::kept(&kept))),
        None => set,
    })
}

/// A set that is not kept, asking about the collections that there are.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn asking_about_present_collections(
    on: &impl Handle,
    set: PolicySet,
) -> Result<PolicySet, AppError> {
    if !set.asks_about_collections() {
        return Ok(set);
    }
    let present = collections_to_keep(on).await?;
    Ok(set.asking(Arc::new(CollectionFilters::kept(&present))))
}
