//! Sets of policies: what is accepted, what is refused and where, and that a decision by sets is Cedar's own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::sync::Arc;

use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::{
    Action, AgentAttributes, CollectionMembership, Effect, MAX_PATTERN_CHARS, MAX_POLICIES,
    MAX_POLICY_BYTES, MAX_TERMS, PolicyError, PolicyMode, PolicySet, PolicyText, Principal,
    PrincipalScope, format_policy, policy_set_cost_errors,
};

#[path = "sets/clauses.rs"]
mod clauses;
#[path = "sets/comparison.rs"]
mod comparison;

fn written(policies: &[(&str, &str)]) -> Vec<PolicyText> {
    let one = |(id, text): &(&str, &str)| PolicyText {
        id: (*id).to_owned(),
        text: (*text).to_owned(),
    };
    policies.iter().map(one).collect()
}

fn set(policies: &[(&str, &str)]) -> PolicySet {
    PolicySet::compile(1, &written(policies)).unwrap()
}

fn faults(policies: &[(&str, &str)]) -> Vec<PolicyError> {
    PolicySet::compile(1, &written(policies)).unwrap_err()
}

fn agent() -> AgentAttributes {
    AgentAttributes {
        id: "a1".into(),
        domain: "agents.example.com".into(),
        labels: vec!["env=prod".into()],
        tags: vec!["finance".into()],
        trust: -1,
        signature: "unsigned".into(),
        lifecycle: "approved".into(),
        liveness: "fresh".into(),
        visibility: "public".into(),
        ..AgentAttributes::default()
    }
}

fn member(account: &str, groups: &[&str]) -> Principal {
    Principal {
        account: Some(account.to_owned()),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
    }
}

/// A collection for each tag.
#[derive(Debug)]
struct Tagged;

impl CollectionMembership for Tagged {
    fn collections_containing(&self, agent: &AgentAttributes) -> Vec<String> {
        agent.tags.iter().map(|tag| format!("c-{tag}")).collect()
    }
}

/// Collections are a fact of the set, not of the agent; a policy that is off does not ask for them.
#[test]
fn a_set_knows_whether_it_asks_about_collections() {
    let asking = "permit (principal, action, resource) when { resource.collections.contains(\"c-finance\") };";
    let off = format!("@mode(\"off\") {asking}");
    let other =
        "permit (principal, action, resource) when { resource.tags.contains(\"collections\") };";
    for (text, asks) in [(asking, true), (&off, false), (other, false)] {
        assert_eq!(set(&[("one", text)]).uses_collections(), asks, "{text}");
    }
    let finds = |set: &PolicySet| set.match_agent(Action::Discover, &agent()).matching.len();
    let judged = set(&[("one", asking)]).with_collections(Arc::new(Tagged));
    assert_eq!((finds(&set(&[("one", asking)])), finds(&judged)), (0, 1));
}

#[test]
fn a_policy_says_what_it_does_for_whom_and_whether_it_acts() {
    let set = set(&[
        ("everybody", "permit (principal, action, resource);"),
        (
            "sponsored",
            "@mode(\"dry_run\")\nforbid (principal, action == Action::\"discover\", resource) when { !resource.owner_present };",
        ),
        (
            "team",
            "@mode(\"off\") permit (principal in Group::\"team\", action in [Action::\"invoke\", Action::\"discover\"], resource in Domain::\"c\");",
        ),
        (
            "one",
            "permit (principal == Account::\"ann\", action == Action::\"invoke\", resource is Agent);",
        ),
    ]);
    let [everybody, sponsored, team, one] = set.policies() else {
        panic!("{set:?}");
    };
    assert_eq!(everybody.actions, Action::DEFAULTS);
    assert!(!everybody.is_conditional && everybody.mode == PolicyMode::Enforce);
    assert_eq!(sponsored.mode, PolicyMode::DryRun);
    assert_eq!(sponsored.effect, Effect::Forbid);
    assert!(sponsored.is_conditional);
    assert_eq!(team.scope, PrincipalScope::Group("team".into()));
    assert_eq!(team.actions, [Action::Discover, Action::Invoke]);
    assert!(team.is_conditional && team.mode == PolicyMode::Off);
    assert_eq!(one.scope, PrincipalScope::Account("ann".into()));
    assert!(
        !set.is_independent_of_resource(Action::Discover)
            && !set.is_independent_of_resource(Action::Invoke)
    );
}

