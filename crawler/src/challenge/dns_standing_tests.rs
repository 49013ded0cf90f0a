//! Tests of persistent records.

#![allow(clippy::unwrap_used)]

use time::macros::datetime;

use super::*;
use crate::challenge::format_persistent_dns_record;

const NOW: OffsetDateTime = datetime!(2026-10-01 12:00 UTC);
const A: &str = "https://registry.example.com/accounts/Acme";

fn word(text: &str) -> DnsRecordResult {
    evaluate_persistent_dns_record(text, "Registry.example.com", Some(A), NOW)
}

fn proves(reach: ProofScope, until: Option<i64>) -> DnsRecordResult {
    DnsRecordResult::Proves {
        scope: reach,
        expires_at: until.map(|at| OffsetDateTime::from_unix_timestamp(at).unwrap()),
    }
}

#[test]
fn a_record_proves_what_it_says() {
    let until = NOW.unix_timestamp();
    for (rest, expected) in [
        ("", proves(ProofScope::Exact, None)),
        ("; policy=exact", proves(ProofScope::Exact, None)),
        ("; Policy=SubDomains", proves(ProofScope::Subdomains, None)),
        (
            "; policy = subdomains",
            proves(ProofScope::Subdomains, None),
        ),
        (
            "; future=thing; policy=exact",
            proves(ProofScope::Exact, None),
        ),
        ("; policy=none", DnsRecordResult::OptsOut),
        (
            &format!(";persistUntil={until}"),
            proves(ProofScope::Exact, Some(until)),
        ),
    ] {
        let record = format!("registry.example.com.; accounturi={A}{rest}");
        assert_eq!(word(&record), expected, "{record}");
    }
    // An owner who opts out needs no account here.
    assert_eq!(
        word("registry.example.com; policy=none"),
        DnsRecordResult::OptsOut
    );
    let nobody = evaluate_persistent_dns_record(
        &format!("registry.example.com; accounturi={A}"),
        "registry.example.com",
        None,
        NOW,
    );
    assert!(matches!(nobody, DnsRecordResult::Fails(_)));
}

#[test]
fn malformed_and_foreign_records_prove_nothing() {
    let before = NOW.unix_timestamp() - 1;
    for (record, reason) in [
        (format!("registry.example.com; accounturi={A};"), "empty"),
        (
            format!("registry.example.com; accounturi={A};;policy=exact"),
            "empty",
        ),
        (
            format!("registry.example.com; accounturi={A}; accounturi={A}"),
            "twice",
        ),
        (
            format!("registry.example.com; accounturi={A}; AccountURI=x"),
            "twice",
        ),
        (
            format!("registry.example.com; accounturi={A}; x=1; x=2"),
            "twice",
        ),
        (
            format!("registry.example.com; accounturi={A}; policy=exact; policy=none"),
            "twice",
        ),
        (
            format!("registry.example.com; accounturi={A}; policy=all"),
            "policy",
        ),
        (
            format!("registry.example.com; accounturi={A}; policy="),
            "policy",
        ),
        (
            format!("registry.example.com; accounturi={A}; policy"),
            "not of the form tag=value",
        ),
        (
            format!("registry.example.com; accounturi={A}; =x"),
            "not of the form tag=value",
        ),
        (
            format!("registry.example.com; accounturi={A}; persistuntil=soon"),
            "persistuntil",
        ),
        (
            format!("registry.example.com; accounturi={A}; persistuntil=-1"),
            "persistuntil",
        ),
        (
            format!("registry.example.com; accounturi={A}; persistuntil=+1"),
            "persistuntil",
        ),
        (
            format!("registry.example.com; accounturi={A}; persistuntil="),
            "persistuntil",
        ),
        (
            format!("registry.example.com; accounturi={A}; persistuntil=99999999999999999999"),
            "persistuntil",
        ),
        (
            format!("registry.example.com; accounturi={A}; persistuntil={before}"),
            "expired on",
        ),
        (
            format!("registry.example.com; policy=none; persistuntil={before}"),
            "expired on",
        ),
        (
            format!("registry.example.com; accounturi={}", A.to_lowercase()),
            "another account",
        ),
        (
            format!("registry.example.com; accounturi={A}/"),
            "another account",
        ),
        ("registry.example.com; accounturi=".to_owned(), "no account"),
        (
            "registry.example.com; policy=exact".to_owned(),
            "no account",
        ),
        ("registry.example.com".to_owned(), "no account"),
        (
            "registry.example.com; accounturi".to_owned(),
            "not of the form tag=value",
        ),
    ] {
        match word(&record) {
            DnsRecordResult::Fails(found) => assert!(found.contains(reason), "{record}: {found}"),
            other => panic!("{record}: {other:?}"),
        }
    }
    for record in [
        format!("other.example.com; accounturi={A}"),
        format!("registry.example.com:8443; accounturi={A}"),
        format!("accounturi={A}; registry.example.com"),
        format!(" ; accounturi={A}"),
        "v=spf1 -all".to_owned(),
        "v=A2AR1; k=ed25519; p=AAAA".to_owned(),
        String::new(),
        ";".to_owned(),
    ] {
        assert_eq!(word(&record), DnsRecordResult::Unrelated, "{record}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_is_a_panic(text in "\\PC*|[\\x00-\\x{ffff}]*|registry.example.com(; ?(accounturi|policy|persistuntil|x)=?[a-z0-9]*)*;?") {
        let DnsRecordResult::Proves { .. } = word(&text) else { return Ok(()) };
        proptest::prop_assert!(text.contains(A));
    }

    #[test]
    fn what_is_told_is_what_is_read(account in "https://[!-:<-~]{1,60}", until in proptest::option::of(0_i64..4_000_000_000)) {
        let until = until.map(|at| OffsetDateTime::from_unix_timestamp(at).unwrap());
        let record = format_persistent_dns_record("registry.example.com", &account, DnsRecordPolicy::Subdomains, until);
        let read = parse_persistent_dns_record(&record).unwrap();
        proptest::prop_assert_eq!(read.account.as_deref(), Some(account.as_str()));
        proptest::prop_assert_eq!((read.policy, read.expires_at), (DnsRecordPolicy::Subdomains, until));
    }
}
