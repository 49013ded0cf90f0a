//! Clauses about the principal, dates and ages.

use a2a_registry_policy::{AgentAge, EndpointSuffixes, MAX_AGE_COMPARISONS};

use super::*;

fn allowed(set: &PolicySet, action: Action, who: &Principal, facts: &AgentAttributes) -> bool {
    let matches = set.match_agent(action, facts);
    set.decide(action, who, &matches, &BTreeSet::new()).allowed
}

const OPEN: (&str, &str) = ("open", "permit (principal, action, resource);");

/// An agent with endpoints outside and personal data is found by whoever is in both groups, and by nobody else.
#[test]
fn exceptions_for_two_groups_combine() {
    let set = set(&[
        OPEN,
        (
            "outside",
            "forbid (principal, action, resource) unless { resource.endpoint_suffixes_of_all.contains(\"corp.example\") } unless { principal in Group::\"x\" };",
        ),
        (
            "pii",
            "forbid (principal, action, resource) when { !(principal in Group::\"y\") } when { resource.labels.contains(\"data=pii\") };",
        ),
    ]);
    let facts = |outside: bool, pii: bool| {
        let host = match outside {
            true => "a.partner.test",
            false => "a.corp.example",
        };
        let labels: &[&str] = if pii { &["data=pii"] } else { &[] };
        AgentAttributes {
            endpoint_suffixes: EndpointSuffixes::from_hosts(&[host.to_owned()]),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            ..agent()
        }
    };
    for outside in [false, true] {
        for pii in [false, true] {
            for (who, in_x, in_y) in [
                (Principal::default(), false, false),
                (member("ann", &[]), false, false),
                (member("ann", &["x"]), true, false),
                (member("ann", &["y"]), false, true),
                (member("ann", &["x", "y"]), true, true),
            ] {
                let expected = (!outside || in_x) && (!pii || in_y);
                let finds = allowed(&set, Action::Discover, &who, &facts(outside, pii));
                assert_eq!(finds, expected, "{who:?} {outside} {pii}");
            }
        }
    }
}

/// Clauses about the principal make no policy conditional: it matches every agent without an evaluation.
#[test]
fn a_clause_about_the_principal_is_part_of_the_scope() {
    let set = set(&[(
        "staff",
        "permit (principal, action, resource) when { principal in Group::\"a\" || principal == Account::\"ann\" } unless { principal in Group::\"left\" };",
    )]);
    assert!(set.is_independent_of_resource(Action::Discover));
    assert!(set.depends_on_principal(Action::Discover));
    assert!(!set.always_allows_action(Action::Discover));
    let mut named = BTreeSet::new();
    set.policies()[0].scope.collect_named(&mut named);
    assert_eq!(named.len(), 3, "{named:?}");
    for (who, expected) in [
        (member("ann", &[]), true),
        (member("bob", &["a"]), true),
        (member("bob", &["a", "left"]), false),
        (member("bob", &[]), false),
        (Principal::default(), false),
    ] {
        assert_eq!(
            allowed(&set, Action::Discover, &who, &agent()),
            expected,
            "{who:?}"
        );
    }
    let everybody = "permit (principal, action, resource) when { true } unless { false };";
    let everybody = super::set(&[("all", everybody)]);
    assert_eq!(everybody.policies()[0].scope, PrincipalScope::Everybody);
}

