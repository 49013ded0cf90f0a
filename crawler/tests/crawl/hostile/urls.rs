//! Inputs 1 to 84: URLs, with the guard's result for each.

use std::net::{IpAddr, UdpSocket};

use a2a_crawler::guard::{GuardConfig, SsrfGuard};
use url::{Host, Url};

/// The default guard's result for a text that it accepts, which is then resolved like any other name.
const PASSES: &str = "passes";

pub struct UrlCase {
    pub number: u8,
    /// The URL, with `SCHEME` and `PORT` as placeholders.
    text: String,
    /// The guard's codes that are accepted.
    expected: &'static [&'static str],
}

impl UrlCase {
    /// The URL with http and the port of a canary.
    pub fn at(&self, port: u16) -> String {
        self.text
            .replace("SCHEME", "http")
            .replace("PORT", &port.to_string())
    }

    /// The URL with https and without a port.
    fn plain(&self) -> String {
        self.text.replace("SCHEME", "https").replace(":PORT", "")
    }

    /// The address in the URL, if its host is one.
    pub fn address(&self) -> Option<IpAddr> {
        match Url::parse(&self.plain()).ok()?.host()? {
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
            Host::Domain(_) => None,
        }
    }
}

/// The address of this machine in its network, or its loopback address if it has none. Nothing is sent.
fn own_address() -> String {
    UdpSocket::bind("0.0.0.0:0")
        .and_then(|socket| socket.connect("192.0.2.1:9").map(|()| socket))
        .and_then(|socket| socket.local_addr())
        .map_or("127.0.0.1".to_owned(), |at| at.ip().to_string())
}

