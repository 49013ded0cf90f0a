//! Metrics of the states that a process keeps in memory: its policies, waiting searches, identity providers, and the
//! contact to the database.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::{SecondsGauge, register_metric, register_seconds};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateValues {
    /// Searches that wait for a thread.
    pub searches_waiting: i64,
    /// Searches that wait for the sentence encoder.
    pub encodings_waiting: i64,
    /// The number of the policy set in force.
    pub policy_set: i64,
    pub policy_switches: u64,
    pub policy_activation_failed: bool,
    /// The number of errors of each identity provider, by its name.
    pub provider_errors: Vec<(String, u64)>,
    /// Time since the database last responded.
    pub database_silence: Duration,
    /// The number of deliveries to hooks by result.
    pub hook_deliveries: [(&'static str, u64); 3],
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WaitLabels {
    waiting_for: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    /// The name in the configuration, which bounds the number of providers.
    provider: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeliveryLabels {
    result: &'static str,
}

#[derive(Debug)]
pub(super) struct StateMetrics {
    searches_waiting: Family<WaitLabels, Gauge>,
    policy_set: Gauge,
    policy_switches: Counter<u64, AtomicU64>,
    policy_activation_failed: Gauge,
    provider_errors: Family<ProviderLabels, Counter<u64, AtomicU64>>,
    database_silence: SecondsGauge,
    hook_deliveries: Family<DeliveryLabels, Counter<u64, AtomicU64>>,
}

impl StateMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let build = Info::new(BuildLabels {
            version: env!("CARGO_PKG_VERSION"),
        });
        registry.register("build", "The program", build);
        Self {
            searches_waiting: register_metric(
                registry,
                "searches_waiting",
                "Searches that wait for a thread, and for the sentence encoder",
            ),
            policy_set: register_metric(
                registry,
                "policy_set",
                "Number of the policy set in force",
            ),
            policy_switches: register_metric(
                registry,
                "policy_switches",
                "Times that another policy set was put in force",
            ),
            policy_activation_failed: register_metric(
                registry,
                "policy_activation_failed",
                "1 while the newest policy set cannot be put in force, else 0",
            ),
            provider_errors: register_metric(
                registry,
                "identity_provider_errors",
                "Sign-ins, access tokens and updates of metadata that failed because the provider did not respond \
                 correctly",
            ),
            database_silence: register_seconds(
                registry,
                "database_silence",
                "Time since the database last responded to the poll for events, which is twice a second",
            ),
            hook_deliveries: register_metric(
                registry,
                "hook_deliveries",
                "Deliveries to hooks, by result: delivered, failed (sent again later) or dead (given up)",
            ),
        }
    }

    pub(super) fn set_values(&self, values: &StateValues) {
        for (waiting_for, count) in [
            ("thread", values.searches_waiting),
            ("encoder", values.encodings_waiting),
        ] {
            let labels = WaitLabels { waiting_for };
            self.searches_waiting.get_or_create(&labels).set(count);
        }
        self.policy_set.set(values.policy_set);
        self.policy_switches
            .inner()
            .store(values.policy_switches, Ordering::Relaxed);
        self.policy_activation_failed
            .set(values.policy_activation_failed.into());
        for (provider, errors) in &values.provider_errors {
            let labels = ProviderLabels {
                provider: provider.clone(),
            };
            let counter = self.provider_errors.get_or_create(&labels);
            counter.inner().store(*errors, Ordering::Relaxed);
        }
        self.database_silence
            .set(values.database_silence.as_secs_f64());
        for (result, count) in values.hook_deliveries {
            let counter = self
                .hook_deliveries
                .get_or_create(&DeliveryLabels { result });
            counter.inner().store(count, Ordering::Relaxed);
        }
    }
}
