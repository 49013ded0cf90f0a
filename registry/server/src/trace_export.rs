//! Traces: the spans with [`TRACE_TARGET`] are sent to the configured collector over OTLP/HTTP.
//!
//! Spans are handed to a thread of the exporter through a bounded queue, so that neither a request nor a job waits for
//! the collector. Each post passes a guard that knows the collector alone, and nothing is sent twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use a2a_crawler::Clock;
use a2a_crawler::dns::HickoryResolver;
use a2a_crawler::fetch::{FetchLimits, Fetcher, FetcherConfig};
use a2a_crawler::guard::SsrfGuard;
use a2a_crawler::trace_spans::TRACE_TARGET;
use a2a_registry_core::config::{TracingConfig, read_root_certificates};
use a2a_registry_core::error::StartError;
use a2a_registry_core::metrics::span_counters::SpanCounters;
use async_trait::async_trait;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, Span, SpanData,
    SpanExporter, SpanProcessor,
};
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;
use url::Url;

/// Maximum number of spans that wait or are being sent; further ones are dropped and counted.
const MAX_WAITING_SPANS: usize = 2048;
/// Maximum number of spans in one request.
const MAX_SPANS_PER_REQUEST: usize = 512;
/// How long a span waits for others.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// Time limit of one request to the collector.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of the collector's response in bytes; it says only how many spans it rejected.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// Maximum number of attributes of a span.
const MAX_ATTRIBUTES: u32 = 16;
/// How long the shutdown waits for the last spans to be sent.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// The name under which a collector shows what made the spans.
const INSTRUMENTATION: &str = "a2a-registry";

/// The running export of traces.
#[derive(Debug)]
pub struct TraceExport {
    provider: SdkTracerProvider,
    counters: SpanCounters,
}

impl TraceExport {
    /// Starts the export; `None` if no endpoint is configured. Must be called in a Tokio runtime, which sends the
    /// requests.
    ///
    /// # Errors
    /// If a root certificate or the system's DNS configuration cannot be read.
    pub fn start(
        config: &TracingConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<Option<Self>, StartError> {
        let Some(url) = config.traces_url() else {
            return Ok(None);
        };
        let counters = SpanCounters::default();
        let queue = Arc::new(SpanQueue::new(counters.clone()));
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(url.as_str())
            .with_timeout(REQUEST_TIMEOUT)
            .with_http_client(CollectorClient::new(config, url, clock)?)
            .build()
            .map_err(|error| StartError(format!("traces cannot be exported: {error}")))?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(MAX_WAITING_SPANS)
            .with_max_export_batch_size(MAX_SPANS_PER_REQUEST)
            .with_scheduled_delay(BATCH_DELAY)
            .build();
        let exporter = CountedExporter {
            inner: exporter,
            queue: Arc::clone(&queue),
        };
        let inner = BatchSpanProcessor::builder(exporter)
            .with_batch_config(batches)
            .build();
        let provider = SdkTracerProvider::builder()
            .with_resource(describe_service(config))
            // By the trace id alone: a flag of an unknown caller must not decide what this registry sends.
            .with_sampler(Sampler::TraceIdRatioBased(config.sample_ratio))
            .with_max_attributes_per_span(MAX_ATTRIBUTES)
            .with_span_processor(BoundedProcessor { inner, queue })
            .build();
        Ok(Some(Self { provider, counters }))
    }

    /// Counts of the spans of this export.
    pub fn counters(&self) -> &SpanCounters {
        &self.counters
    }

    /// The layer that makes traces of spans. It sees no log line and no other span.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        tracing_opentelemetry::layer::<S>()
            .with_tracer(self.provider.tracer(INSTRUMENTATION))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(|metadata| {
                metadata.is_span() && metadata.target() == TRACE_TARGET
            }))
    }

    /// Sends the spans that wait, for at most three seconds, and ends the export.
    pub async fn stop(self) {
        let provider = self.provider;
        let stopped =
            tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(STOP_TIMEOUT)).await;
        if !matches!(stopped, Ok(Ok(()))) {
            tracing::warn!("the last traces could not be sent to the collector");
        }
    }
}

/// What a collector is told of this process, and nothing from the environment.
fn describe_service(config: &TracingConfig) -> Resource {
    Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", config.service_name.clone()),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        ])
        .build()
}

/// Posts messages to the configured URL, whatever URL the exporter has from the environment.
#[derive(Debug)]
struct CollectorClient {
    fetcher: Arc<Fetcher>,
    url: Url,
    /// Sends the requests: the exporter's own thread has no runtime.
    runtime: Handle,
}

