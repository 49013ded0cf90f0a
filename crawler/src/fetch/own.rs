//! Recognises this machine's own addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Any port except 0; nothing is sent to it.
const DISCARD: u16 = 9;

/// Whether the system would use `address` itself as the source address of packets to `address`, which it does only
/// for its own addresses. Connecting a datagram socket consults the routing table without sending anything.
pub(super) fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, DISCARD))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_we_speak_from_is_our_own() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        for documentation in ["192.0.2.1", "2001:db8::1"] {
            assert!(!is_own(documentation.parse().expect("an address")));
        }
    }
}
