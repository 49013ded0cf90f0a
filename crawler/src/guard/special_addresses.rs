//! Tables of the addresses that are not publicly reachable.
//!
//! The tables contain the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890 and its updates) as of
//! 2026-10, whole blocks only: the few globally reachable addresses inside them never serve cards. The tables also
//! contain multicast, site-local addresses and addresses that a cloud platform reserves for itself. To refresh the
//! tables, compare them with `iana.org/assignments/iana-ipv4-special-registry` and `…-ipv6-special-registry`, and
//! extend the tests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// A block of addresses that the guard rejects, and its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpecialAddressBlock {
    /// The addresses in the block.
    pub net: IpNet,
    /// The purpose, as part of a sentence.
    pub purpose: &'static str,
}

const fn special_ipv4_block(
    a: u8,
    b: u8,
    c: u8,
    d: u8,
    prefix: u8,
    purpose: &'static str,
) -> SpecialAddressBlock {
    SpecialAddressBlock {
        net: IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)),
        purpose,
    }
}

const fn ipv6_block(segments: [u16; 8], prefix: u8, purpose: &'static str) -> SpecialAddressBlock {
    let [a, b, c, d, e, f, g, h] = segments;
    SpecialAddressBlock {
        net: IpNet::V6(Ipv6Net::new_assert(
            Ipv6Addr::new(a, b, c, d, e, f, g, h),
            prefix,
        )),
        purpose,
    }
}

/// IPv4 blocks that are not fetched unless `allow_networks` contains them.
pub const SPECIAL_V4: &[SpecialAddressBlock] = &[
    special_ipv4_block(0, 0, 0, 0, 8, "this network"),
    special_ipv4_block(10, 0, 0, 0, 8, "private use"),
    special_ipv4_block(100, 64, 0, 0, 10, "shared address space (carrier NAT)"),
    special_ipv4_block(127, 0, 0, 0, 8, "loopback"),
    special_ipv4_block(169, 254, 0, 0, 16, "link-local (cloud metadata)"),
    special_ipv4_block(172, 16, 0, 0, 12, "private use"),
    special_ipv4_block(192, 0, 0, 0, 24, "IETF protocol assignments"),
    special_ipv4_block(192, 0, 2, 0, 24, "documentation"),
    special_ipv4_block(192, 31, 196, 0, 24, "AS112 name service"),
    special_ipv4_block(192, 52, 193, 0, 24, "multicast tunnelling"),
    special_ipv4_block(192, 88, 99, 0, 24, "6to4 relay"),
    special_ipv4_block(192, 168, 0, 0, 16, "private use"),
    special_ipv4_block(192, 175, 48, 0, 24, "AS112 name service"),
    special_ipv4_block(198, 18, 0, 0, 15, "benchmarking"),
    special_ipv4_block(198, 51, 100, 0, 24, "documentation"),
    special_ipv4_block(203, 0, 113, 0, 24, "documentation"),
    special_ipv4_block(224, 0, 0, 0, 4, "multicast"),
    special_ipv4_block(240, 0, 0, 0, 4, "reserved"),
    special_ipv4_block(168, 63, 129, 16, 32, "a cloud platform's own services"),
];