impl CollectorClient {
    fn new(config: &TracingConfig, url: Url, clock: Arc<dyn Clock>) -> Result<Self, StartError> {
        let limits = FetchLimits {
            total: REQUEST_TIMEOUT,
            body_bytes: MAX_RESPONSE_BYTES,
            max_redirects: 0,
            ..FetchLimits::default()
        };
        let resolver = HickoryResolver::from_system(limits.dns)
            .map_err(|error| StartError(format!("the DNS resolver cannot be set up: {error}")))?;
        let extra_ca = read_root_certificates(&config.extra_ca)
            .map_err(|error| StartError(format!("tracing.{error}")))?;
        let fetcher_config = FetcherConfig {
            guard: SsrfGuard::new(config.guard_config()),
            limits,
            contact_url: None,
            extra_ca,
            key_hosts: Vec::new(),
        };
        let fetcher = Fetcher::new(fetcher_config, Arc::new(resolver), clock)
            .map_err(|error| StartError(format!("tracing.{error}")))?;
        Ok(Self {
            fetcher: Arc::new(fetcher),
            url,
            runtime: Handle::current(),
        })
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (fetcher, url) = (Arc::clone(&self.fetcher), self.url.clone());
        let message = request.into_body().to_vec();
        let post = async move {
            fetcher
                .post_protobuf(&url, message, MAX_RESPONSE_BYTES)
                .await
        };
        let response = self.runtime.spawn(post).await?.result?;
        let body = Bytes::from(response.body);
        Ok(Response::builder().status(response.status).body(body)?)
    }
}

/// The spans that wait or are being sent. The batch processor bounds its queue too, but does not tell what it drops.
#[derive(Debug)]
struct SpanQueue {
    waiting: AtomicUsize,
    counters: SpanCounters,
    /// Whether the collector did not accept the last spans, so that the log says it once.
    failing: AtomicBool,
}

impl SpanQueue {
    fn new(counters: SpanCounters) -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            counters,
            failing: AtomicBool::new(false),
        }
    }

    /// Reserves room for a span; `false` if there is none, and the span is counted as dropped.
    fn reserve(&self) -> bool {
        if self.waiting.fetch_add(1, Ordering::AcqRel) < MAX_WAITING_SPANS {
            return true;
        }
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        self.counters.count_dropped();
        false
    }

    /// Frees the room of spans that were sent, or not accepted.
    fn release(&self, spans: usize, result: &OTelSdkResult) {
        self.waiting.fetch_sub(spans, Ordering::AcqRel);
        match result {
            Ok(()) => self.counters.count_sent(spans),
            Err(_) => self.counters.count_failed(spans),
        }
        let failed_before = self.failing.swap(result.is_err(), Ordering::Relaxed);
        match result {
            Err(error) if !failed_before => tracing::warn!(
                %error,
                "the collector does not accept traces; they are dropped until it does"
            ),
            Ok(()) if failed_before => tracing::info!("the collector accepts traces again"),
            _ => {}
        }
    }
}

/// Hands spans on while there is room for them.
#[derive(Debug)]
struct BoundedProcessor {
    inner: BatchSpanProcessor,
    queue: Arc<SpanQueue>,
}

impl SpanProcessor for BoundedProcessor {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.inner.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.queue.reserve() {
            self.inner.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// Sends spans, and counts what became of them.
#[derive(Debug)]
struct CountedExporter {
    inner: opentelemetry_otlp::SpanExporter,
    queue: Arc<SpanQueue>,
}

impl SpanExporter for CountedExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.inner.export(batch).await;
        self.queue.release(spans, &result);
        result
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use a2a_registry_core::metrics::{GaugeValues, Metrics};
    use opentelemetry_sdk::error::OTelSdkError;

    use super::*;

    /// The sample of spans with this outcome; `None` before the first.
    fn counted(counters: &SpanCounters, outcome: &str) -> Option<String> {
        let metrics = Metrics::with_span_counters(counters);
        let text = metrics.encode_all(&GaugeValues::default()).unwrap();
        let sample = format!("a2a_registry_trace_spans_total{{outcome=\"{outcome}\"}} ");
        let mut values = text.lines().filter_map(|line| line.strip_prefix(&sample));
        values.next().map(str::to_owned)
    }

    #[test]
    fn spans_beyond_the_bound_are_dropped_and_counted() {
        let counters = SpanCounters::default();
        let queue = SpanQueue::new(counters.clone());
        for _ in 0..MAX_WAITING_SPANS {
            assert!(queue.reserve());
        }
        assert_eq!(counted(&counters, "dropped"), None);
        for _ in 0..3 {
            assert!(!queue.reserve());
        }
        assert_eq!(counted(&counters, "dropped").as_deref(), Some("3"));
        queue.release(2, &Ok(()));
        let failure = Err(OTelSdkError::InternalFailure("no collector".into()));
        queue.release(1, &failure);
        assert_eq!(counted(&counters, "sent").as_deref(), Some("2"));
        assert_eq!(counted(&counters, "failed").as_deref(), Some("1"));
        for is_free in [true, true, true, false] {
            assert_eq!(queue.reserve(), is_free);
        }
    }
}
