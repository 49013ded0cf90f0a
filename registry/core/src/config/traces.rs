//! `[tracing]`: traces of requests, acts, visits and searches, sent to a collector over OTLP.

use std::path::PathBuf;

use a2a_crawler::guard::{AllowedPorts, GuardConfig, SsrfGuard};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::Url;

use crate::config::section::section;

/// Where a collector takes traces, below its base URL (OTLP/HTTP).
const TRACES_PATH: &str = "v1/traces";
/// Maximum length of the service name, in bytes.
const MAX_SERVICE_NAME_BYTES: usize = 100;

section! {
    /// `[tracing]`: the collector that traces are sent to.
    pub struct TracingConfig {
        /// The URL of a collector that accepts OTLP over HTTP, such as `http://127.0.0.1:4318`; traces are posted to
        /// `v1/traces` below it. Nothing else is requested there, and no redirect is followed. Empty: no traces are
        /// sent.
        pub otlp_endpoint: String,
        /// Share of the traces that are sent, chosen by the trace id, so that all processes of a trace choose alike.
        /// From 0 to 1.
        pub sample_ratio: f64 = 1.0,
        /// The name of this service in traces, of 1 to 100 bytes.
        pub service_name: String = "a2a-registry".into(),
        /// PEM files with additional root certificates, each read at start.
        pub extra_ca: Vec<PathBuf>,
    }
}

impl TracingConfig {
    /// The URL that traces are posted to; `None` if none are sent, or the endpoint is no URL.
    pub fn traces_url(&self) -> Option<Url> {
        if self.otlp_endpoint.is_empty() {
            return None;
        }
        let base = self.otlp_endpoint.trim_end_matches('/');
        Url::parse(&format!("{base}/{TRACES_PATH}")).ok()
    }

    /// A guard that lets the endpoint's host and port pass, and no other. The operator names the host, so its address
    /// may be private: usually it is this machine.
    pub fn guard_config(&self) -> GuardConfig {
        let Some(url) = self.traces_url() else {
            return GuardConfig::default();
        };
        let name = url.host_str().unwrap_or_default();
        GuardConfig {
            allow_networks: vec![IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())],
            allow_names: vec![name.trim_end_matches('.').to_owned()],
            allow_http: url.scheme() == "http",
            allow_ports: AllowedPorts::List(url.port_or_known_default().into_iter().collect()),
            deny_networks: Vec::new(),
            connect: Vec::new(),
        }
    }

    /// Validation errors, one sentence each.
    pub fn validation_errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        if !self.otlp_endpoint.is_empty() {
            let refusal = SsrfGuard::new(self.guard_config()).check_url(&self.otlp_endpoint);
            let has_query = self.traces_url().is_none_or(|url| url.query().is_some());
            if let Err(refusal) = refusal {
                errors.push(format!(
                    "tracing.otlp_endpoint must be a URL such as http://127.0.0.1:4318: {refusal}"
                ));
            } else if has_query {
                errors.push(
                    "tracing.otlp_endpoint must have no query; give the collector's base URL, such as \
                     http://127.0.0.1:4318"
                        .into(),
                );
            }
        }
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            errors.push("tracing.sample_ratio must be between 0 and 1".into());
        }
        if !(1..=MAX_SERVICE_NAME_BYTES).contains(&self.service_name.len()) {
            errors.push(format!(
                "tracing.service_name must have 1 to {MAX_SERVICE_NAME_BYTES} bytes"
            ));
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn section(endpoint: &str) -> TracingConfig {
        TracingConfig {
            otlp_endpoint: endpoint.to_owned(),
            ..TracingConfig::default()
        }
    }

    #[test]
    fn the_guard_lets_only_the_endpoint_pass() {
        for (endpoint, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
            ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
            (
                "https://collector.corp.internal/otlp",
                "https://collector.corp.internal/otlp/v1/traces",
            ),
        ] {
            let own = section(endpoint);
            assert_eq!(own.validation_errors(), [""; 0], "{endpoint}");
            assert_eq!(own.traces_url().unwrap().as_str(), url);
            let guard = SsrfGuard::new(own.guard_config());
            assert!(guard.check_url(url).is_ok(), "{endpoint}");
            assert!(guard.check_url("https://intranet:4318/").is_err());
            assert!(guard.check_url("http://127.0.0.1:80/").is_err());
        }
        assert!(section("").traces_url().is_none());
    }

    #[test]
    fn each_mistake_is_one_sentence_with_its_key() {
        type Spoil = fn(&mut TracingConfig);
        let cases: [(&str, Spoil); 9] = [
            ("otlp_endpoint", |own| {
                own.otlp_endpoint = "collector".into()
            }),
            ("otlp_endpoint", |own| {
                own.otlp_endpoint = "grpc://127.0.0.1:4317".into();
            }),
            ("otlp_endpoint", |own| {
                own.otlp_endpoint = "http://me:hush@127.0.0.1:4318".into();
            }),
            ("otlp_endpoint", |own| {
                own.otlp_endpoint = "http://127.0.0.1:4318?key=x".into();
            }),
            ("sample_ratio", |own| own.sample_ratio = -0.1),
            ("sample_ratio", |own| own.sample_ratio = 1.1),
            ("sample_ratio", |own| own.sample_ratio = f64::NAN),
            ("service_name", |own| own.service_name.clear()),
            ("service_name", |own| {
                own.service_name = "x".repeat(MAX_SERVICE_NAME_BYTES + 1);
            }),
        ];
        for (key, spoil) in cases {
            let mut own = section("http://127.0.0.1:4318");
            spoil(&mut own);
            let mistakes = own.validation_errors();
            assert_eq!(mistakes.len(), 1, "{key}: {mistakes:?}");
            assert!(
                mistakes[0].contains(&format!("tracing.{key} ")),
                "{mistakes:?}"
            );
            assert!(!mistakes[0].contains("hush"), "{mistakes:?}");
        }
    }
}
