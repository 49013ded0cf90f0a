//! Random decisions, each by the sets and by Cedar's own authorizer.

use std::collections::{HashMap, HashSet};

use super::*;

/// A source of numbers that gives the same ones in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }

    fn of<T: Copy>(&mut self, some: &[T]) -> T {
        some[self.below(some.len())]
    }

    fn some(&mut self, all: &[&str]) -> Vec<String> {
        let held = all.iter().filter(|_| self.below(2) == 0);
        held.map(|one| (*one).to_owned()).collect()
    }

    fn policy(&mut self) -> String {
        let effect = self.of(&["permit", "permit", "forbid"]);
        let who = self.of(&[
            "principal",
            "principal is Account",
            "principal in Group::\"red\"",
            "principal in Group::\"https://idp.example.com#red\"",
            "principal in Group::\"blue\"",
            "principal == Account::\"ann\"",
            "principal == Account::\"anonymous\"",
            "principal is Account in Group::\"blue\"",
        ]);
        let action = self.of(&[
            "action == Action::\"discover\"",
            "action == Action::\"invoke\"",
            "action in [Action::\"discover\", Action::\"invoke\"]",
        ]);
        let resource = self.of(&[
            "resource",
            "resource",
            "resource in Domain::\"a.example.com\"",
            "resource in Domain::\"b.example.com\"",
            "resource == Agent::\"a1\"",
        ]);
        let clause = self.principal_clause();
        let condition = self.of(&[
            "",
            "when { resource.tags.contains(\"finance\") }",
            "when { resource.collections.contains(\"c-finance\") }",
            "when { resource.domain like \"*.example.com\" }",
            "unless { resource.trust >= 2 }",
            "when { resource.covered || resource.owner_present }",
            "when { resource.auth.containsAny([\"oauth2\", \"mutualTLS\"]) } unless { resource.has_error }",
            "when { [\"one.example.com\", \"two.example.com\"].containsAll(resource.endpoint_hosts) }",
            "when { resource.signature == \"valid\" && resource.lifecycle != \"deprecated\" }",
            "when { resource.trust * 4611686018427387904 > 0 }",
        ]);
        // Cedar leaves out a policy that fails before its clauses about the principal are reached.
        match condition.contains("461168") || self.below(2) == 0 {
            true => format!("{effect} ({who}, {action}, {resource}) {clause} {condition};"),
            false => format!("{effect} ({who}, {action}, {resource}) {condition} {clause};"),
        }
    }

    /// None, one or two clauses about the principal.
    fn principal_clause(&mut self) -> String {
        let count = self.below(3);
        let mut clauses = Vec::new();
        for _ in 0..count {
            let kind = self.of(&["when", "unless"]);
            clauses.push(format!("{kind} {{ {} }}", self.principal_expression(3)));
        }
        clauses.join(" ")
    }

    /// An expression about the principal, nested at most this deep.
    fn principal_expression(&mut self, depth: usize) -> String {
        let is_leaf = depth == 0 || self.below(2) == 0;
        if !is_leaf {
            let left = self.principal_expression(depth - 1);
            return match self.below(3) {
                0 => format!("!({left})"),
                1 => format!("({left}) && ({})", self.principal_expression(depth - 1)),
                _ => format!("({left}) || ({})", self.principal_expression(depth - 1)),
            };
        }
        let leaf = self.of(&[
            "principal in Group::\"red\"",
            "principal in Group::\"blue\"",
            "principal in Group::\"https://idp.example.com#red\"",
            "principal in [Group::\"red\", Group::\"blue\"]",
            "principal == Account::\"ann\"",
            "Account::\"bob\" == principal",
            "principal != Account::\"anonymous\"",
            "principal is Account in Group::\"blue\"",
            "principal is Account",
            "[Account::\"ann\", Account::\"bob\"].contains(principal)",
            "principal in Account::\"ann\"",
        ]);
        leaf.to_owned()
    }

    fn facts(&mut self) -> AgentAttributes {
        AgentAttributes {
            id: self.of(&["a1", "a2", "a3"]).into(),
            domain: self
                .of(&["a.example.com", "b.example.com", "example.net"])
                .into(),
            tags: self.some(&["finance", "travel"]),
            trust: i64::try_from(self.below(6)).unwrap() - 1,
            covered: self.below(2) == 0,
            owner_present: self.below(2) == 0,
            auth: self.some(&["oauth2", "mutualTLS", "none"]),
            has_error: self.below(2) == 0,
            endpoint_hosts: self.some(&["one.example.com", "two.example.com", "three.example.com"]),
            signature: self.of(&["valid", "unsigned"]).into(),
            lifecycle: self.of(&["approved", "deprecated"]).into(),
            ..agent()
        }
    }

    fn principal(&mut self) -> Principal {
        let account = self.of(&[None, Some("ann"), Some("bob")]);
        let groups = match account {
            None => Vec::new(),
            Some(_) => self.some(&["red", "blue", "https://idp.example.com#red"]),
        };
        Principal {
            account: account.map(str::to_owned),
            groups,
        }
    }
}