#[test]
fn a_condition_on_what_is_done_is_refused_with_the_policy_and_its_first_line() {
    for (variable, condition) in [
        ("action", "action == Action::\"discover\""),
        ("context", "context has ip"),
    ] {
        let text = format!(
            "permit (principal, action == Action::\"discover\", resource)\nwhen {{ {condition} }};"
        );
        let faults = faults(&[
            ("fine", "permit (principal, action, resource);"),
            ("p-1", &text),
        ]);
        let fault = faults.first().unwrap();
        assert_eq!(fault.policy, "p-1");
        assert_eq!(fault.line, 1);
        assert!(
            fault.excerpt.starts_with("permit (principal, action =="),
            "{fault:?}"
        );
        assert!(
            fault.message.contains(&format!("`{variable}`")),
            "{fault:?}"
        );
    }
    // A text that only looks like a variable is none.
    set(&[(
        "p",
        "permit (principal, action == Action::\"invoke\", resource) when { resource.provider == \"principal\" };",
    )]);
}

#[test]
fn a_fault_is_told_with_its_line_and_column() {
    let broken = faults(&[(
        "broken",
        "permit (principal, action, resource)\n  when { resource. };",
    )]);
    assert_eq!(broken.len(), 1);
    assert_eq!((broken[0].line, broken[0].policy.as_str()), (2, "broken"));
    let unknown = faults(&[(
        "unknown",
        "forbid (principal, action == Action::\"discover\", resource)\nwhen {\n  resource.colour == \"red\" };",
    )]);
    assert_eq!(unknown.len(), 1, "{unknown:?}");
    assert_eq!(unknown[0].line, 3, "{unknown:?}");
    assert!(unknown[0].message.contains("colour"), "{unknown:?}");
    assert!(
        unknown[0].excerpt.contains("resource.colour"),
        "{unknown:?}"
    );
    let many = faults(&[
        (
            "kind",
            "permit (principal, action == Action::\"discover\", resource) when { resource.trust == \"L1\" };",
        ),
        (
            "mode",
            "@mode(\"maybe\") permit (principal, action, resource);",
        ),
        (
            "action",
            "permit (principal, action == Action::\"delete\", resource);",
        ),
        (
            "two",
            "permit (principal, action, resource); permit (principal, action, resource);",
        ),
        (
            "slot",
            "permit (principal == ?principal, action, resource);",
        ),
        ("Big", "permit (principal, action, resource);"),
    ]);
    for id in ["kind", "mode", "action", "two", "slot", "Big"] {
        assert!(
            many.iter().any(|fault| fault.policy == id),
            "{id}: {many:?}"
        );
    }
}

#[test]
fn a_set_has_a_thousand_policies_of_64_kib_and_no_more() {
    let of = |count: usize| -> Vec<PolicyText> {
        let one = |number| PolicyText {
            id: format!("p{number}"),
            text: "permit (principal, action == Action::\"invoke\", resource);".into(),
        };
        (0..count).map(one).collect()
    };
    assert!(PolicySet::compile(1, &of(MAX_POLICIES)).is_ok());
    let faults_of = |written: &[PolicyText]| PolicySet::compile(1, written).unwrap_err();
    let beyond = faults_of(&of(MAX_POLICIES + 1));
    assert_eq!(beyond[0].policy, format!("p{MAX_POLICIES}"));
    let padded = |bytes: usize| {
        let text = "permit (principal, action, resource);";
        format!("{text}{}", " ".repeat(bytes - text.len()))
    };
    set(&[("p", &padded(MAX_POLICY_BYTES))]);
    assert_eq!(
        faults(&[("p", &padded(MAX_POLICY_BYTES + 1))])[0].policy,
        "p"
    );
    let twice = faults(&[
        ("p", "permit (principal, action, resource);"),
        ("p", "forbid (principal, action, resource);"),
    ]);
    assert!(twice[0].message.contains("identifier"), "{twice:?}");
}

#[test]
fn nothing_is_allowed_without_a_permit_and_a_forbid_wins() {
    let facts = agent();
    let decided = |policies: &[(&str, &str)], waived: &[u16]| {
        let set = set(policies);
        let matches = set.match_agent(Action::Discover, &facts);
        let waived: BTreeSet<u16> = waived.iter().copied().collect();
        let verdict = set.decide(Action::Discover, &Principal::default(), &matches, &waived);
        (verdict.allowed, verdict.policies)
    };
    let permit = ("open", "permit (principal, action, resource);");
    let forbid = (
        "finance",
        "forbid (principal, action == Action::\"discover\", resource) when { resource.tags.contains(\"finance\") };",
    );
    assert_eq!(decided(&[], &[]), (false, vec![]));
    assert_eq!(decided(&[permit], &[]), (true, vec!["open".into()]));
    assert_eq!(
        decided(&[permit, forbid], &[]),
        (false, vec!["finance".into()])
    );
    assert_eq!(
        decided(&[permit, forbid], &[1]),
        (true, vec!["open".into()])
    );
    for mode in ["off", "dry_run"] {
        let quiet = format!("@mode(\"{mode}\") {}", forbid.1);
        assert_eq!(
            decided(&[permit, ("finance", &quiet)], &[]),
            (true, vec!["open".into()])
        );
    }
}

