//! Notices: what policies tell those whom they forbid something, as sentences and as members of answers.

use a2a_registry_api::PolicyNotice;
use a2a_registry_policy::{AuthorizationDecision, Policy, PolicySet};

/// Maximum number of notices of one decision: a caller needs to ask somebody, not everybody.
const MAX_NOTICES: usize = 5;

/// The notices of the policies that forbid something, in the order of the set; none of an allowed decision.
pub fn decision_notices(set: &PolicySet, decision: &AuthorizationDecision) -> Vec<PolicyNotice> {
    if decision.allowed {
        return Vec::new();
    }
    let forbids = named_policies(set, &decision.policies);
    let notices = forbids.filter_map(|policy| policy.notice.as_ref());
    notices.take(MAX_NOTICES).map(notice_view).collect()
}

/// Why policies deny something, in sentences for those whom they deny it.
pub fn denial_text(decision: &AuthorizationDecision, notices: &[PolicyNotice]) -> String {
    if decision.policies.is_empty() {
        return "No policy permits it.".to_owned();
    }
    match notices.is_empty() {
        true => "A policy forbids it.".to_owned(),
        false => format!("A policy forbids it. {}", notice_sentences(notices)),
    }
}

/// What policies say, one after the other.
pub fn notice_sentences(notices: &[PolicyNotice]) -> String {
    let sentences: Vec<String> = notices.iter().map(notice_sentence).collect();
    sentences.join(" ")
}

/// Why policies forbid the content of an agent, for its hold: their names, unless they are quiet, and their notices.
pub fn hold_reason(set: &PolicySet, forbidden_by: &[String]) -> String {
    let mut names: Vec<String> = Vec::new();
    for id in forbidden_by {
        let mut forbids = named_policies(set, std::slice::from_ref(id));
        let name = match forbids.any(|policy| policy.is_quiet) {
            true => "a policy".to_owned(),
            false => format!("`{id}`"),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let notices = named_policies(set, forbidden_by).filter_map(|policy| policy.notice.as_ref());
    let notices: Vec<PolicyNotice> = notices.take(MAX_NOTICES).map(notice_view).collect();
    let names = format!("forbidden by {}", names.join(", "));
    match notices.is_empty() {
        true => names,
        // A hold's reason is shown with a full stop behind it.
        false => format!(
            "{names}. {}",
            notice_sentences(&notices).trim_end_matches('.')
        ),
    }
}

fn named_policies<'a>(set: &'a PolicySet, ids: &'a [String]) -> impl Iterator<Item = &'a Policy> {
    let policies = set.policies().iter();
    policies.filter(|policy| ids.contains(&policy.id))
}

fn notice_view(notice: &a2a_registry_policy::PolicyNotice) -> PolicyNotice {
    PolicyNotice {
        policy: notice.policy.clone(),
        message: notice.message.clone(),
        contact: notice.contact.clone(),
    }
}

/// A notice in one or two sentences.
fn notice_sentence(notice: &PolicyNotice) -> String {
    let ended = |text: &str| match text.ends_with(['.', '!', '?']) {
        true => text.to_owned(),
        false => format!("{text}."),
    };
    let message = notice.message.as_deref().map(ended);
    let contact = notice.contact.as_deref();
    let contact = contact.map(|contact| ended(&format!("Contact: {contact}")));
    let texts: Vec<String> = message.into_iter().chain(contact).collect();
    match &notice.policy {
        Some(policy) => format!("`{policy}`: {}", texts.join(" ")),
        None => texts.join(" "),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use a2a_registry_policy::PolicyText;

    use super::*;

    fn compile_test_set() -> PolicySet {
        let policy = |id: &str, annotations: &str| PolicyText {
            id: id.to_owned(),
            text: format!("{annotations}\nforbid (principal, action, resource);"),
        };
        let texts = [
            policy(
                "no-pii",
                "@message(\"Ask risk@corp.example\") @contact(\"https://corp.example\")",
            ),
            policy("secret", "@message(\"Not during the audit.\") @quiet"),
            policy("plain", ""),
        ];
        PolicySet::compile(1, &texts).unwrap()
    }

    fn denied_by(policies: &[&str]) -> AuthorizationDecision {
        AuthorizationDecision {
            allowed: false,
            policies: policies.iter().map(|id| (*id).to_owned()).collect(),
        }
    }

    #[test]
    fn a_denial_tells_what_the_policies_say_and_no_quiet_name() {
        let set = compile_test_set();
        let text = |policies: &[&str]| {
            let decision = denied_by(policies);
            denial_text(&decision, &decision_notices(&set, &decision))
        };
        assert_eq!(text(&[]), "No policy permits it.");
        assert_eq!(text(&["plain"]), "A policy forbids it.");
        assert_eq!(
            text(&["no-pii", "secret"]),
            "A policy forbids it. `no-pii`: Ask risk@corp.example. Contact: https://corp.example. Not during the audit."
        );
    }

    #[test]
    fn a_hold_names_every_policy_that_is_not_quiet() {
        let set = compile_test_set();
        let reason = |policies: &[&str]| hold_reason(&set, &denied_by(policies).policies);
        assert_eq!(reason(&["plain"]), "forbidden by `plain`");
        assert_eq!(
            reason(&["plain", "secret"]),
            "forbidden by `plain`, a policy. Not during the audit"
        );
    }
}