#[test]
fn a_mixed_clause_is_refused_with_a_rewrite_that_is_accepted() {
    for (clause, rewrite) in [
        (
            "when { principal in Group::\"a\" && resource.verified }",
            "`when { principal in Group::\"a\" } when { resource.verified }`",
        ),
        (
            "when { resource.verified && principal in Group::\"a\" && resource.trust > 1 }",
            "`when { principal in Group::\"a\" } when { resource.verified && ",
        ),
        (
            "unless { principal in Group::\"a\" || resource.verified }",
            "`unless { principal in Group::\"a\" } unless { resource.verified }`",
        ),
        (
            "unless { principal in Group::\"a\" && resource.verified }",
            "two policies, one with `unless { principal in Group::\"a\" }` and one with `unless { resource.verified }`",
        ),
        (
            "when { if resource.verified then principal == Account::\"x\" else false }",
            "`when { principal … } when { resource … }`",
        ),
        (
            "when { (principal in Group::\"a\" || resource.verified) && resource.has_error }",
            "or two policies",
        ),
    ] {
        let text = format!("forbid (principal, action, resource) {clause};");
        let faults = faults(&[OPEN, ("mixed", &text)]);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].policy, "mixed");
        assert!(faults[0].message.contains(rewrite), "{:?}", faults[0]);
    }
    for rewritten in [
        "when { principal in Group::\"a\" } when { resource.verified }",
        "unless { principal in Group::\"a\" } unless { resource.verified }",
    ] {
        let text = format!("forbid (principal, action, resource) {rewritten};");
        super::set(&[("separate", &text)]);
    }
    // What needs more than the caller's name and groups cannot be asked for.
    for clause in ["principal.name == \"ann\"", "principal has name"] {
        let text = format!("forbid (principal, action, resource) when {{ {clause} }};");
        let faults = faults(&[("odd", &text)]);
        assert!(
            faults[0].message.contains("principal in Group"),
            "{faults:?}"
        );
    }
}

/// A condition that fails denies to those whom the policy is about, wherever its clause about them stands.
#[test]
fn a_policy_that_fails_denies_those_of_its_clauses() {
    let fails = "when { resource.trust * 4611686018427387904 > 0 }";
    let about = "unless { principal in Group::\"free\" }";
    let facts = AgentAttributes {
        trust: 4,
        ..agent()
    };
    for clauses in [format!("{fails} {about}"), format!("{about} {fails}")] {
        let text = format!("forbid (principal, action, resource) {clauses};");
        let set = set(&[OPEN, ("large", &text)]);
        assert!(allowed(
            &set,
            Action::Discover,
            &member("ann", &["free"]),
            &facts
        ));
        assert!(!allowed(
            &set,
            Action::Discover,
            &member("ann", &[]),
            &facts
        ));
    }
}

#[test]
fn an_age_is_compared_with_numbers_alone() {
    let policy =
        |condition: &str| format!("forbid (principal, action, resource) when {{ {condition} }};");
    for condition in [
        "resource.days_since_fetched > 7",
        "7 < resource.days_since_fetched && resource.verified",
        "!(resource.days_since_fetched <= 7)",
        "if resource.verified then resource[\"days_since_fetched\"] >= 8 else false",
    ] {
        let set = set(&[("old", &policy(condition))]);
        let days: Vec<i64> = set.age_thresholds().iter().map(|one| one.days).collect();
        assert!(days.contains(&8), "{condition}: {days:?}");
        assert!(
            set.age_thresholds()
                .iter()
                .all(|one| one.age == AgentAge::Fetched)
        );
    }
    for condition in [
        "resource.days_since_fetched + 1 > 7",
        "resource.days_since_fetched > resource.days_since_changed",
        "[1, 2].contains(resource.days_since_fetched)",
    ] {
        let faults = faults(&[("odd", &policy(condition))]);
        assert!(
            faults[0].message.contains("compared with a number"),
            "{faults:?}"
        );
    }
    let many = |count: usize| {
        let comparisons: Vec<String> = (0..count)
            .map(|number| format!("resource.days_since_changed == {}", 2 * number + 1))
            .collect();
        policy(&comparisons.join(" || "))
    };
    super::set(&[("most", &many(MAX_AGE_COMPARISONS))]);
    let faults = faults(&[("more", &many(MAX_AGE_COMPARISONS + 1))]);
    assert_eq!(faults[0].policy, "more");
}

#[test]
fn an_age_decides_by_whole_days_and_minus_one_stands_for_never() {
    let set = set(&[
        OPEN,
        (
            "old",
            "forbid (principal, action, resource) when { resource.days_since_answered > 7 };",
        ),
        (
            "never",
            "forbid (principal, action == Action::\"invoke\", resource) when { resource.days_since_answered == -1 };",
        ),
    ]);
    for (days, finds, calls) in [(-1, true, false), (7, true, true), (8, false, false)] {
        let facts = AgentAttributes {
            ages: AgentAge::ALL.map(|age| if age == AgentAge::Answered { days } else { 0 }),
            ..agent()
        };
        let decided = [Action::Discover, Action::Invoke]
            .map(|action| allowed(&set, action, &Principal::default(), &facts));
        assert_eq!(decided, [finds, calls], "{days}");
    }
}

