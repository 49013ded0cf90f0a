//! Tests of the guard with the list of hostile inputs: literals, names, encodings, URL shapes.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;

fn default_guard() -> SsrfGuard {
    SsrfGuard::new(GuardConfig::default())
}

fn laptop() -> SsrfGuard {
    SsrfGuard::new(GuardConfig {
        allow_networks: vec!["127.0.0.0/8".parse().unwrap()],
        allow_http: true,
        allow_ports: AllowedPorts::Any,
        ..GuardConfig::default()
    })
}

fn code(guard: &SsrfGuard, text: &str) -> &'static str {
    match guard.check_url(text) {
        Ok(url) => panic!("{text:?} was let through as {url}"),
        Err(refusal) => {
            let sentence = refusal.to_string();
            assert!(sentence.len() < 500, "{sentence}");
            assert!(!sentence.chars().any(char::is_control), "{sentence:?}");
            refusal.code()
        }
    }
}

/// Inputs 1 to 43: every spelling of an address that a URL parser understands.
#[test]
fn ip_literals_are_refused_in_every_spelling() {
    let hosts = "127.0.0.1 127.1 0 0.0.0.0 2130706433 0x7f000001 0177.0.0.1 127.0.0.1. 10.0.0.1 \
                 172.16.0.1 172.31.255.255 192.168.0.1 169.254.169.254 169.254.170.2 100.64.0.1 \
                 100.100.100.200 192.0.0.192 192.0.2.1 198.51.100.1 203.0.113.1 198.18.0.1 224.0.0.1 \
                 239.255.255.250 240.0.0.1 255.255.255.255 168.63.129.16 192.88.99.2 8.8.8.8 0X7F.1 \
                 [::1] [::] [::2] [::ffff:127.0.0.1] [::ffff:a9fe:a9fe] [::127.0.0.1] [::ffff:0:127.0.0.1] \
                 [64:ff9b::7f00:1] [64:ff9b:1:7f00:0:100::] [2002:7f00:1::1] [2001:0:7f00:1::1] [fec0::1] \
                 [fc00::1] [fd00:ec2::254] [ff02::1] [100::1] [2001:db8::1] [3fff::1] [5f00::1] [2001:2::1] \
                 [::ffff:8.8.8.8] [2001:4860:4860::8888]";
    for host in hosts.split_whitespace() {
        assert_eq!(
            code(&default_guard(), &format!("https://{host}/card.json")),
            "ip_literal",
            "{host}"
        );
        assert!(default_guard().check_domain(host).is_err(), "{host}");
    }
    // Input 35: a zone is not part of a URL.
    assert_eq!(
        code(&default_guard(), "https://[fe80::1%25eth0]/"),
        "not_a_url"
    );
}

/// Inputs 44 to 53.
#[test]
fn special_names_are_refused() {
    for (host, expected) in [
        ("localhost", "special_name"),
        ("LOCALHOST.", "special_name"),
        ("a.localhost", "special_name"),
        ("metadata.google.internal", "special_name"),
        ("metadata.goog", "special_name"),
        ("kubernetes.default.svc", "unknown_suffix"),
        ("kubernetes.default.svc.cluster.local", "special_name"),
        ("host.docker.internal", "special_name"),
        ("x.local", "special_name"),
        ("x.internal", "special_name"),
        ("x.home.arpa", "special_name"),
        ("x.onion", "special_name"),
        ("x.i2p", "special_name"),
        ("x.test", "special_name"),
        ("x.invalid", "special_name"),
        ("x.example", "special_name"),
        ("x.alt", "special_name"),
        ("intranet", "special_name"),
        ("com", "special_name"),
        ("co.uk", "public_suffix"),
        ("github.io", "public_suffix"),
        ("1.0.0.127.in-addr.arpa", "special_name"),
        ("host.lan", "unknown_suffix"),
        ("host.corp", "unknown_suffix"),
    ] {
        assert_eq!(
            code(&default_guard(), &format!("https://{host}/")),
            expected,
            "{host}"
        );
    }
}