/// A condition that cannot be evaluated denies: a number too large for Cedar is one that validation lets pass.
#[test]
fn a_policy_that_fails_denies_whoever_its_scope_holds() {
    let set = set(&[
        ("open", "permit (principal, action, resource);"),
        (
            "large",
            "permit (principal in Group::\"team\", action == Action::\"discover\", resource) when { resource.trust * 4611686018427387904 > 0 };",
        ),
    ]);
    let facts = AgentAttributes {
        trust: 4,
        ..agent()
    };
    let matches = set.match_agent(Action::Discover, &facts);
    assert_eq!(matches.failed, BTreeSet::from([1]));
    let allowed = |who: &Principal| {
        set.decide(Action::Discover, who, &matches, &BTreeSet::new())
            .allowed
    };
    assert!(allowed(&Principal::default()));
    assert!(allowed(&member("ann", &[])));
    assert!(!allowed(&member("ann", &["team"])));
}

/// Groups of one name are two, if two identity providers tell of them.
#[test]
fn a_group_of_another_issuer_is_another_group() {
    let here = Principal::format_group_id(None, "finance");
    let there = Principal::format_group_id(Some("https://idp.example.com"), "finance");
    let scope = PrincipalScope::Group(here.clone());
    assert!(scope.contains(&member("ann", &[&here])));
    assert!(!scope.contains(&member("eve", &[&there])));
    assert!(!scope.contains(&Principal::default()));
    // An account of the same name is no group, and nobody is anonymous by name.
    assert!(!scope.contains(&member("finance", &[])));
    let anonymous = PrincipalScope::Account("anonymous".into());
    assert!(anonymous.contains(&Principal::default()));
    assert!(!anonymous.contains(&member("anonymous", &[])));
}

#[test]
fn a_policy_is_written_in_one_form() {
    let tidy = format_policy("permit(principal,action,resource)when{resource.trust>1};").unwrap();
    assert!(tidy.contains("when { resource.trust > 1 };"), "{tidy}");
    assert_eq!(format_policy(&tidy).unwrap(), tidy);
    assert!(format_policy("permit (").is_err());
}

#[test]
fn every_template_is_a_policy_that_says_what_it_does() {
    for (name, text) in a2a_registry_policy::TEMPLATES {
        let written = PolicyText {
            id: name.to_owned(),
            text: text.to_owned(),
        };
        PolicySet::compile(1, &[written]).unwrap();
        assert!(text.starts_with("// "), "{name}");
    }
}

/// A policy that names no action admits and registers nothing, and is checked for what it is about.
#[test]
fn a_policy_without_an_action_is_about_finding_and_calling() {
    let set = set(&[(
        "all",
        "permit (principal, action, resource) when { resource.tags.contains(\"x\") };",
    )]);
    let about: Vec<_> = Action::ALL
        .into_iter()
        .filter(|action| set.policies_for_action(*action).next().is_some())
        .collect();
    assert_eq!(about, [Action::Discover, Action::Invoke]);
    let matches = set.match_domain("example.com");
    let verdict = set.decide(
        Action::Register,
        &Principal::default(),
        &matches,
        &BTreeSet::new(),
    );
    assert!(!verdict.allowed && verdict.policies.is_empty());
}

#[test]
fn a_condition_about_a_domain_knows_its_name_only() {
    let named = |condition: &str| {
        format!(
            "permit (principal, action == Action::\"register\", resource) when {{ {condition} }};"
        )
    };
    let set = set(&[("own", &named("resource.name like \"*.example.com\""))]);
    let allowed = |name: &str| {
        let matches = set.match_domain(name);
        set.decide(
            Action::Register,
            &Principal::default(),
            &matches,
            &BTreeSet::new(),
        )
        .allowed
    };
    assert!(allowed("a.example.com") && !allowed("example.org"));
    let written = PolicyText {
        id: "tags".into(),
        text: named("resource.tags.contains(\"x\")"),
    };
    assert!(PolicySet::compile(1, &[written]).is_err());
}

