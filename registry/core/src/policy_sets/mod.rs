//! Stored policy sets, and the shipped policies.

pub mod age_progress;
pub mod notices;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use a2a_registry_domain::admission_rules::{AdmissionRules, Rule};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::{
    Policy, PolicyError, PolicySet, PolicyText, PrincipalScope, policy_set_cost_errors,
};
use a2a_registry_store::entity::policy_set;
use a2a_registry_store::{Executor, policies};
use ring::digest::{SHA256, digest};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::collection_filters::{CollectionFilters, snapshot_collections};
use crate::config::IdentityConfig;
use crate::error::{AppError, Result};

/// The policies of a registry that has written none: everyone may find and call every agent that visibility and holds
/// allow.
fn initial_policies() -> Vec<PolicyText> {
    vec![policy_text(
        "everybody",
        "// Whoever may see an agent finds it and may call it.\npermit (principal, action, resource);\n",
    )]
}

/// The admission rules that complement every set, in the order in which a decision names them, each with its text. A
/// written policy with the same identifier replaces a rule.
const DEFAULT_ADMISSION_POLICIES: [(&str, Rule, &str); 5] = [
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

/// The registration policy that complements every set. It leaves the decision to configuration and roles.
const DEFAULT_REGISTRATION_POLICY: (&str, &str) = (
    "registration",
    "// Whoever may register, any domain.\npermit (principal, action == Action::\"register\", resource);\n",
);

/// The policies that complement every set.
pub fn default_policies(rules: &AdmissionRules) -> Vec<PolicyText> {
    let admission = DEFAULT_ADMISSION_POLICIES.iter();
    let admission = admission.filter(|(_, rule, _)| rules.approve_all || *rule != Rule::ApproveAll);
    let admission = admission.map(|(id, _, policy)| policy_text(id, policy));
    let (id, policy) = DEFAULT_REGISTRATION_POLICY;
    admission.chain([policy_text(id, policy)]).collect()
}

/// The rule of a shipped policy, and its position among them.
pub fn default_policy_rule(id: &str) -> Option<(usize, Rule)> {
    let position = DEFAULT_ADMISSION_POLICIES
        .iter()
        .position(|(shipped, ..)| *shipped == id)?;
    Some((position, DEFAULT_ADMISSION_POLICIES[position].1))
}

fn policy_text(id: &str, text: &str) -> PolicyText {
    PolicyText {
        id: id.to_owned(),
        text: text.to_owned(),
    }
}

pub fn parse_stored_policies(row: &policy_set::Model) -> Result<Vec<PolicyText>> {
    serde_json::from_str(&row.policies).map_err(|error| {
        AppError::internal(format!("policy set {} is invalid: {error}", row.number))
    })
}

/// Maximum number of cached compiled sets: the one in force, its successor, and the one being written.
const MAX_CACHED_SETS: usize = 4;
/// Maximum number of drafts that are compiled or queued; further ones get 503. Each holds its texts meanwhile, at most
/// 4 MiB.
const MAX_DRAFTS: usize = 8;

/// The sets that this process has compiled last, by their texts. A previewed set is compiled only once, and an
/// accepted one is ready for the first write that admits by it, which holds the database lock.
#[derive(Debug)]
pub struct CompiledSetCache {
    recent: Mutex<VecDeque<(Vec<u8>, PolicySet)>>,
    /// Permits for drafts that may wait.
    draft_permits: Semaphore,
    /// The permit to compile a draft.
    compile_permit: Arc<Semaphore>,
}

impl Default for CompiledSetCache {
    /// Only one draft is compiled at a time; accepted sets do not wait for it.
    fn default() -> Self {
        Self {
            recent: Mutex::default(),
            draft_permits: Semaphore::new(MAX_DRAFTS),
            compile_permit: Arc::new(Semaphore::new(1)),
        }
    }
}

impl CompiledSetCache {
    fn find(&self, key: &[u8]) -> Option<PolicySet> {
        let mut recent = self.recent.lock().ok()?;
        let index = recent.iter().position(|(known, _)| known == key)?;
        let entry = recent.remove(index)?;
        let set = entry.1.clone();
        recent.push_front(entry);
        Some(set)
    }

    fn insert(&self, key: Vec<u8>, set: &PolicySet) {
        if let Ok(mut recent) = self.recent.lock() {
            recent.retain(|(known, _)| *known != key);
            recent.push_front((key, set.clone()));
            recent.truncate(MAX_CACHED_SETS);
        }
    }

    /// Compiles a draft without a number, as of `now`: its cost is checked first, and it waits until no other draft is
    /// compiled.
    pub async fn compile_draft(
        &self,
        texts: Vec<PolicyText>,
        rules: &AdmissionRules,
        now: Timestamp,
    ) -> Result<Result<PolicySet, Vec<PolicyError>>> {
        let errors = policy_set_cost_errors(&texts);
        if !errors.is_empty() {
            return Ok(Err(errors));
        }
        let permit = self.acquire_compile_permit().await?;
        self.compile_with_defaults((0, now), texts, rules, permit, true)
            .await
    }

    /// Waits for the permit to compile one set for an author or reader.
    pub async fn acquire_compile_permit(&self) -> Result<OwnedSemaphorePermit> {
        let Ok(_waiting) = self.draft_permits.try_acquire() else {
            return Err(AppError::unavailable(
                "Too many policy sets are being read; try again.",
                1,
            ));
        };
        let permit = Arc::clone(&self.compile_permit).acquire_owned().await;
        permit.map_err(|_| AppError::unavailable("The registry is shutting down. Try again.", 5))
    }

    /// Compiles a set with this number, as of this moment, and the policies that complement every set, on a thread
    /// that does not serve requests: a large set takes a second. `permit` is released afterwards, even if the caller
    /// no longer waits. With `is_cached` the set stays in the cache.
    async fn compile_with_defaults(
        &self,
        (number, as_of): (u64, Timestamp),
        texts: Vec<PolicyText>,
        rules: &AdmissionRules,
        permit: impl Send + 'static,
        is_cached: bool,
    ) -> Result<Result<PolicySet, Vec<PolicyError>>> {
        let defaults = default_policies(rules);
        // A set whose policies may have dates is another one on another day.
        let may_have_dates =
            |one: &PolicyText| one.text.contains("from") || one.text.contains("until");
        let day = texts
            .iter()
            .any(may_have_dates)
            .then(|| as_of.days_since_epoch());
        let key = serde_json::to_vec(&(&texts, &defaults, day));
        let key = key.map_err(|error| AppError::internal(error.to_string()))?;
        let key = digest(&SHA256, &key).as_ref().to_vec();
        if let Some(set) = self.find(&key) {
            return Ok(Ok(set.with_number(number)));
        }
        let compile = move || {
            let _permit = permit;
            PolicySet::compile_with_defaults(number, &texts, &defaults, as_of)
        };
        let compiled = tokio::task::spawn_blocking(compile).await;
        let compiled = compiled
            .map_err(|error| AppError::internal(format!("the compilation was aborted: {error}")))?;
        if is_cached && let Ok(set) = &compiled {
            self.insert(key, set);
        }
        Ok(compiled)
    }
}

/// Loads and compiles the set with the highest number; the shipped one has the number 0.
pub async fn load_newest_policy_set(
    sets: &CompiledSetCache,
    db: &impl Executor,
    rules: &AdmissionRules,
) -> Result<PolicySet> {
    let newest = policies::newest_policy_set(db).await?;
    compile_stored_set(sets, newest, rules).await
}

pub fn policy_set_number(row: &policy_set::Model) -> u64 {
    u64::try_from(row.number).unwrap_or(0)
}

/// Compiles a new draft like [`CompiledSetCache::compile_draft`]. Annotations that are unknown or have an invalid value
/// are errors, which stored sets may have, and so is a policy about a group that the configuration leaves out: the group
/// would have no members.
pub async fn compile_new_draft(
    sets: &CompiledSetCache,
    texts: Vec<PolicyText>,
    rules: &AdmissionRules,
    identity: &IdentityConfig,
    now: Timestamp,
) -> Result<Result<PolicySet, Vec<PolicyError>>> {
    let set = sets.compile_draft(texts, rules, now).await?;
    Ok(set.and_then(|set| {
        let mut errors = set.new_policy_errors();
        errors.extend(
            deselected_group_policies(&set, identity)
                .map(|(policy, text)| PolicyError::at_start(&policy.id, &policy.text, text)),
        );
        match errors.is_empty() {
            true => Ok(set),
            false => Err(errors),
        }
    }))
}

/// Returns the policies of a set about a group that the configuration leaves out, each with a sentence about the
/// group.
pub fn deselected_group_policies<'a>(
    set: &'a PolicySet,
    identity: &'a IdentityConfig,
) -> impl Iterator<Item = (&'a Policy, String)> {
    set.policies().iter().filter_map(|policy| {
        let mut named = BTreeSet::new();
        policy.scope.collect_named(&mut named);
        let error = named.into_iter().find_map(|scope| match scope {
            PrincipalScope::Group(group) => identity.group_deselection_error(group),
            _ => None,
        });
        error.map(|text| (policy, text))
    })
}

