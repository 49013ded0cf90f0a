//! Annotations: what a policy tells those whom it forbids something.
#![allow(clippy::unwrap_used)]

use a2a_registry_policy::{MAX_MESSAGE_CHARS, PolicyNotice, PolicySet, PolicyText};

fn compile(annotations: &str) -> PolicySet {
    let text = format!("{annotations}\nforbid (principal, action, resource);");
    let policy = PolicyText {
        id: "no-pii".to_owned(),
        text,
    };
    PolicySet::compile(1, &[policy]).unwrap()
}

#[test]
fn a_notice_has_the_name_unless_the_policy_is_quiet() {
    let notice = |annotations: &str| compile(annotations).policies()[0].notice.clone();
    assert_eq!(notice(""), None);
    assert_eq!(notice("@quiet"), None);
    let message = Some("Ask risk@corp.example.".to_owned());
    let named = PolicyNotice {
        policy: Some("no-pii".to_owned()),
        message: message.clone(),
        contact: None,
    };
    assert_eq!(
        notice("@message(\" Ask risk@corp.example. \")"),
        Some(named)
    );
    let unnamed = PolicyNotice {
        policy: None,
        message,
        contact: Some("https://corp.example/risk".to_owned()),
    };
    let quiet =
        "@message(\"Ask risk@corp.example.\") @contact(\"https://corp.example/risk\") @quiet";
    assert_eq!(notice(quiet), Some(unnamed));
}

#[test]
fn values_are_checked_in_new_sets_and_cut_in_stored_ones() {
    let at_bound = format!("@message(\"{}\")", "x".repeat(MAX_MESSAGE_CHARS));
    assert_eq!(compile(&at_bound).new_policy_errors(), []);
    let beyond = compile(&format!(
        "@message(\"{}\")",
        "x".repeat(MAX_MESSAGE_CHARS + 1)
    ));
    let errors = beyond.new_policy_errors();
    assert!(errors[0].to_string().contains("`@message`"), "{errors:?}");
    let kept = beyond.policies()[0].notice.clone().unwrap();
    assert_eq!(kept.message.unwrap().len(), MAX_MESSAGE_CHARS);
    for invalid in [
        "@contact(\"\")",
        "@contact(\"a\\nb\")",
        "@quiet(\"yes\")",
        "@message",
    ] {
        assert_eq!(compile(invalid).new_policy_errors().len(), 1, "{invalid}");
    }
}
