//! Address blocks used as keys for rate limits: one platform may serve a hundred thousand agents from a few addresses.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

const IPV4_PREFIX_LENGTH: u8 = 24;
const IPV6_PREFIX_LENGTH: u8 = 48;

/// The enclosing block of an address: its /24 (IPv4) or /48 (IPv6). An IPv4 address mapped into IPv6 counts as IPv4.
pub fn enclosing_address_block(address: IpAddr) -> IpNet {
    match address.to_canonical() {
        IpAddr::V4(address) => IpNet::V4(Ipv4Net::new_assert(address, IPV4_PREFIX_LENGTH).trunc()),
        IpAddr::V6(address) => IpNet::V6(Ipv6Net::new_assert(address, IPV6_PREFIX_LENGTH).trunc()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn neighbours_share_a_block() {
        for (address, block) in [
            ("192.0.2.1", "192.0.2.0/24"),
            ("192.0.2.255", "192.0.2.0/24"),
            ("192.0.3.0", "192.0.3.0/24"),
            ("2001:db8:1:2::3", "2001:db8:1::/48"),
            ("2001:db8:2::", "2001:db8:2::/48"),
            ("::ffff:192.0.2.9", "192.0.2.0/24"),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(enclosing_address_block(address).to_string(), block);
        }
    }
}
