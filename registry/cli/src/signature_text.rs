//! Signature verdict of a card, in lines.

use a2a_registry_api::{SignatureEntryView, SignatureVerdict};

use super::console::Console;

/// Number of signatures listed on a terminal. Elsewhere all are listed.
const MAX_LISTED_SIGNATURES: usize = 4;
/// Columns of a foreign text in such a line.
const MAX_TEXT_COLUMNS: usize = 300;

/// Verdict with its reason, followed by each signature: key, algorithm, origin of the key, and what failed.
pub fn signature_lines(console: &Console, verdict: &SignatureVerdict) -> Vec<String> {
    let reason = console.shorten(verdict.reason.trim_end_matches('.'), MAX_TEXT_COLUMNS);
    let mut lines = vec![format!("signature: {}: {reason}", verdict.state)];
    let limit = if console.interactive {
        MAX_LISTED_SIGNATURES
    } else {
        usize::MAX
    };
    let listed = verdict.signatures.iter().take(limit);
    lines.extend(listed.map(|entry| {
        let line = signature_entry_line(console, entry, &verdict.reason);
        format!("  {line}")
    }));
    let left = verdict.signatures.len().saturating_sub(limit);
    if left > 0 {
        lines.push(format!("  and {left} more; --json has all of them"));
    }
    lines
}

/// One signature; its reason only if it differs from that of the whole verdict, which is printed above.
fn signature_entry_line(
    console: &Console,
    entry: &SignatureEntryView,
    verdict_reason: &str,
) -> String {
    let text_or = |text: &Option<String>, none: &str| match text {
        Some(text) => console.shorten(text, MAX_TEXT_COLUMNS),
        None => none.to_owned(),
    };
    let mut line = format!(
        "{}: key {}, algorithm {}",
        entry.verdict,
        text_or(&entry.kid, "without a name"),
        text_or(&entry.alg, "not given")
    );
    if let Some(thumbprint) = &entry.key_thumbprint {
        line.push_str(&format!(
            ", thumbprint {}",
            console.shorten(thumbprint, MAX_TEXT_COLUMNS)
        ));
    }
    if let Some(from) = &entry.key_from {
        line.push_str(&format!(
            ", from {}",
            console.shorten(from, MAX_TEXT_COLUMNS)
        ));
    }
    if entry.reason != verdict_reason {
        let reason = entry.reason.trim_end_matches('.');
        line.push_str(&format!(": {}", console.shorten(reason, MAX_TEXT_COLUMNS)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_registry_domain::signature::SignatureState;

    fn entry(kid: Option<&str>, reason: &str) -> SignatureEntryView {
        SignatureEntryView {
            kid: kid.map(str::to_owned),
            alg: Some("ES256".into()),
            key_thumbprint: None,
            key_from: kid.map(|_| "https://a.example/keys.json".into()),
            verdict: SignatureState::Invalid.into(),
            reason: reason.into(),
        }
    }

    fn console(interactive: bool) -> Console {
        Console {
            json: false,
            interactive,
        }
    }

    #[test]
    fn key_algorithm_origin_and_what_failed_are_told_once() {
        let mut verdict = SignatureVerdict {
            state: SignatureState::Invalid.into(),
            reason: "It does not verify.".into(),
            signatures: vec![
                entry(Some("k\u{1b}1"), "It does not verify."),
                entry(None, "It is malformed."),
            ],
        };
        assert_eq!(
            signature_lines(&console(true), &verdict),
            [
                "signature: invalid: It does not verify",
                "  invalid: key k\\u{1b}1, algorithm ES256, from https://a.example/keys.json",
                "  invalid: key without a name, algorithm ES256: It is malformed",
            ]
        );
        verdict.signatures = vec![entry(Some("k1"), ""); 7];
        let lines = signature_lines(&console(true), &verdict);
        assert_eq!(lines.len(), 1 + MAX_LISTED_SIGNATURES + 1);
        assert!(lines.last().is_some_and(|line| line.contains("3 more")));
        assert_eq!(signature_lines(&console(false), &verdict).len(), 1 + 7);
    }
}
