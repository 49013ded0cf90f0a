//! Recognises this machine's own addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use crate::descriptors;
use crate::dns::DnsError;

/// Any port except 0; no packet is sent to it.
const DISCARD_PORT: u16 = 9;

/// Whether the system would use `address` itself as the source address of packets to `address`, which is the case only
/// for its own addresses. Connecting a datagram socket consults the routing table without sending a packet. If this
/// returns an error, because no file descriptor is free, the address must not be contacted.
pub(super) fn is_local_address(address: IpAddr) -> Result<bool, DnsError> {
    let unspecified_address: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((unspecified_address, 0)).and_then(|socket| {
        socket.connect((address, DISCARD_PORT))?;
        socket.local_addr()
    });
    match source {
        Ok(source) => Ok(source.ip() == address),
        Err(error) if descriptors::is_out_of_descriptors(&error) => Err(DnsError::OutOfDescriptors),
        Err(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_we_speak_from_is_our_own() {
        assert_eq!(is_local_address(Ipv4Addr::LOCALHOST.into()), Ok(true));
        for documentation in ["192.0.2.1", "2001:db8::1"] {
            let address = documentation.parse().expect("an address");
            assert_eq!(is_local_address(address), Ok(false));
        }
    }
}
