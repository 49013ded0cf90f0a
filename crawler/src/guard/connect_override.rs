//! Overrides of connections: one name that is reached at one address and port, whatever DNS says.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use super::host_name;

/// A name whose `https` URLs without a port are fetched from one address and port. The certificate there must be for
/// the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectOverride {
    /// The name, in lower case.
    pub host: String,
    /// Where connections for the name go.
    pub address: SocketAddr,
}

impl FromStr for ConnectOverride {
    type Err = String;

    /// Parses `name=address:port`, such as `agents.example.com=10.0.0.7:8443`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (host, address) = text
            .split_once('=')
            .ok_or_else(|| "it has no `=` between name and address".to_owned())?;
        host_name::check_host_syntax(host).map_err(|error| error.to_string())?;
        if !url::Host::parse(host).is_ok_and(|read| matches!(read, url::Host::Domain(_))) {
            return Err("it begins with an address instead of a name".to_owned());
        }
        let address: SocketAddr = address
            .parse()
            .map_err(|_| "what follows the `=` is not an address with a port".to_owned())?;
        if address.port() == 0 || address.ip().is_unspecified() {
            return Err("nothing can be reached at its address".to_owned());
        }
        Ok(Self {
            host: host.to_owned(),
            address,
        })
    }
}

impl fmt::Display for ConnectOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.host, self.address)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_override_is_one_name_and_one_address_with_a_port() {
        for text in ["a.example.com=10.0.0.7:8443", "intranet=[::1]:1"] {
            assert_eq!(text.parse::<ConnectOverride>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "a.example.com",
            "a.example.com=10.0.0.7",
            "a.example.com=10.0.0.7:0",
            "a.example.com=0.0.0.0:443",
            "a.example.com=b.example.com:443",
            "A.example.com=10.0.0.7:443",
            "*.example.com=10.0.0.7:443",
            "a.example.com:443=10.0.0.7:443",
            "10.0.0.7=10.0.0.8:443",
            "=10.0.0.8:443",
        ] {
            assert!(wrong.parse::<ConnectOverride>().is_err(), "{wrong}");
        }
    }
}