/// Cedar's own decision on the policies as they were written, and whether one of them failed.
fn by_cedar(
    policies: &[PolicyText],
    action: Action,
    who: &Principal,
    facts: &AgentAttributes,
) -> (bool, bool) {
    use cedar_policy::{
        Authorizer, Context, Decision, Entities, Entity, EntityUid, Policy, PolicyId, Request,
    };
    let uid = |kind: &str, id: &str| -> EntityUid { format!("{kind}::{id:?}").parse().unwrap() };
    let read = policies
        .iter()
        .map(|one| Policy::parse(Some(PolicyId::new(&one.id)), &one.text).unwrap());
    let policies = cedar_policy::PolicySet::from_policies(read).unwrap();
    let account = uid("Account", who.account.as_deref().unwrap_or("anonymous"));
    let groups: HashSet<EntityUid> = who.groups.iter().map(|group| uid("Group", group)).collect();
    let strings = |values: &[String]| {
        let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        format!("[{}]", values.join(","))
    };
    let attributes = HashMap::from([
        ("domain", format!("{:?}", facts.domain)),
        ("tags", strings(&facts.tags)),
        ("trust", facts.trust.to_string()),
        ("covered", facts.covered.to_string()),
        ("owner_present", facts.owner_present.to_string()),
        ("auth", strings(&facts.auth)),
        ("has_error", facts.has_error.to_string()),
        (
            "collections",
            strings(&Tagged.collections_containing(facts)),
        ),
        ("endpoint_hosts", strings(&facts.endpoint_hosts)),
        ("signature", format!("{:?}", facts.signature)),
        ("lifecycle", format!("{:?}", facts.lifecycle)),
    ]);
    let attributes = attributes
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.parse().unwrap()))
        .collect();
    let parents = HashSet::from([uid("Domain", &facts.domain)]);
    let resource = uid("Agent", &facts.id);
    let entities = Entities::from_entities(
        [
            Entity::new(resource.clone(), attributes, parents).unwrap(),
            Entity::new_no_attrs(account.clone(), groups),
        ],
        None,
    );
    let action = uid("Action", action.as_str());
    let request = Request::new(account, action, resource, Context::empty(), None).unwrap();
    let response = Authorizer::new().is_authorized(&request, &policies, &entities.unwrap());
    let failed = response.diagnostics().errors().next().is_some();
    (response.decision() == Decision::Allow, failed)
}

/// Ten thousand decisions, each by the sets and by Cedar itself, clauses about the principal included. Where a policy
/// fails Cedar leaves it out, and the sets deny.
#[test]
fn decisions_by_sets_are_those_of_cedar() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let (mut allowed, mut failures) = (0, 0);
    for _ in 0..500 {
        let count = 1 + numbers.below(8);
        let policies: Vec<PolicyText> = (0..count)
            .map(|number| PolicyText {
                id: format!("p{number}"),
                text: numbers.policy(),
            })
            .collect();
        let set = PolicySet::compile(7, &policies).unwrap_or_else(|faults| panic!("{faults:?}"));
        let set = set.with_collections(Arc::new(Tagged));
        for _ in 0..20 {
            let (facts, who) = (numbers.facts(), numbers.principal());
            let action = numbers.of(&[Action::Discover, Action::Invoke]);
            let matches = set.match_agent(action, &facts);
            let ours = set.decide(action, &who, &matches, &BTreeSet::new());
            let (theirs, failed) = by_cedar(&policies, action, &who, &facts);
            if failed {
                failures += 1;
                assert!(!ours.allowed, "{policies:#?} {facts:?} {who:?}");
            } else {
                assert_eq!(ours.allowed, theirs, "{policies:#?} {facts:?} {who:?}");
            }
            allowed += usize::from(ours.allowed);
        }
    }
    // Neither kind of decision is so rare that the comparison says nothing.
    assert!((500..9_000).contains(&allowed), "{allowed}");
    assert!((50..5_000).contains(&failures), "{failures}");
}
