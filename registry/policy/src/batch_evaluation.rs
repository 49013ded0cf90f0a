//! Evaluation of policies about one action for many agents.
//!
//! Policies that read the same attributes form a group, and agents with equal values of these share its result. Only
//! attributes that a group reads are converted for Cedar.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use cedar_policy::{Entities, PolicyId, PolicySet as CedarSet, Request};

use crate::action::Action;
use crate::agent_attributes::{
    AgentAttributes, AttributeValue, CollectionMembership, attribute_values,
};
use crate::cedar_requests::{cedar_request_with_entities, match_probes};
use crate::policy::Policy;
use crate::policy_matches::PolicyMatches;

/// Maximum number of results that a group keeps; further agents are evaluated one by one.
const MAX_SHARED_RESULTS: usize = 4_096;
/// Maximum number of results that all groups keep together, at most 11 MB: cards of hostile publishers have ever
/// different values.
const MAX_RESULTS: usize = 16_384;
/// Maximum size of the values for which a result is kept: longer ones are seldom equal.
const MAX_KEY_BYTES: usize = 512;

/// Policies of one set about one action, prepared for many agents.
#[derive(Debug)]
pub struct BatchEvaluator {
    action: Action,
    /// Policies that match every agent.
    unconditional: BTreeSet<u16>,
    /// Policies that cannot be evaluated on their own.
    pub(crate) refused: BTreeSet<u16>,
    groups: Vec<AttributeGroup>,
    /// The attributes that any of the policies reads; `None` if the identity of an agent may decide too.
    read_attributes: Option<BTreeSet<String>>,
}

/// Policies that read the same attributes.
#[derive(Debug)]
struct AttributeGroup {
    probes: CedarSet,
    /// The places of the attributes among all; `None` if results are not shared.
    attribute_places: Option<Vec<usize>>,
    max_results: usize,
    results: Mutex<HashMap<Vec<u8>, Arc<PolicyMatches>>>,
}

impl BatchEvaluator {
    pub(crate) fn new<'a>(
        action: Action,
        policies: impl Iterator<Item = (u16, &'a Policy)>,
    ) -> Self {
        let (mut unconditional, mut refused) = (BTreeSet::new(), BTreeSet::new());
        let mut probes_by_attributes: BTreeMap<&Option<BTreeSet<String>>, CedarSet> =
            BTreeMap::new();
        for (index, policy) in policies {
            if !policy.is_conditional {
                unconditional.insert(index);
                continue;
            }
            let probes = probes_by_attributes
                .entry(&policy.read_attributes)
                .or_default();
            let probe = policy.match_probe.as_ref();
            let probe = probe.map(|probe| probe.new_id(PolicyId::new(index.to_string())));
            if probe.is_none_or(|probe| probes.add(probe).is_err()) {
                refused.insert(index);
            }
        }
        let read_attributes =
            probes_by_attributes
                .keys()
                .try_fold(BTreeSet::new(), |mut all, names| {
                    all.extend(names.as_ref()?.iter().cloned());
                    Some(all)
                });
        let no_agent = AgentAttributes::default();
        let all_names: Vec<&str> = attribute_values(&no_agent, &[])
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let max_results = MAX_SHARED_RESULTS.min(MAX_RESULTS / probes_by_attributes.len().max(1));
        let groups = probes_by_attributes
            .into_iter()
            .map(|(names, probes)| AttributeGroup {
                probes,
                attribute_places: names.as_ref().and_then(|names| {
                    let place = |name: &String| all_names.iter().position(|one| one == name);
                    names.iter().map(place).collect()
                }),
                max_results,
                results: Mutex::default(),
            })
            .collect();
        Self {
            action,
            unconditional,
            refused,
            groups,
            read_attributes,
        }
    }

    /// Whether the policies read no other attributes than these.
    pub fn reads_only(&self, names: &[&str]) -> bool {
        let read = self.read_attributes.as_ref();
        read.is_some_and(|read| read.iter().all(|name| names.contains(&name.as_str())))
    }