/// Global unicast as allocated (RFC 4291 section 2.4); everything outside it is rejected.
const GLOBAL_UNICAST: SpecialAddressBlock =
    ipv6_block([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, "global unicast");

/// IPv6 blocks that are not fetched unless `allow_networks` contains them. Blocks outside `2000::/3` would be rejected
/// anyway and are listed only for a specific message.
pub const SPECIAL_V6: &[SpecialAddressBlock] = &[
    ipv6_block([0, 0, 0, 0, 0, 0, 0, 1], 128, "loopback"),
    ipv6_block([0, 0, 0, 0, 0, 0, 0, 0], 128, "unspecified"),
    ipv6_block([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, "IPv4-mapped"),
    ipv6_block([0, 0, 0, 0, 0, 0, 0, 0], 96, "IPv4-compatible"),
    ipv6_block([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, "IPv4-translated"),
    ipv6_block([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, "NAT64"),
    ipv6_block([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "local NAT64"),
    ipv6_block([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "discard only"),
    ipv6_block([0x100, 0, 0, 1, 0, 0, 0, 0], 64, "dummy prefix"),
    ipv6_block([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, "Teredo tunnelling"),
    ipv6_block([0x2001, 2, 0, 0, 0, 0, 0, 0], 48, "benchmarking"),
    ipv6_block(
        [0x2001, 0, 0, 0, 0, 0, 0, 0],
        23,
        "IETF protocol assignments",
    ),
    ipv6_block([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation"),
    ipv6_block([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "6to4"),
    ipv6_block(
        [0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0],
        48,
        "AS112 name service",
    ),
    ipv6_block([0x3ffe, 0, 0, 0, 0, 0, 0, 0], 16, "the former 6bone"),
    ipv6_block([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation"),
    ipv6_block([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, "segment routing"),
    ipv6_block(
        [0xfc00, 0, 0, 0, 0, 0, 0, 0],
        7,
        "unique local (private use)",
    ),
    ipv6_block([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "link-local"),
    ipv6_block(
        [0xfec0, 0, 0, 0, 0, 0, 0, 0],
        10,
        "site-local (private use)",
    ),
    ipv6_block([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "multicast"),
];

/// Block reported for everything else outside `2000::/3`.
const OUTSIDE_GLOBAL_UNICAST: SpecialAddressBlock =
    ipv6_block([0, 0, 0, 0, 0, 0, 0, 0], 0, "outside global unicast");

/// The block that makes `address` unreachable from the public network, or `None` for a global address. Addresses that
/// embed another address (mapped, NAT64, 6to4, Teredo) are rejected as such and never unwrapped.
pub fn find_special_address_block(address: IpAddr) -> Option<SpecialAddressBlock> {
    let table = match address {
        IpAddr::V4(_) => SPECIAL_V4,
        IpAddr::V6(_) => SPECIAL_V6,
    };
    if let Some(block) = table.iter().find(|block| block.net.contains(&address)) {
        return Some(*block);
    }
    (address.is_ipv6() && !GLOBAL_UNICAST.net.contains(&address)).then_some(OUTSIDE_GLOBAL_UNICAST)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Numbers refer to the list of hostile inputs used to test the crawler.
    #[test]
    fn every_special_address_of_the_list_is_refused() {
        let bad = "127.0.0.1 127.255.255.255 0.0.0.0 0.1.2.3 10.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1 \
                   169.254.169.254 169.254.170.2 100.64.0.1 100.100.100.200 100.127.255.255 192.0.0.192 \
                   192.0.0.9 192.0.0.170 192.0.2.1 198.51.100.1 203.0.113.1 198.18.0.1 198.19.255.255 \
                   224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 168.63.129.16 192.88.99.2 \
                   192.31.196.1 192.52.193.1 192.175.48.1 \
                   ::1 :: ::2 ::ffff:127.0.0.1 ::ffff:a9fe:a9fe ::ffff:8.8.8.8 ::127.0.0.1 \
                   ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::808:808 64:ff9b:1:7f00:0:100:: 2002:7f00:1::1 \
                   2002:808:808::1 2001:0:7f00:1::1 fe80::1 febf::1 fec0::1 feff::1 fc00::1 fd00:ec2::254 \
                   ff02::1 100::1 100:0:0:1::1 2001:db8::1 3fff::1 3ffe::1 5f00::1 2001:2::1 2001:10::1 \
                   2001:20::1 2001:1::1 2620:4f:8000::1 4000::1 e000::1 1::1 1fff:ffff::1";
        for text in bad.split_whitespace() {
            let address: IpAddr = text.parse().unwrap();
            assert!(
                find_special_address_block(address).is_some(),
                "{text} must be refused"
            );
        }
    }

    #[test]
    fn neighbours_of_special_blocks_pass() {
        let good = "1.0.0.0 9.255.255.255 11.0.0.0 128.0.0.1 126.255.255.255 172.15.255.255 172.32.0.1 \
                    100.63.255.255 100.128.0.1 169.253.255.255 169.255.0.0 192.0.1.0 192.0.3.0 \
                    192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.101.0 203.0.114.0 \
                    223.255.255.255 168.63.129.15 168.63.129.17 8.8.8.8 \
                    2000::1 2001:200::1 2001:4860:4860::8888 2003::1 2606:4700::1111 2a00:1450::1 \
                    3ffd::1 2620:4f:8001::1";
        for text in good.split_whitespace() {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(
                find_special_address_block(address),
                None,
                "{text} must pass"
            );
        }
    }

    #[test]
    fn table_rows_are_proper_networks() {
        for block in SPECIAL_V4.iter().chain(SPECIAL_V6) {
            assert_eq!(block.net, block.net.trunc(), "{} has host bits", block.net);
        }
    }

    proptest::proptest! {
        /// Every address that the standard library calls special is rejected here.
        #[test]
        fn agrees_with_the_standard_library(bits: u32) {
            let address = Ipv4Addr::from(bits);
            if address.is_loopback() || address.is_private() || address.is_link_local()
                || address.is_multicast() || address.is_broadcast() || address.is_documentation()
                || address.is_unspecified()
            {
                proptest::prop_assert!(find_special_address_block(address.into()).is_some());
            }
            proptest::prop_assert!(find_special_address_block(address.to_ipv6_mapped().into()).is_some());
        }
    }
}