/// Compiles a stored set as of the moment when it was made; the shipped one for `None`. When a policy of it begins or
/// ends to act later, the same policies become another set.
pub async fn compile_stored_set(
    sets: &CompiledSetCache,
    row: Option<policy_set::Model>,
    rules: &AdmissionRules,
) -> Result<PolicySet> {
    compile_set_row(sets, row, rules, (), true).await
}

/// Compiles an earlier set like [`compile_stored_set`], for a reader: one at a time, and without displacing a set that
/// is in use from the cache.
pub async fn compile_earlier_set(
    sets: &CompiledSetCache,
    row: Option<policy_set::Model>,
    rules: &AdmissionRules,
) -> Result<PolicySet> {
    let permit = sets.acquire_compile_permit().await?;
    compile_set_row(sets, row, rules, permit, false).await
}

async fn compile_set_row(
    sets: &CompiledSetCache,
    row: Option<policy_set::Model>,
    rules: &AdmissionRules,
    permit: impl Send + 'static,
    is_cached: bool,
) -> Result<PolicySet> {
    let (number, as_of, texts) = match &row {
        Some(row) => (
            policy_set_number(row),
            Timestamp(row.created_at),
            parse_stored_policies(row)?,
        ),
        None => (0, Timestamp::default(), initial_policies()),
    };
    let set = sets
        .compile_with_defaults((number, as_of), texts, rules, permit, is_cached)
        .await?
        .map_err(|faults| {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            AppError::internal(format!(
                "policy set {number} cannot be compiled: {}",
                faults.join("; ")
            ))
        })?;
    Ok(match row.and_then(|row| row.collections) {
        Some(kept) => set.with_collections(Arc::new(CollectionFilters::from_stored(&kept))),
        None => set,
    })
}