/// Inputs 54 to 59, and 60 to 73: names that are malformed, or become something else when mapped.
#[test]
fn malformed_and_mapped_hosts_are_refused() {
    let long_label = format!("{}.com", "a".repeat(64));
    let long_name = format!("{}com", "abcdefghi.".repeat(25) + "ab.");
    assert_eq!(long_name.len(), 256);
    for (host, expected) in [
        (long_label.as_str(), &["bad_host", "not_a_url"][..]),
        (&long_name, &["bad_host", "not_a_url"]),
        ("a..b.com", &["bad_host", "not_a_url"]),
        ("-a.com", &["bad_host"]),
        ("a-.com", &["bad_host"]),
        ("a_b.com", &["bad_host"]),
        ("*.com", &["bad_host"]),
        ("example.com..", &["bad_host", "not_a_url"]),
        (".example.com", &["bad_host", "not_a_url"]),
        ("", &["not_a_url"]),
        ("１２７.０.０.１", &["ip_literal"]),
        ("①②⑦.⓪.⓪.①", &["ip_literal"]),
        ("127。0。0。1", &["ip_literal"]),
        ("ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", &["special_name"]),
        ("local\u{ad}host", &["special_name"]),
        ("%31%32%37.0.0.1", &["not_a_url"]),
        ("%2531%2532%2537.0.0.1", &["not_a_url"]),
        ("example.com%00.evil.com", &["not_a_url"]),
        ("example.com%0d%0aHost:x", &["not_a_url"]),
        ("exam\nple.com", &["not_a_url"]),
        ("exam\tple.com", &["not_a_url"]),
        ("xn--a.com", &["not_a_url"]),
        ("xn--0.com", &["not_a_url"]),
        ("exa\u{202e}mple.com", &["not_a_url"]),
        ("exa\u{200d}mple.com", &["not_a_url"]),
    ] {
        let found = code(&default_guard(), &format!("https://{host}/"));
        assert!(expected.contains(&found), "{host:?}: {found}");
    }
    let fits = format!("{}.com", "a".repeat(63));
    assert!(
        default_guard()
            .check_url(&format!("https://{fits}/"))
            .is_ok()
    );
}

/// Inputs 71 and 73: international names are looked up under their A-label, which the owner sees too.
#[test]
fn international_names_become_a_labels() {
    for (host, expected) in [
        ("bücher.de", "xn--bcher-kva.de"),
        ("BÜCHER.DE", "xn--bcher-kva.de"),
        ("straße.de", "xn--strae-oqa.de"),
        ("аpple.com", "xn--pple-43d.com"),
        ("ıstanbul.com", "xn--stanbul-qfb.com"),
    ] {
        let url = default_guard()
            .check_url(&format!("https://{host}/"))
            .unwrap();
        assert_eq!(url.host_str(), Some(expected));
    }
}

