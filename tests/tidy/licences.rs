//! Allowed licences, and a parser for SPDX expressions.

/// The licence of our own packages.
pub const OURS: &str = "Apache-2.0";

/// Licences that require only their text and the copyright notices in it.
const ALLOWED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates allowed in spite of another licence: the crate, its licence, and why.
const EXCEPTIONS: [(&str, &str, &str); 3] = [
    (
        "option-ext",
        "MPL-2.0",
        "the macro of rust-embed runs it during a build, and nothing of it ships",
    ),
    (
        "webpki-root-certs",
        "CDLA-Permissive-2.0",
        "it is Mozilla's list of certificates, as data; the licence asks for its text alone",
    ),
    (
        "webpki-roots",
        "CDLA-Permissive-2.0",
        "it is Mozilla's list of certificates, as data; the licence asks for its text alone",
    ),
];

/// Whether a crate is an exception with exactly this licence.
pub fn is_excepted(name: &str, licence: &str) -> bool {
    EXCEPTIONS
        .iter()
        .any(|row| row.0 == name && row.1 == licence)
}

/// Whether an expression can be satisfied by allowed licences alone. A slash means `OR`, as it did before SPDX.
pub fn is_allowed(expression: &str) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest) == Some(true) && rest.is_empty()
}

/// Consumes the next word if it is this one.
fn take(rest: &mut &[&str], word: &str) -> bool {
    match rest.split_first() {
        Some((first, behind)) if *first == word => {
            *rest = behind;
            true
        }
        _ => false,
    }
}

/// Parses alternatives; `None` if the expression is malformed.
fn any_of(rest: &mut &[&str]) -> Option<bool> {
    let mut allowed = all_of(rest)?;
    while take(rest, "OR") {
        allowed |= all_of(rest)?;
    }
    Some(allowed)
}

/// Parses licences joined by `AND`, which binds tighter than `OR`.
fn all_of(rest: &mut &[&str]) -> Option<bool> {
    let mut allowed = one_of(rest)?;
    while take(rest, "AND") {
        allowed &= one_of(rest)?;
    }
    Some(allowed)
}

/// Parses one licence, with its exception if it has one, or an expression in parentheses.
fn one_of(rest: &mut &[&str]) -> Option<bool> {
    if take(rest, "(") {
        let allowed = any_of(rest)?;
        return take(rest, ")").then_some(allowed);
    }
    let (name, behind) = rest.split_first()?;
    *rest = behind;
    if !take(rest, "WITH") {
        return Some(ALLOWED.contains(name));
    }
    let (exception, behind) = rest.split_first()?;
    *rest = behind;
    Some(ALLOWED.contains(&format!("{name} WITH {exception}").as_str()))
}

#[test]
fn licences_are_distinguished() {
    for licence in [
        "MIT",
        "MIT OR GPL-3.0-only",
        "GPL-3.0-only/MIT",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "GPL-2.0-only AND MIT OR ISC",
        "Apache-2.0 WITH LLVM-exception",
    ] {
        assert!(is_allowed(licence), "{licence}");
    }
    for licence in [
        "",
        "GPL-3.0-only",
        "MPL-2.0",
        "MIT AND GPL-3.0-only",
        "MIT AND (GPL-3.0-only OR AGPL-3.0-only)",
        "GPL-2.0-only WITH Classpath-exception-2.0",
        "MIT WITH Something",
        "MIT OR",
        "(MIT",
        "MIT)",
        "MIT Apache-2.0",
    ] {
        assert!(!is_allowed(licence), "{licence}");
    }
    assert!(is_excepted("option-ext", "MPL-2.0"));
    assert!(!is_excepted("option-ext", "GPL-3.0-only") && !is_excepted("other", "MPL-2.0"));
}