#[test]
fn a_policy_is_off_outside_its_dates_and_says_when_that_changes() {
    let texts = written(&[
        OPEN,
        (
            "freeze",
            "@from(\"2026-12-15\") @until(\"2027-01-05\") forbid (principal, action, resource) when { resource.collections.contains(\"c-finance\") };",
        ),
    ]);
    let compiled = |moment: &str| {
        let moment = moment.parse().unwrap();
        let set = PolicySet::compile_with_defaults(1, &texts, &[], moment).unwrap();
        set.with_collections(Arc::new(Tagged))
    };
    for (moment, finds) in [
        ("2026-12-14T23:59:59Z", true),
        ("2026-12-15T00:00:00Z", false),
        ("2027-01-04T23:59:59Z", false),
        ("2027-01-05T00:00:00Z", true),
    ] {
        let set = compiled(moment);
        let finds_it = allowed(&set, Action::Discover, &Principal::default(), &agent());
        assert_eq!(finds_it, finds, "{moment}");
        // Collections are kept with the set before the day on which it needs them.
        assert!(set.uses_collections() && set.has_dates());
    }
    let set = compiled("2026-12-01T00:00:00Z");
    let moment = |text: &str| text.parse::<Timestamp>().unwrap();
    let begin = moment("2026-12-15T00:00:00Z");
    assert_eq!(set.next_date(moment("2026-12-01T00:00:00Z")), Some(begin));
    assert_eq!(set.next_date(begin), Some(moment("2027-01-05T00:00:00Z")));
    assert_eq!(set.next_date(moment("2027-01-05T00:00:00Z")), None);
    let changes = |after, by| set.date_changes(moment(after), moment(by));
    assert!(changes("2026-12-01T00:00:00Z", "2026-12-14T00:00:00Z").is_empty());
    assert_eq!(
        changes("2026-12-01T00:00:00Z", "2026-12-15T00:00:00Z"),
        ["`freeze` begins"]
    );
    assert_eq!(
        changes("2026-12-15T00:00:00Z", "2027-02-01T00:00:00Z"),
        ["`freeze` ends"]
    );
}

#[test]
fn annotations_of_a_new_set_are_known_and_dates_are_dates() {
    let errors = |annotations: &str| {
        let text = format!("{annotations}\npermit (principal, action, resource);");
        let errors = set(&[("p", &text)]).new_policy_errors();
        errors
            .iter()
            .map(|error| (error.line, error.message.clone()))
            .collect::<Vec<_>>()
    };
    assert!(errors("@mode(\"dry_run\") @from(\"2026-12-15\") @until(\"2026-12-16\")").is_empty());
    assert!(errors("@message(\"Ask risk\") @contact(\"risk\") @quiet").is_empty());
    let unknown = errors("@mode(\"enforce\")\n@untill(\"2026-12-15\")");
    assert_eq!(unknown.len(), 1);
    assert_eq!(unknown[0].0, 2);
    assert!(unknown[0].1.contains("`@untill`"), "{unknown:?}");
    for wrong in [
        "@from(\"15.12.2026\")",
        "@from(\"2026-12-15T10:00:00Z\")",
        "@until",
        "@from(\"2026-12-15\") @until(\"2026-12-15\")",
    ] {
        assert_eq!(errors(wrong).len(), 1, "{wrong}");
    }
}

/// The policies of the documentation, together as one set.
#[test]
fn the_policies_of_the_documentation_are_a_set() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policies");
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "cedar") {
            texts.push(PolicyText {
                id: path.file_stem().unwrap().to_str().unwrap().to_owned(),
                text: std::fs::read_to_string(&path).unwrap(),
            });
        }
    }
    assert_eq!(
        texts.len(),
        12,
        "ten policies, one of them in two files, and the permit"
    );
    let set = PolicySet::compile(1, &texts).unwrap_or_else(|faults| panic!("{faults:?}"));
    assert_eq!(set.new_policy_errors(), []);
    assert_eq!(policy_set_cost_errors(&texts), []);
}