    fn matches_without_conditions(&self) -> PolicyMatches {
        PolicyMatches {
            matching: self.unconditional.clone(),
            failed: self.refused.clone(),
        }
    }

    /// The policies that match the resource of a request; all that have conditions fail without one.
    pub(crate) fn match_request(&self, request: Option<&(Request, Entities)>) -> PolicyMatches {
        let mut matches = self.matches_without_conditions();
        for group in &self.groups {
            matches.extend(&match_probes(&group.probes, request));
        }
        matches
    }

    pub(crate) fn evaluate(
        &self,
        agent: &AgentAttributes,
        membership: Option<&dyn CollectionMembership>,
    ) -> PolicyMatches {
        let mut matches = self.matches_without_conditions();
        if self.groups.is_empty() {
            return matches;
        }
        let read = self.read_attributes.as_ref();
        let membership =
            membership.filter(|_| read.is_none_or(|read| read.contains("collections")));
        let collections = membership.map(|all| all.collections_containing(agent));
        let collections = collections.unwrap_or_default();
        let values = attribute_values(agent, &collections);
        let mut asked = None;
        for group in &self.groups {
            let key = group.result_key(&values);
            let found = match key.as_ref().and_then(|key| group.shared_result(key)) {
                Some(found) => found,
                None => {
                    let asked = asked.get_or_insert_with(|| self.cedar_request(agent, &values));
                    let found = Arc::new(match_probes(&group.probes, asked.as_ref().ok()));
                    // What cannot be asked for one agent may be for another.
                    if let Some(key) = key.filter(|_| asked.is_ok()) {
                        group.share_result(key, &found);
                    }
                    found
                }
            };
            matches.extend(&found);
        }
        matches
    }

    fn cedar_request(
        &self,
        agent: &AgentAttributes,
        values: &[(&'static str, AttributeValue<'_>)],
    ) -> Result<(Request, Entities), String> {
        let mut values = values.to_vec();
        if let Some(names) = &self.read_attributes {
            values.retain(|(name, _)| names.contains(*name));
        }
        cedar_request_with_entities(self.action, agent.to_entities(values)?)
    }
}

impl AttributeGroup {
    /// The values that decide the result; `None` if it is not shared.
    fn result_key(&self, values: &[(&'static str, AttributeValue<'_>)]) -> Option<Vec<u8>> {
        let mut key = Vec::new();
        for place in self.attribute_places.as_ref()? {
            values.get(*place)?.1.append_key(&mut key);
            if key.len() > MAX_KEY_BYTES {
                return None;
            }
        }
        Some(key)
    }

    fn shared_result(&self, key: &[u8]) -> Option<Arc<PolicyMatches>> {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results.get(key).cloned()
    }

