//! Client address of a request, also behind trusted proxies, and the network that it belongs to.

use std::net::{IpAddr, Ipv6Addr};

use actix_web::HttpRequest;
use ipnet::IpNet;

/// Network by which limits are counted: the owner of one IPv6 address usually has the whole /64.
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = u128::from(address) & (u128::MAX << 64);
            IpAddr::V6(Ipv6Addr::from(prefix))
        }
        v4 => v4,
    }
}

/// Client address of a request: the peer's, or, behind trusted proxies, the last address in
/// `X-Forwarded-For` that is not a trusted proxy itself.
pub fn client_address(request: &HttpRequest, trusted_proxies: &[IpNet]) -> Option<IpAddr> {
    let peer = request.peer_addr()?.ip().to_canonical();
    if !is_in_networks(trusted_proxies, peer) {
        return Some(peer);
    }
    let forwarded: Vec<&str> = request
        .headers()
        .get_all("x-forwarded-for")
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .collect();
    for hop in forwarded.iter().rev() {
        match hop
            .trim()
            .parse::<IpAddr>()
            .map(|address| address.to_canonical())
        {
            Ok(address) if is_in_networks(trusted_proxies, address) => {}
            Ok(address) => return Some(address),
            // An entry that no trusted proxy has written is not trusted, nor are the entries before it.
            Err(_) => break,
        }
    }
    Some(peer)
}

pub(crate) fn is_in_networks(networks: &[IpNet], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&address))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn only_trusted_proxies_are_believed() {
        let proxy: IpNet = "10.0.0.1/32".parse().unwrap();
        let proxies: IpNet = "10.0.0.0/8".parse().unwrap();
        let from = |peer: &str, forwarded: &str, trusted: &[IpNet]| {
            let request = TestRequest::default()
                .peer_addr(format!("{peer}:1").parse().unwrap())
                .insert_header(("x-forwarded-for", forwarded))
                .to_http_request();
            client_address(&request, trusted).unwrap().to_string()
        };
        assert_eq!(from("192.0.2.9", "198.51.100.1", &[proxy]), "192.0.2.9");
        assert_eq!(
            from("10.0.0.1", "6.6.6.6, 198.51.100.1", &[proxy]),
            "198.51.100.1"
        );
        assert_eq!(
            from("10.0.0.1", "198.51.100.1, 10.0.0.1", &[proxy]),
            "198.51.100.1"
        );
        assert_eq!(
            from("10.0.0.1", "198.51.100.1, nonsense", &[proxy]),
            "10.0.0.1"
        );
        // All proxies of a network are trusted, and no address outside of it.
        let chain = "6.6.6.6, 198.51.100.1, 10.255.0.3";
        assert_eq!(from("10.7.7.7", chain, &[proxies]), "198.51.100.1");
        assert_eq!(from("10.7.7.7", chain, &[proxy]), "10.7.7.7");
        assert_eq!(from("11.0.0.1", chain, &[proxies]), "11.0.0.1");
    }
}
