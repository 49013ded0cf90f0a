//! `[webhooks]`: deliveries to hooks, and the network rules for them.

use std::path::PathBuf;

use ipnet::IpNet;

use crate::config::AllowPorts;
use crate::config::section::section;
use crate::config::validate::allow_ports_error;

/// The permitted rates of deliveries.
const PER_TARGET_RANGE: std::ops::RangeInclusive<u32> = 1..=1_000;

section! {
    /// `[webhooks]`: deliveries to hooks.
    ///
    /// They pass a guard with the lists of this section. Lists of other sections do not apply to them, and these lists
    /// do not apply to other requests.
    pub struct WebhooksConfig {
        /// Deliveries that a process sends to one host in a second. From 1 to 1000.
        pub per_target_per_second: u32 = 10,
        /// Networks that may be reached although they are private or loopback, such as `10.0.0.0/8`.
        pub allow_networks: Vec<IpNet>,
        /// Host names that may be reached although they are local, reserved or without a known top-level domain, such
        /// as `chat.corp.internal`.
        pub allow_names: Vec<String>,
        /// Networks that are never reached, even if another setting allows them.
        pub deny_networks: Vec<IpNet>,
        /// Whether plain `http:` is allowed.
        pub allow_http: bool,
        /// Ports that are allowed: one such as `443`, a list such as `[443, 8443]`, or `"any"`.
        pub allow_ports: AllowPorts,
        /// PEM files with additional root certificates, each read at start.
        pub extra_ca: Vec<PathBuf>,
    }
}

impl WebhooksConfig {
    pub fn validation_errors(&self) -> Vec<String> {
        let mut errors: Vec<String> = allow_ports_error("webhooks", &self.allow_ports)
            .into_iter()
            .collect();
        if !PER_TARGET_RANGE.contains(&self.per_target_per_second) {
            let (least, most) = (PER_TARGET_RANGE.start(), PER_TARGET_RANGE.end());
            errors.push(format!(
                "webhooks.per_target_per_second must be between {least} and {most}"
            ));
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_within_its_bounds() {
        for (rate, errors) in [(0, 1), (1, 0), (10, 0), (1_000, 0), (1_001, 1)] {
            let config = WebhooksConfig {
                per_target_per_second: rate,
                ..WebhooksConfig::default()
            };
            assert_eq!(config.validation_errors().len(), errors, "{rate}");
        }
    }
}