    fn share_result(&self, key: Vec<u8>, found: &Arc<PolicyMatches>) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        if results.len() < self.max_results {
            results.insert(key, Arc::clone(found));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::policy::PolicyText;
    use crate::policy_set::PolicySet;

    #[derive(Debug)]
    struct ByTag;

    impl CollectionMembership for ByTag {
        fn collections_containing(&self, agent: &AgentAttributes) -> Vec<String> {
            agent.tags.clone()
        }
    }

    fn compile(texts: &[&str]) -> PolicySet {
        let texts: Vec<PolicyText> = (0..)
            .zip(texts)
            .map(|(number, text): (u32, _)| PolicyText {
                id: format!("p{number}"),
                text: (*text).to_owned(),
            })
            .collect();
        let set = PolicySet::compile(1, &texts).unwrap();
        set.with_collections(Arc::new(ByTag))
    }

    const TEXTS: [&str; 13] = [
        "permit (principal, action, resource);",
        "forbid (principal, action, resource) when { resource.tags.contains(\"x\") };",
        "forbid (principal, action, resource) when { resource.tags.containsAny([\"y\", \"z\"]) || resource.has_error };",
        "permit (principal in Group::\"a\", action, resource) when { resource.domain like \"*.test\" };",
        "permit (principal, action, resource) when { resource.trust * 4611686018427387904 > 0 };",
        "forbid (principal, action, resource in Domain::\"a.test\");",
        "forbid (principal, action, resource == Agent::\"1\");",
        "forbid (principal, action, resource) when { resource in Domain::\"b.test\" };",
        "forbid (principal, action, resource) unless { resource.collections.contains(\"y\") };",
        "permit (principal, action, resource) when { resource.provider == \"\" && resource.trust > 1 };",
        "@mode(\"dry_run\") forbid (principal, action, resource) when { resource.auth.isEmpty() };",
        "@mode(\"off\") forbid (principal, action, resource) when { resource.verified };",
        "forbid (principal, action, resource) when { resource.days_since_fetched > 7 };",
    ];

    fn agents() -> impl Iterator<Item = AgentAttributes> {
        let tags: [&[&str]; 4] = [&[], &["x"], &["y"], &["x", "z"]];
        (0..240_usize).map(move |number| AgentAttributes {
            id: (number % 60).to_string(),
            domain: ["a.test", "b.test", "c.example"][number % 3].to_owned(),
            tags: tags[number % 4]
                .iter()
                .map(|tag| (*tag).to_owned())
                .collect(),
            trust: i64::try_from(number % 5).unwrap() - 1,
            has_error: number % 7 == 0,
            provider: ["", "acme"][number % 2].to_owned(),
            ..AgentAttributes::default()
        })
    }

    /// Shared results and left-out attributes change nothing, for all policies and for each alone.
    #[test]
    fn a_batch_decides_as_each_agent_alone() {
        let set = compile(&TEXTS);
        let all: BTreeSet<u16> = (0..).take(TEXTS.len()).collect();
        let selections = all.iter().map(|one| BTreeSet::from([*one]));
        for indices in selections.chain([all.clone()]) {
            let batch = set.batch_evaluator(Action::Discover, &indices).unwrap();
            for agent in agents() {
                let mut alone = set.match_agent(Action::Discover, &agent);
                alone.matching.retain(|index| indices.contains(index));
                alone.failed.retain(|index| indices.contains(index));
                let matches = set.match_agent_in_batch(&batch, &agent);
                assert_eq!(matches, alone, "{indices:?} {agent:?}");
            }
        }
    }

    #[test]
    fn equal_values_are_evaluated_once_and_results_are_bounded() {
        let set = compile(&TEXTS);
        let batch = set
            .batch_evaluator(Action::Discover, &BTreeSet::from([2]))
            .unwrap();
        assert!(batch.reads_only(&["tags", "has_error"]) && !batch.reads_only(&["tags"]));
        for agent in agents() {
            set.match_agent_in_batch(&batch, &agent);
        }
        let kept = || batch.groups[0].results.lock().unwrap().len();
        assert_eq!(kept(), 8);
        for number in 0..=MAX_SHARED_RESULTS {
            let tags = vec![number.to_string()];
            let agent = AgentAttributes {
                tags,
                ..AgentAttributes::default()
            };
            set.match_agent_in_batch(&batch, &agent);
        }
        assert_eq!(kept(), MAX_SHARED_RESULTS);
        // The identity of an agent shares nothing.
        let own = set
            .batch_evaluator(Action::Discover, &BTreeSet::from([6]))
            .unwrap();
        assert!(!own.reads_only(&["tags"]));
        assert!(own.groups[0].attribute_places.is_none());
    }

    #[test]
    fn policies_with_the_same_text_are_carried() {
        let before = compile(&TEXTS);
        let mut texts: Vec<PolicyText> = before
            .policies()
            .iter()
            .map(|policy| PolicyText {
                id: policy.id.clone(),
                text: policy.text.clone(),
            })
            .collect();
        texts.remove(0);
        texts[0].text.push(' ');
        let after = PolicySet::compile(2, &texts).unwrap();
        let carried = after.carried_policies(&before, Action::Discover);
        // Neither the changed one, nor those about collections and ages.
        assert_eq!(
            carried,
            [
                (2, 1),
                (3, 2),
                (4, 3),
                (5, 4),
                (6, 5),
                (7, 6),
                (9, 8),
                (10, 9),
                (11, 10)
            ]
        );
    }
}
