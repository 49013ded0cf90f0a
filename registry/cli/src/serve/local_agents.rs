//! Settings for agents on this machine: loopback addresses, plain http, any port and `localhost`. A registry with them
//! listens on loopback only, because whoever reaches it could have it call any service of the machine.

use std::net::SocketAddr;

use a2a_registry_core::config::{AllowPorts, Config};

use crate::command_error::CommandError;

/// Lets the registry reach agents on this machine.
///
/// # Errors
/// If it listens on another address than one of loopback; `flag` is what asked for these settings.
pub(crate) fn allow_local_agents(config: &mut Config, flag: &str) -> Result<(), CommandError> {
    let listeners = [Some(config.server.listen), config.server.metrics_listen];
    for address in listeners.into_iter().flatten() {
        require_loopback(address, flag)?;
    }
    for network in ["127.0.0.0/8", "::1/128"] {
        let network = network
            .parse()
            .map_err(|error| CommandError::new(format!("{network} is no network: {error}")))?;
        config.crawler.allow_networks.push(network);
    }
    config.crawler.allow_names.push("localhost".to_owned());
    config.crawler.allow_http = true;
    config.crawler.allow_ports = AllowPorts::Word("any".to_owned());
    Ok(())
}

fn require_loopback(address: SocketAddr, flag: &str) -> Result<(), CommandError> {
    if address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(CommandError::new(format!(
        "{flag} listens on this machine only, because it lets the registry reach every service here, and {address} is \
         not a loopback address; give --listen 127.0.0.1:{}",
        address.port()
    )))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;

    #[test]
    fn only_loopback_is_listened_on() {
        for good in ["127.0.0.1:8080", "127.0.0.9:0", "[::1]:1"] {
            let mut config = Config::default();
            config.server.listen = good.parse().unwrap();
            allow_local_agents(&mut config, "demo").unwrap();
            assert!(config.crawler.allow_http);
        }
        for wrong in ["0.0.0.0:8080", "10.0.0.1:8080", "[::]:8080"] {
            let mut config = Config::default();
            config.server.listen = wrong.parse().unwrap();
            let CommandError::Failed(line) =
                allow_local_agents(&mut config, "--local").unwrap_err()
            else {
                panic!("another kind of failure");
            };
            assert!(line.contains("--listen 127.0.0.1:8080"), "{line}");
        }
        let mut config = Config::default();
        config.server.metrics_listen = Some("0.0.0.0:9".parse().unwrap());
        assert!(allow_local_agents(&mut config, "--local").is_err());
    }
}