pub fn cases() -> Vec<UrlCase> {
    const LITERAL: &[&str] = &["ip_literal"];
    const SPECIAL: &[&str] = &["special_name"];
    const BROKEN: &[&str] = &["bad_host", "not_a_url"];
    const NO_URL: &[&str] = &["not_a_url"];
    let long_label = format!("{}.com", "a".repeat(64));
    let long_name = format!("{}abcd.com", "abcdefg.".repeat(31));
    assert_eq!(long_name.len(), 256);
    let own = own_address();
    let (own, long_label, long_name) = ([&*own], [&*long_label], [&*long_name]);
    let hosts: Vec<(u8, &[&str], &'static [&'static str])> = vec![
        (1, &["127.0.0.1"], LITERAL),
        (2, &["127.1"], LITERAL),
        (3, &["0"], LITERAL),
        (4, &["0.0.0.0"], LITERAL),
        (5, &["2130706433"], LITERAL),
        (6, &["0x7f000001", "0X7F.1"], LITERAL),
        (7, &["0177.0.0.1"], LITERAL),
        (8, &["127.0.0.1."], LITERAL),
        (9, &["10.0.0.1"], LITERAL),
        (10, &["172.16.0.1", "172.31.255.255"], LITERAL),
        (11, &["192.168.0.1"], LITERAL),
        (12, &["169.254.169.254"], LITERAL),
        (13, &["169.254.170.2"], LITERAL),
        (14, &["100.64.0.1", "100.100.100.200"], LITERAL),
        (15, &["192.0.0.192"], LITERAL),
        (16, &["192.0.2.1", "198.51.100.1", "203.0.113.1"], LITERAL),
        (17, &["198.18.0.1"], LITERAL),
        (18, &["224.0.0.1", "239.255.255.250"], LITERAL),
        (19, &["240.0.0.1"], LITERAL),
        (20, &["255.255.255.255"], LITERAL),
        (21, &["168.63.129.16"], LITERAL),
        (22, &["192.88.99.2"], LITERAL),
        (23, &own, LITERAL),
        (24, &["[::1]"], LITERAL),
        (25, &["[::]"], LITERAL),
        (26, &["[::2]"], LITERAL),
        (27, &["[::ffff:127.0.0.1]"], LITERAL),
        (28, &["[::ffff:a9fe:a9fe]"], LITERAL),
        (29, &["[::127.0.0.1]"], LITERAL),
        (30, &["[::ffff:0:127.0.0.1]"], LITERAL),
        (31, &["[64:ff9b::7f00:1]"], LITERAL),
        (32, &["[64:ff9b:1:7f00:0:100::]"], LITERAL),
        (33, &["[2002:7f00:1::1]"], LITERAL),
        (34, &["[2001:0:7f00:1::1]"], LITERAL),
        (35, &["[fe80::1%25eth0]", "[fe80::1%eth0]"], NO_URL),
        (36, &["[fec0::1]"], LITERAL),
        (37, &["[fc00::1]", "[fd00:ec2::254]"], LITERAL),
        (38, &["[ff02::1]"], LITERAL),
        (39, &["[100::1]"], LITERAL),
        (40, &["[2001:db8::1]", "[3fff::1]"], LITERAL),
        (41, &["[5f00::1]"], LITERAL),
        (42, &["[2001:2::1]"], LITERAL),
        (43, &["[::ffff:8.8.8.8]"], LITERAL),
        (44, &["localhost", "LOCALHOST.", "a.localhost"], SPECIAL),
        (45, &["metadata.google.internal"], SPECIAL),
        (46, &["kubernetes.default.svc"], &["unknown_suffix"]),
        (47, &["host.docker.internal"], SPECIAL),
        (48, &["x.local", "x.internal", "x.home.arpa"], SPECIAL),
        (49, &["x.onion", "x.i2p"], SPECIAL),
        (50, &["x.test", "x.invalid"], SPECIAL),
        (51, &["intranet"], SPECIAL),
        (52, &["co.uk", "github.io"], &["public_suffix"]),
        (53, &["1.0.0.127.in-addr.arpa"], SPECIAL),
        (54, &long_label, BROKEN),
        (55, &long_name, BROKEN),
        (56, &["a..b.com"], BROKEN),
        (57, &["-a.com"], BROKEN),
        (58, &["example.com.."], BROKEN),
        (59, &[""], NO_URL),
        (60, &["１２７.０.０.１"], LITERAL),
        (61, &["①②⑦.⓪.⓪.①"], LITERAL),
        (62, &["127。0。0。1"], LITERAL),
        (63, &["ⓛⓞⓒⓐⓛⓗⓞⓢⓣ"], SPECIAL),
        (64, &["local\u{ad}host"], SPECIAL),
        (65, &["%31%32%37.0.0.1"], NO_URL),
        (66, &["%2531%2532%2537.0.0.1"], NO_URL),
        (67, &["example.com%00.evil.com"], NO_URL),
        (
            68,
            &["example.com%0d%0aHost:x", "example.com\r\nHost:x"],
            NO_URL,
        ),
        (
            69,
            &["exam\tple.com", "exam\nple.com", "127.0.\t0.1"],
            NO_URL,
        ),
        (70, &["xn--a.com", "xn--0.com"], NO_URL),
        // Requested under its A-label, which is also shown to the owner and everyone else.
        (71, &["аpple.com"], &[PASSES]),
        (72, &["exa\u{200d}mple.com", "exa\u{202e}mple.com"], NO_URL),
        // Names that differ from their looks, and public ones.
        (73, &["ıstanbul.com", "straße.de", "STRAẞE.de"], &[PASSES]),
    ];
    let mut cases: Vec<UrlCase> = Vec::new();
    for (number, hosts, expected) in hosts {
        for host in hosts {
            cases.push(UrlCase {
                number,
                text: format!("SCHEME://{host}:PORT/card.json"),
                expected,
            });
        }
    }
    let long_path = format!("SCHEME://example.com:PORT/{}", "a".repeat(8192));
    let shapes: Vec<(u8, &str, &'static [&'static str])> = vec![
        (69, "ht\ntps://127.0.0.1:PORT/", NO_URL),
        (74, "SCHEME://good.com@127.0.0.1:PORT/", &["user_info"]),
        (75, "SCHEME://good.com\\@evil.com:PORT/", NO_URL),
        (76, "SCHEME://evil.com:PORT#@good.com", &["fragment"]),
        (77, "SCHEME://user:pw@good.com:PORT/", &["user_info"]),
        (77, "SCHEME://@127.0.0.1:PORT/", &["user_info"]),
        (78, "http://good.com/", &["scheme"]),
        (78, "http://127.0.0.1:PORT/", &["scheme"]),
        (79, "file:///etc/passwd", &["scheme"]),
        (79, "gopher://127.0.0.1:PORT/_x", &["scheme"]),
        (79, "ftp://127.0.0.1:PORT/", &["scheme"]),
        (79, "data:application/json,{}", &["scheme"]),
        (79, "unix:/run/x.sock", &["scheme"]),
        (79, "ws://127.0.0.1:PORT/", &["scheme"]),
        (80, "//127.0.0.1:PORT/", NO_URL),
        (81, "https://good.com:22/", &["port"]),
        (81, "https://good.com:6379/", &["port"]),
        (81, "https://good.com:0/", &["port"]),
        (81, "https://good.com:65536/", NO_URL),
        // An empty port is the scheme's own (RFC 3986 section 3.2.3).
        (81, "https://good.com:/", &[PASSES]),
        (82, &long_path, &["url_too_long"]),
        // Dot segments are resolved once, by the parser; encoded slashes stay as they are.
        (
            83,
            "SCHEME://good.com:PORT/a/../%2e%2e/b%2f..%2fc",
            &[PASSES],
        ),
        (84, "https:/127.0.0.1:PORT/", NO_URL),
        (84, "https:127.0.0.1:PORT/", NO_URL),
    ];
    cases.extend(shapes.into_iter().map(|(number, text, expected)| UrlCase {
        number,
        text: text.to_owned(),
        expected,
    }));
    cases
}

#[test]
fn the_default_guard_names_what_is_wrong() {
    let guard = SsrfGuard::new(GuardConfig::default());
    for case in cases() {
        let text = case.plain();
        let code = guard
            .check_url(&text)
            .map_or_else(|refusal| refusal.code(), |_| PASSES);
        assert!(
            case.expected.contains(&code),
            "input {}: {text:?} gave {code}",
            case.number
        );
    }
}

/// Neighbours of special networks are ordinary addresses.
#[test]
fn neighbours_of_private_networks_pass() {
    let guard = SsrfGuard::new(GuardConfig::default());
    for address in ["128.0.0.1", "172.32.0.1", "100.128.0.1"] {
        assert_eq!(guard.check_address(address.parse().unwrap()), Ok(()));
    }
}