#[test]
fn shipped_policies_stand_beside_every_set_until_one_of_their_name_replaces_them() {
    let text = |id: &str, effect: &str| PolicyText {
        id: id.into(),
        text: format!("{effect} (principal, action == Action::\"register\", resource);"),
    };
    let shipped = [text("registration", "permit")];
    let allowed = |written: &[PolicyText]| {
        let set =
            PolicySet::compile_with_defaults(1, written, &shipped, Timestamp::default()).unwrap();
        let matches = set.match_domain("example.com");
        set.decide(
            Action::Register,
            &Principal::default(),
            &matches,
            &BTreeSet::new(),
        )
        .allowed
    };
    assert!(allowed(&[]) && allowed(&[text("other", "permit")]));
    assert!(!allowed(&[text("registration", "forbid")]) && !allowed(&[text("other", "forbid")]));
}

/// A dry run tells what a policy would change by itself, and changes nothing.
#[test]
fn a_policy_on_a_dry_run_tells_what_it_would_change() {
    let set = set(&[
        (
            "all",
            "permit (principal, action, resource) unless { resource.tags.contains(\"closed\") };",
        ),
        (
            "hide",
            "@mode(\"dry_run\") forbid (principal in Group::\"a\", action, resource) when { resource.tags.contains(\"x\") };",
        ),
        (
            "open",
            "@mode(\"dry_run\") permit (principal, action, resource);",
        ),
    ]);
    let tagged = |tag: &str| AgentAttributes {
        tags: vec![tag.into()],
        ..AgentAttributes::default()
    };
    let member = Principal {
        account: Some("ann".into()),
        groups: vec!["a".into()],
    };
    let asked = |who: &Principal, facts: &AgentAttributes, waived: &BTreeSet<u16>| {
        let matches = set.match_agent(Action::Discover, facts);
        let verdict = set.decide(Action::Discover, who, &matches, waived);
        (
            verdict.allowed,
            set.decision_changing_dry_runs(Action::Discover, who, &matches, waived, &verdict),
        )
    };
    let none = BTreeSet::new();
    assert_eq!(asked(&member, &tagged("x"), &none), (true, vec![1]));
    assert_eq!(
        asked(&member, &tagged("x"), &BTreeSet::from([1])),
        (true, vec![])
    );
    assert_eq!(
        asked(&Principal::default(), &tagged("x"), &none),
        (true, vec![])
    );
    assert_eq!(asked(&member, &tagged("closed"), &none), (false, vec![2]));
}

/// What is read, asked, formatted and dropped by recursion ends well, however deep somebody nests it, on the stack that a
/// thread of the server has.
#[test]
fn a_policy_is_nested_as_deep_as_is_read_and_no_deeper() {
    let ends_well = |nested: &str| {
        let text = format!("permit (principal, action, resource) when {{ {nested} }};");
        let small = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
        let read = small.spawn(move || {
            let formatted = format_policy(&text);
            let read = PolicySet::compile(1, &written(&[("deep", &text)]));
            let read = read.map(|set| set.match_agent(Action::Discover, &agent()));
            (formatted.is_ok(), read)
        });
        read.unwrap().join().unwrap()
    };
    for (open, leaf, close, deepest) in [
        ("(", "true", ")", 99),
        ("true && ", "true", "", 250),
        ("true || ", "true", "", 250),
        ("if true then ", "true", " else true", 500),
        ("", "resource.trust > 1", " + 1", 498),
        ("", "resource", ".trust", 500),
        ("[", "true", "]", 99),
        ("{\"a\":", "true", "}", 99),
    ] {
        for depth in [10, deepest, deepest + 1] {
            let nested = format!("{}{leaf}{}", open.repeat(depth), close.repeat(depth));
            let (_, read) = ends_well(&nested);
            let too_deep = read
                .as_ref()
                .err()
                .is_some_and(|faults| faults[0].message.contains("nested brackets"));
            assert_eq!(too_deep, depth > deepest, "{open}{close} {depth}: {read:?}");
        }
        let most = 60_000 / (open.len() + close.len());
        let (formatted, read) = ends_well(&open.repeat(most));
        assert!(
            close.len() > open.len() || (!formatted && read.is_err()),
            "{open}"
        );
    }
}

