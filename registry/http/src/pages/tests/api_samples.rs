//! Sample API values with one text in every text member, and the page frame for an admin.

use a2a_registry_core::config::Config;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::pages::frame::{Frame, FrameAccount};

pub const ID: &str = "0193f00d-7000-8000-0000-000000000007";
pub const AT: &str = "2026-01-01T00:00:00Z";

/// Parses an API value from JSON.
pub fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Page frame for a signed-in admin.
pub fn admin_frame(here: &'static str) -> Frame {
    let admin = FrameAccount {
        name: "admin".to_owned(),
        form_token: "token".to_owned(),
        sees_all: true,
        reads_events: true,
        reads_accounts: true,
        administers: true,
        may_register: true,
        curates: true,
    };
    Frame {
        who: Some(admin),
        ..Frame::new(&Config::default(), here)
    }
}

/// Complete open review, of which a list shows a part.
pub fn review(text: &str) -> Value {
    json!({
        "id": ID, "agent": ID, "name": text, "domain": text, "coverage": text, "digest": text,
        "previous": null, "change_class": text, "kind": "admission", "state": "open",
        "signature_verdict": {"state": text, "reason": text, "signatures": []},
        "submitter": text, "assignee": text, "due": AT, "deciders": [text], "approvals_needed": 2,
        "approvals": [{"account": text, "at": AT, "reason": text, "counts": true}],
        "reason": text, "served": null, "created_at": AT, "decided_at": null,
        "card": {"description": text, "provider": text, "changed": [text], "errors": 1, "warnings": 2},
        "card_text": text, "description": text, "auth": [text], "security": [text],
        "skills": [{"id": text, "name": text, "description": text}],
        "interfaces": [{"url": text, "binding": text, "protocol_version": text}],
        "findings": [{"rule": text, "severity": text, "pointer": text, "found": text, "wanted": text,
            "hint": text, "section": text}],
        "diff": {"from": text, "to": text, "change_class": text, "cut": false, "changes": [
            {"pointer": text, "before": text, "after": {text: text}, "class": text, "reason": text}]},
        "domain_proofs": {"state": text, "owner": text, "proofs": [], "enrolled_keys": []},
        "break_glass": {"by": text, "reason": text, "at": AT, "until": AT},
        "sponsor": text, "policies": [{"id": text, "mode": text, "effect": text}],
        "earlier": [{"approved": true, "rule": text, "by": text, "at": AT, "reason": text, "same_content": false}],
        "comments": [{"id": ID, "author": text, "text": text, "at": AT}],
        "reports": [{"reason": text, "at": AT, "reporter": text, "contact": text}],
        "cannot_decide": text,
    })
}

/// Inbox of an account.
pub fn waiting(text: &str) -> Value {
    json!({
        "reviews": [review(text)],
        "news": [{"kind": text, "agent": ID, "review": null, "by": text, "text": text, "at": AT}],
        "domains": [{"domain": text, "expires": AT}],
        "hidden": [{"agent": ID, "since": AT, "hidden_from": {"callers": 3, "of_callers": 7, "truncated": true,
            "anonymous": true, "groups": [text], "policies": [text]}}],
        "failing_hooks": [hook(text)],
        "seen_at": null, "at": AT,
    })
}

/// Hook that fails.
pub fn hook(text: &str) -> Value {
    json!({
        "id": ID, "account": text, "name": text, "format": text, "state": text, "filter": {},
        "target": text, "created_at": AT, "waiting": 1, "dead": 1, "last_success_at": AT,
        "failing_since": AT, "last_error": text,
    })
}

/// Policy set with a shipped policy and a written one.
pub fn policies(text: &str) -> Value {
    let policy = |shipped: bool| {
        json!({
            "id": text, "text": text, "mode": text, "effect": text, "actions": ["discover"], "shipped": shipped
        })
    };
    json!({
        "number": 3, "in_force": 3, "policies": [policy(true), policy(false)], "author": text,
        "reason": text, "created_at": AT,
    })
}

/// Preview of a policy set.
pub fn policy_preview(text: &str) -> Value {
    json!({
        "number": 3, "policies": [{"id": text, "what": text}], "agents": 5, "warnings": [text],
        "changes": [{"action": text, "caller": text, "gained": 9, "lost": 0, "lost_sample": [],
            "gained_sample": [{"id": ID, "name": text, "policies": [text]}]}],
    })
}

/// Dry-run result of a policy.
pub fn dry_run(text: &str) -> Value {
    json!({
        "policy": text, "running": true, "answers": 12, "truncated": true,
        "days": [{"day": "2026-01-01", "denied": 1, "allowed": 2, "resources": 3, "callers": 4}],
        "resources": [{"name": text, "answers": 1}], "callers": [{"name": text, "answers": 1}],
    })
}

/// Ended waiver.
pub fn waiver(text: &str) -> Value {
    json!({
        "id": ID, "policy": text, "agent": ID, "content_digest": text, "is_shown": true, "reason": text,
        "approver": text, "created_at": AT, "expires_at": AT, "ended_at": AT, "ended_by": text,
        "ended_reason": text,
    })
}

pub fn collection(text: &str) -> Value {
    json!({
        "name": text, "description": text, "filter": text, "audience": [text], "owners": [text],
        "created_at": AT, "updated_at": AT,
    })
}

pub fn account(text: &str) -> Value {
    json!({
        "id": ID, "name": text, "role": text, "roles": [text], "groups": [{"origin": text, "name": text}],
        "disabled_at": null, "created_at": AT,
    })
}

pub fn session(text: &str) -> Value {
    json!({
        "id": ID, "account": text, "token": null, "issuer": text, "browser": text, "created_at": AT,
        "last_seen_at": AT, "expires_at": AT,
    })
}

pub fn token(text: &str) -> Value {
    json!({
        "id": ID, "account": text, "name": text, "prefix": text, "scopes": [text], "created_at": AT,
        "expires_at": AT, "last_used_at": AT,
    })
}