pub async fn with_current_collections(db: &impl Executor, set: PolicySet) -> Result<PolicySet> {
    if !set.uses_collections() {
        return Ok(set);
    }
    let collections = snapshot_collections(db).await?;
    Ok(set.with_collections(Arc::new(CollectionFilters::from_stored(&collections))))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use a2a_registry_policy::MAX_PATTERN_CHARS;

    use super::*;
    use crate::error::ErrorKind;

    const NOW: Timestamp = Timestamp(0);

    fn permit_all_policy(id: &str) -> Vec<PolicyText> {
        vec![policy_text(id, "permit (principal, action, resource);")]
    }

    /// A set that was compiled when it was applied is not compiled again by the next write.
    #[tokio::test]
    async fn an_accepted_set_is_at_hand_and_old_ones_make_way() {
        let (sets, rules) = (CompiledSetCache::default(), AdmissionRules::default());
        let draft = async |id: &str| {
            sets.compile_draft(permit_all_policy(id), &rules, NOW)
                .await
                .unwrap()
                .unwrap()
        };
        let first = draft("first").await;
        let row = |id: &str| policy_set::Model {
            number: 7,
            policies: serde_json::to_string(&permit_all_policy(id)).unwrap(),
            collections: None,
            author: "somebody".into(),
            reason: "a test".into(),
            created_at: 0,
        };
        let accepted = compile_stored_set(&sets, Some(row("first")), &rules)
            .await
            .unwrap();
        let is_same =
            |one: &PolicySet, other: &PolicySet| std::ptr::eq(one.policies(), other.policies());
        assert!(is_same(&first, &accepted));
        // Reading earlier sets does not evict the accepted one.
        for earlier in 0..MAX_CACHED_SETS {
            let earlier = Some(row(&format!("earlier{earlier}")));
            compile_earlier_set(&sets, earlier, &rules).await.unwrap();
        }
        let still = compile_stored_set(&sets, Some(row("first")), &rules)
            .await
            .unwrap();
        assert!(is_same(&first, &still));
        assert_eq!((first.number(), accepted.number()), (0, 7));
        for other in 0..MAX_CACHED_SETS {
            draft(&format!("p{other}")).await;
        }
        let again = compile_stored_set(&sets, Some(row("first")), &rules)
            .await
            .unwrap();
        assert!(!is_same(&first, &again));
    }

    /// A set with dates is compiled for the day; a stored one may have annotations that a new one must not.
    #[tokio::test]
    async fn dates_count_as_of_the_moment_and_annotations_for_new_sets() {
        let (sets, rules) = (CompiledSetCache::default(), AdmissionRules::default());
        let dated = "@from(\"2026-12-15\") permit (principal, action, resource);";
        let texts = vec![policy_text("dated", dated)];
        for (now, permits) in [
            ("2026-12-14T23:00:00Z", false),
            ("2026-12-15T00:00:00Z", true),
            ("2026-12-14T23:00:00Z", false),
        ] {
            let now = now.parse().unwrap();
            let set = sets
                .compile_draft(texts.clone(), &rules, now)
                .await
                .unwrap();
            let permitted = set
                .unwrap()
                .may_permit(a2a_registry_policy::Action::Discover);
            assert_eq!(permitted, permits, "{now:?}");
        }
        let odd = vec![policy_text(
            "odd",
            "@owner(\"ann\") @until(\"soon\") permit (principal, action, resource);",
        )];
        let identity = IdentityConfig::default();
        let faults = compile_new_draft(&sets, odd.clone(), &rules, &identity, NOW)
            .await
            .unwrap()
            .unwrap_err();
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(faults.len(), 2, "{faults:?}");
        let kept = policy_set::Model {
            number: 1,
            policies: serde_json::to_string(&odd).unwrap(),
            collections: None,
            author: "somebody".into(),
            reason: "a test".into(),
            created_at: 0,
        };
        let kept = compile_stored_set(&sets, Some(kept), &rules).await.unwrap();
        assert!(kept.may_permit(a2a_registry_policy::Action::Discover));
    }

    /// Drafts are limited in cost and number, and accepted sets do not wait for them.
    #[tokio::test]
    async fn drafts_are_bounded_and_nothing_accepted_waits_for_them() {
        let (sets, rules) = (CompiledSetCache::default(), AdmissionRules::default());
        let pattern = "x".repeat(MAX_PATTERN_CHARS + 1);
        let costly = format!(
            "permit (principal, action, resource) when {{ resource.domain like \"{pattern}\" }};"
        );
        let costly = vec![policy_text("costly", &costly)];
        let faults = sets
            .compile_draft(costly.clone(), &rules, NOW)
            .await
            .unwrap();
        assert_eq!(faults.unwrap_err()[0].policy, "costly");
        let _permit = sets.compile_permit.acquire().await.unwrap();
        let ids: Vec<String> = (0..MAX_DRAFTS).map(|number| format!("p{number}")).collect();
        let mut waiting: Vec<_> = ids
            .iter()
            .map(|id| Box::pin(sets.compile_draft(permit_all_policy(id), &rules, NOW)))
            .collect();
        for one in &mut waiting {
            assert!(futures::poll!(one).is_pending());
        }
        let beyond = sets
            .compile_draft(permit_all_policy("beyond"), &rules, NOW)
            .await
            .unwrap_err();
        assert_eq!(beyond.kind, ErrorKind::Unavailable);
        // A set that was stored before costs were limited.
        let kept = policy_set::Model {
            number: 1,
            policies: serde_json::to_string(&costly).unwrap(),
            collections: None,
            author: "somebody".into(),
            reason: "a test".into(),
            created_at: 0,
        };
        let kept = compile_stored_set(&sets, Some(kept), &rules).await.unwrap();
        assert_eq!(kept.number(), 1);
    }
}