/// Inputs 74 to 84.
#[test]
fn odd_url_shapes_are_refused() {
    let long_path = format!("https://example.com/{}", "a".repeat(8192));
    for (text, expected) in [
        ("https://good.com@127.0.0.1/", "user_info"),
        ("https://good.com\\@evil.com", "not_a_url"),
        ("https://evil.com#@good.com", "fragment"),
        ("https://user:pw@good.com/", "user_info"),
        ("https://@good.com/", "user_info"),
        ("http://good.com/", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("gopher://good.com/", "scheme"),
        ("ftp://good.com/", "scheme"),
        ("data:application/json,{}", "scheme"),
        ("unix:/run/x.sock", "scheme"),
        ("ws://good.com/", "scheme"),
        ("javascript:alert(1)", "scheme"),
        ("//good.com/", "not_a_url"),
        ("/card.json", "not_a_url"),
        ("good.com", "not_a_url"),
        ("", "not_a_url"),
        ("https://", "not_a_url"),
        ("https:///good.com/", "not_a_url"),
        ("https:/good.com/", "not_a_url"),
        ("https:good.com/", "not_a_url"),
        ("https:\\\\good.com\\", "not_a_url"),
        (" https://good.com/", "not_a_url"),
        ("ht\ntps://good.com/", "not_a_url"),
        ("https://good.com:22/", "port"),
        ("https://good.com:6379/", "port"),
        ("https://good.com:80/", "port"),
        ("https://good.com:0/", "port"),
        ("https://good.com:65536/", "not_a_url"),
        (&long_path, "url_too_long"),
    ] {
        assert_eq!(code(&default_guard(), text), expected, "{text:?}");
    }
    // The parser alone decides the meaning of dot segments.
    let url = default_guard()
        .check_url("https://good.com/a/../%2e%2e/b%2fc:d")
        .unwrap();
    assert_eq!(url.as_str(), "https://good.com/b%2fc:d");
}

#[test]
fn a_proper_url_passes_in_its_normal_form() {
    for (text, expected) in [
        (
            "https://Agents.Example.COM/Card.json?x=1",
            "https://agents.example.com/Card.json?x=1",
        ),
        (
            "HTTPS://agents.example.com:443",
            "https://agents.example.com/",
        ),
        (
            "https://agents.example.com./",
            "https://agents.example.com/",
        ),
        (
            "https://agents.example.com:/",
            "https://agents.example.com/",
        ),
        ("https://someone.github.io/", "https://someone.github.io/"),
    ] {
        assert_eq!(default_guard().check_url(text).unwrap().as_str(), expected);
    }
}

#[test]
fn settings_open_exactly_what_they_name() {
    let guard = laptop();
    assert!(guard.check_url("http://127.0.0.1:9001/card.json").is_ok());
    assert!(guard.check_url("https://2130706433/").is_ok());
    assert!(guard.check_address("127.9.9.9".parse().unwrap()).is_ok());
    for closed in [
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://10.0.0.1/",
        "http://8.8.8.8/",
    ] {
        assert_eq!(code(&guard, closed), "ip_literal");
    }
    assert!(
        guard
            .check_address("::ffff:127.0.0.1".parse().unwrap())
            .is_err()
    );
    assert!(guard.check_address("10.0.0.1".parse().unwrap()).is_err());
    assert_eq!(code(&guard, "http://localhost/"), "special_name");
    assert_eq!(code(&guard, "http://127.0.0.1:0/"), "port");

    let named = SsrfGuard::new(GuardConfig {
        allow_names: vec!["*.corp.internal".to_owned(), "intranet".to_owned()],
        ..GuardConfig::default()
    });
    assert!(named.check_url("https://a.corp.internal/").is_ok());
    assert!(named.check_url("https://intranet/").is_ok());
    assert_eq!(code(&named, "https://corp.internal/"), "special_name");
    // An allowed name does not allow an address.
    assert!(named.check_address("10.0.0.1".parse().unwrap()).is_err());

    let denied = SsrfGuard::new(GuardConfig {
        deny_networks: vec![
            "9.9.9.0/24".parse().unwrap(),
            "127.0.0.9/32".parse().unwrap(),
        ],
        allow_networks: vec!["127.0.0.0/8".parse().unwrap()],
        ..GuardConfig::default()
    });
    let refusal = |address: &str| {
        denied
            .check_address(address.parse().unwrap())
            .unwrap_err()
            .code()
    };
    assert_eq!(refusal("9.9.9.9"), "denied_network");
    assert_eq!(refusal("127.0.0.9"), "denied_network");
    assert_eq!(code(&denied, "https://127.0.0.9/"), "denied_network");
}

#[test]
fn ports_are_a_list() {
    let guard = SsrfGuard::new(GuardConfig {
        allow_ports: AllowedPorts::List(vec![443, 8443]),
        ..GuardConfig::default()
    });
    assert!(guard.check_url("https://example.com:8443/").is_ok());
    assert!(guard.check_url("https://example.com/").is_ok());
    assert_eq!(code(&guard, "https://example.com:9443/"), "port");
}

#[test]
fn domains_are_read_as_registered() {
    let guard = laptop();
    for (text, name, origin) in [
        (
            "Agents.Example.com",
            "agents.example.com",
            "https://agents.example.com/",
        ),
        (
            "agents.example.com.:443",
            "agents.example.com",
            "https://agents.example.com/",
        ),
        (
            "agents.example.com:8443",
            "agents.example.com:8443",
            "https://agents.example.com:8443/",
        ),
        (
            "127.0.0.1:9001",
            "127.0.0.1:9001",
            "https://127.0.0.1:9001/",
        ),
        ("bücher.de", "xn--bcher-kva.de", "https://xn--bcher-kva.de/"),
    ] {
        let domain = guard.check_domain(text).unwrap();
        assert_eq!(domain.name, name);
        assert_eq!(domain.origin.as_str(), origin);
    }
    for (text, expected) in [
        ("", "not_a_domain"),
        ("https://example.com", "not_a_domain"),
        ("example.com/path", "not_a_domain"),
        ("user@example.com", "not_a_domain"),
        ("exam ple.com", "not_a_domain"),
        ("example.com:x", "not_a_domain"),
        ("co.uk", "public_suffix"),
        ("localhost:8080", "special_name"),
    ] {
        assert_eq!(
            guard.check_domain(text).unwrap_err().code(),
            expected,
            "{text:?}"
        );
    }
    let url = guard.check_url("http://127.0.0.1:9001/a/b?c").unwrap();
    let domain = Domain::from_url(&url);
    assert_eq!(domain.name, "127.0.0.1:9001");
    assert_eq!(domain.origin.as_str(), "http://127.0.0.1:9001/");
}

#[test]
fn redirects_stay_on_the_site() {
    let same = |one: &str, other: &str| {
        SsrfGuard::is_same_site(&one.parse().unwrap(), &other.parse().unwrap())
    };
    assert!(same("https://a.example.com/", "https://b.example.com/x"));
    assert!(!same("https://one.github.io/", "https://two.github.io/"));
    assert!(same("http://127.0.0.1:1/", "http://127.0.0.1:2/"));
    assert!(!same("http://127.0.0.1/", "http://127.0.0.2/"));
    assert!(!same("https://example.com/", "https://1.1.1.1/"));
}

proptest::proptest! {
    /// For any text: no panic, and every accepted URL has a public name, https and port 443.
    #[test]
    fn nothing_odd_is_let_through(text in "(https?|HTTPS|ftp)?:?/?/?[ -~\\u{80}-\\u{ffff}]{0,60}") {
        if let Ok(url) = default_guard().check_url(&text) {
            proptest::prop_assert_eq!(url.scheme(), "https");
            proptest::prop_assert_eq!(url.port(), None);
            proptest::prop_assert!(matches!(url.host(), Some(Host::Domain(_))));
            let again = default_guard().check_url(url.as_str()).unwrap();
            proptest::prop_assert_eq!(url, again);
        }
    }

    /// URL parsers read every number as an address, so no number is a host name.
    #[test]
    fn numbers_are_literals(number: u32) {
        for host in [format!("{number}"), format!("{number:#x}"), format!("0{number:o}")] {
            proptest::prop_assert_eq!(code(&default_guard(), &format!("https://{host}/")), "ip_literal");
        }
    }
}

/// Whoever holds the guard checks by the new rules, allowed and denied.
#[test]
fn a_replaced_configuration_counts_for_every_further_check() {
    let guard = std::sync::Arc::new(default_guard());
    let shared = std::sync::Arc::clone(&guard);
    let address = "192.0.32.10".parse().unwrap();
    assert!(shared.check_address(address).is_ok());
    assert!(shared.check_url("http://example.com/").is_err());
    guard.replace_config(GuardConfig {
        allow_names: vec!["intranet".into()],
        allow_http: true,
        allow_ports: AllowedPorts::Any,
        deny_networks: vec!["192.0.32.0/24".parse().unwrap()],
        ..GuardConfig::default()
    });
    assert!(shared.check_address(address).is_err());
    assert!(shared.check_url("http://intranet:8080/").is_ok());
    guard.replace_config(GuardConfig::default());
    assert!(shared.check_address(address).is_ok());
    assert!(shared.check_url("http://intranet:8080/").is_err());
}

/// An agent on a laptop is refused once, with everything that an operator has to set.
#[test]
fn a_refusal_names_all_its_reasons() {
    let refusal = default_guard()
        .check_url("http://127.0.0.1:9001/card.json")
        .unwrap_err();
    let codes: Vec<&str> = refusal.reasons().iter().map(GuardError::code).collect();
    assert_eq!(codes, ["scheme", "ip_literal", "port"]);
    let sentence = refusal.to_string();
    for setting in ["allow_http", "allow_networks", "allow_ports"] {
        assert!(sentence.contains(setting), "{sentence}");
    }
    let single = default_guard().check_url("https://a.example.com:9/");
    let single = single.unwrap_err();
    assert_eq!(single, GuardError::Port { port: 9 });
    assert_eq!(single.reasons(), [GuardError::Port { port: 9 }]);
}

#[test]
fn an_override_opens_one_name_at_one_address_and_nothing_else() {
    let guard = SsrfGuard::new(GuardConfig {
        connect: vec!["a.example.com=127.0.0.1:9001".parse().unwrap()],
        ..GuardConfig::default()
    });
    let url = guard.check_url("https://a.example.com/card.json").unwrap();
    let peer = |text: &str| guard.check_peer(&url, text.parse().unwrap());
    assert!(peer("127.0.0.1:9001").is_ok());
    assert!(peer("127.0.0.1:9002").is_err());
    assert!(peer("127.0.0.2:9001").is_err());
    assert!(peer("9.9.9.9:443").is_ok());
    let other = guard.check_url("https://b.a.example.com/").unwrap();
    let at_override = "127.0.0.1:9001".parse().unwrap();
    assert!(guard.check_peer(&other, at_override).is_err());
    assert!(guard.check_address(at_override.ip()).is_err());
    assert_eq!(code(&guard, "https://127.0.0.1/"), "ip_literal");
    for wrong in ["http://a.example.com/", "https://a.example.com:8443/"] {
        let refusal = guard.check_url(wrong).unwrap_err();
        let codes: Vec<&str> = refusal.reasons().iter().map(GuardError::code).collect();
        assert_eq!(codes.last(), Some(&"connect_override"), "{wrong}");
    }
    // A name that the rules refuse stays refused, and a denied network stays denied.
    let strict = SsrfGuard::new(GuardConfig {
        connect: vec![
            "a.test=127.0.0.1:9001".parse().unwrap(),
            "a.example.com=127.0.0.1:9001".parse().unwrap(),
        ],
        deny_networks: vec!["127.0.0.0/8".parse().unwrap()],
        ..GuardConfig::default()
    });
    assert_eq!(code(&strict, "https://a.test/"), "special_name");
    assert!(strict.check_peer(&url, at_override).is_err());
}
