//! Rules for texts that look like secrets. A finding never repeats the text.

use serde_json::Value;
use url::Url;

use super::target::LintTarget;
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::json_scan::MAX_DEPTH;
use crate::member_reader::fold_name;
use crate::rule::Rule;

/// Minimum length of a text that is searched for a key or token.
const MIN_SECRET_TEXT_BYTES: usize = 16;

/// Minimum length of a text that counts as a secret because of its member's name.
const MIN_NAMED_SECRET_BYTES: usize = 8;

const PEM_HEADER: &str = "-----BEGIN";

/// Prefixes and minimum lengths of the keys and tokens of well-known services.
const KEY_PREFIXES: [(&str, usize); 13] = [
    ("sk-", 20),
    ("sk_live_", 20),
    ("rk_live_", 20),
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 35),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghs_", 30),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
];

/// Length of the shortest JSON Web Token; real ones, with header, payload and signature, are longer.
const MIN_JWT_BYTES: usize = 60;

/// Names of members that contain secrets, folded.
const SECRET_NAMES: [&str; 12] = [
    "apikey",
    "accesskey",
    "accesstoken",
    "authtoken",
    "bearertoken",
    "clientsecret",
    "credentials",
    "password",
    "privatekey",
    "refreshtoken",
    "secret",
    "secretkey",
];

/// Searches every text of the document, except its signatures, for secrets.
pub(super) fn check_secrets(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    search_secrets(target.document, &JsonPointer::Root, 0, rule, out);
}

/// Searches a value and everything in it. The reader has limited the depth; this limit protects the stack in any case.
fn search_secrets(
    value: &Value,
    pointer: &JsonPointer<'_>,
    depth: usize,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::String(text) => {
            if let Some(secret_kind) = secret_kind(text) {
                out.add(rule, pointer, secret_kind);
            }
        }
        Value::Array(list) => {
            for (index, element) in list.iter().enumerate() {
                search_secrets(element, &pointer.element(index), depth + 1, rule, out);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                if depth == 0 && name == "signatures" {
                    continue;
                }
                let pointer = pointer.member(name);
                let text = value.as_str().unwrap_or_default();
                if text.len() >= MIN_NAMED_SECRET_BYTES
                    && is_secret_name(name)
                    && is_secret_like(text)
                {
                    out.add(rule, &pointer, "a text in a member named like a secret");
                } else {
                    search_secrets(value, &pointer, depth + 1, rule, out);
                }
            }
        }
        _ => {}
    }
}

fn is_secret_name(name: &str) -> bool {
    // The longest name has twelve letters, and no usual spelling of one doubles that. Few names begin like these.
    let has_secret_initial = matches!(
        name.trim_start_matches(['_', '-', '$']).as_bytes(),
        [
            b'a' | b'b' | b'c' | b'p' | b'r' | b's' | b'A' | b'B' | b'C' | b'P' | b'R' | b'S',
            ..
        ]
    );
    has_secret_initial && name.len() <= 24 && SECRET_NAMES.contains(&fold_name(name).as_str())
}

/// Whether the text can itself be a secret: one word that is neither a placeholder nor an address.
fn is_secret_like(text: &str) -> bool {
    !text.contains(char::is_whitespace)
        && !text.contains("://")
        && !text.contains(['{', '}', '<', '>', '*', '$'])
}

const IS_WORD_BYTE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b'+');
        byte += 1;
    }
    table
};

fn secret_kind(text: &str) -> Option<&'static str> {
    if text.len() < MIN_SECRET_TEXT_BYTES {
        return None;
    }
    let bytes = text.as_bytes();
    let mut start = 0;
    while start < bytes.len() {
        let rest = bytes.get(start..).unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| !IS_WORD_BYTE[usize::from(*byte)]);
        let word = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
        if word.len() >= PEM_HEADER.len()
            && let Some(secret_kind) = word_secret_kind(word, text)
        {
            return Some(secret_kind);
        }
        start += word.len() + 1;
    }
    let has_password = |word: &str| {
        let url = word.contains('@').then(|| Url::parse(word).ok()).flatten();
        url.is_some_and(|url| url.password().is_some_and(is_real_password))
    };
    let is_url_with_user = text.contains('@') && text.contains("://");
    (is_url_with_user && text.split_whitespace().any(has_password))
        .then_some("an address with a password")
}

/// The kind of secret in one word; `text` is the text around it.
fn word_secret_kind(word: &[u8], text: &str) -> Option<&'static str> {
    if word.starts_with(PEM_HEADER.as_bytes()) {
        return text.contains("PRIVATE KEY-----").then_some("a private key");
    }
    if word.starts_with(b"eyJ") && word.len() > MIN_JWT_BYTES {
        let dots = word.iter().filter(|byte| **byte == b'.').count();
        return (dots == 2).then_some("a JSON Web Token");
    }
    // Keys have digits; hyphenated words mostly have none.
    let has_known_prefix = KEY_PREFIXES
        .iter()
        .any(|(prefix, length)| word.len() >= *length && word.starts_with(prefix.as_bytes()));
    (has_known_prefix && word.iter().any(u8::is_ascii_digit))
        .then_some("a key or token of a service")
}

/// Whether the password in an address is a real one, not a template placeholder, which URLs escape.
fn is_real_password(text: &str) -> bool {
    is_secret_like(text) && !text.contains('%')
}

#[cfg(test)]
mod tests {
    use super::*;

    // The examples are assembled here, so that secret scanners do not report this file.
    #[test]
    fn keys_are_told_from_prose() {
        let digits = "0123456789abcdefABCDEF0123456789abcdef";
        for secret in [
            format!("use sk-{digits}"),
            format!("key=AKIA{}", &digits.to_uppercase()[..16]),
            format!("AIza{digits}"),
            format!("(ghp_{digits})"),
            format!("eyJ{digits}.{digits}.{digits}"),
            format!("-----BEGIN EC {} KEY-----\nMHc", "PRIVATE"),
            format!("See https://user:{digits}@agents.io/a2a"),
        ] {
            assert!(secret_kind(&secret).is_some(), "{secret}");
        }
        for text in [
            "sk-learn-and-other-libraries-for-tasks",
            "ask-anything-you-would-like-to-know-12345",
            "-----BEGIN CERTIFICATE-----",
            "Write to help@agents.io or see https://agents.io/a2a?x=1",
            "https://user@agents.io/",
            "https://user:{PASSWORD}@agents.io/",
            "eyJhbGciOiJFUzI1NiJ9",
            "did:key:z6Mkudk5UjUSVsosCmT6Pxvs8T5QXaSYQsqSqi12zYRTxCwL",
        ] {
            assert_eq!(secret_kind(text), None, "{text}");
        }
    }
}