/// What a set permits to somebody, and what it allows whatever else it says, is read from its scopes alone.
#[test]
fn a_set_knows_whether_it_permits_and_whether_it_allows_all() {
    let open = "permit (principal, action, resource);";
    let when = "permit (principal, action, resource) when { resource.verified };";
    let team = "permit (principal in Group::\"team\", action, resource);";
    let forbid = "forbid (principal in Group::\"team\", action, resource);";
    let calls = "forbid (principal, action == Action::\"invoke\", resource);";
    let tried = format!("@mode(\"dry_run\") {open}");
    let off = format!("@mode(\"off\") {forbid}");
    let nobody = "permit (principal == Group::\"team\", action, resource);";
    for (texts, permits, allows_all) in [
        (&[] as &[&str], false, false),
        (&[open], true, true),
        (&[when], true, false),
        (&[open, when], true, false),
        (&[team], true, false),
        (&[open, team, calls, &off], true, true),
        (&[open, forbid], true, false),
        (&[forbid], false, false),
        (&[&tried], false, false),
        (&[nobody], false, false),
    ] {
        let named: Vec<(String, &str)> = (0..)
            .zip(texts)
            .map(|(number, text): (u32, _)| (format!("p{number}"), *text))
            .collect();
        let named: Vec<(&str, &str)> = named.iter().map(|(id, text)| (&**id, *text)).collect();
        let set = set(&named);
        assert_eq!(set.may_permit(Action::Discover), permits, "{texts:?}");
        assert_eq!(
            set.always_allows_action(Action::Discover),
            allows_all,
            "{texts:?}"
        );
    }
}

/// The template for people who are signed in hides agents from nobody else, and from everybody without a permit beside it.
#[test]
fn only_who_is_signed_in_finds_agents_by_the_template() {
    let template = |wanted: &str| {
        let found = a2a_registry_policy::TEMPLATES
            .iter()
            .find(|(name, _)| *name == wanted);
        *found.unwrap()
    };
    let (signed_in, everybody) = (template("signed-in-only"), template("everybody"));
    for (policies, expected) in [(vec![signed_in, everybody], true), (vec![signed_in], false)] {
        let set = set(&policies);
        for action in Action::DEFAULTS {
            let matches = set.match_agent(action, &agent());
            let may = |who: &Principal| set.decide(action, who, &matches, &BTreeSet::new()).allowed;
            assert_eq!(may(&member("ann", &[])), expected);
            assert!(!may(&Principal::default()));
        }
    }
}

/// What the author of a card writes makes no pattern take long.
#[test]
fn a_pattern_sees_the_beginning_of_a_text() {
    let set = set(&[(
        "end",
        "permit (principal, action, resource) when { resource.provider like \"*end\" };",
    )]);
    for (length, matches) in [(253, 1), (254, 0)] {
        let facts = AgentAttributes {
            provider: "é".repeat(length) + "end",
            ..agent()
        };
        let found = set.match_agent(Action::Discover, &facts);
        assert_eq!((found.matching.len(), found.failed.len()), (matches, 0));
    }
}

/// A set is refused for what it costs, up to the last character; the policy that is too much is named.
#[test]
fn what_a_set_costs_is_bounded() {
    let of =
        |condition: String| format!("permit (principal, action, resource) when {{ {condition} }};");
    let patterns = |chars: usize| of(format!("resource.domain like \"{}\"", "x".repeat(chars)));
    let half = MAX_PATTERN_CHARS / 2;
    assert_eq!(
        policy_set_cost_errors(&written(&[("a", &patterns(half)), ("b", &patterns(half))])),
        []
    );
    let faults = policy_set_cost_errors(&written(&[
        ("a", &patterns(half)),
        ("b", &patterns(half + 1)),
        ("c", "permit (principal, action, resource);"),
    ]));
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].policy, "b");
    // Another text may be as long as a policy is.
    let long = of(format!(
        "resource.domain == \"{}\"",
        "x".repeat(MAX_PATTERN_CHARS + 1)
    ));
    assert_eq!(policy_set_cost_errors(&written(&[("a", &long)])), []);
    // Eight words stand around the numbers.
    let list = |terms: usize| {
        let numbers = vec!["1"; terms - 8].join(",");
        of(format!("[{numbers}].contains(resource.trust)"))
    };
    let most = list(MAX_TERMS / 5);
    let mut lists: Vec<(&str, &str)> = ["a", "b", "c", "d", "e"].map(|id| (id, &*most)).to_vec();
    assert_eq!(policy_set_cost_errors(&written(&lists)), []);
    lists.push(("last", "permit (principal, action, resource);"));
    let faults = policy_set_cost_errors(&written(&lists));
    assert_eq!(faults[0].policy, "last", "{faults:?}");
}
