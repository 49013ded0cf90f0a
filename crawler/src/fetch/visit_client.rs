//! Connections of one visit, which close with it.
//!
//! Hosts are visited hours apart, so a connection that outlived its visit would not be reused, and thousands of them
//! would exhaust the file descriptors of the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use url::{Origin, Url};

use super::{FetchError, Fetcher};

#[derive(Debug)]
pub(super) struct VisitClient {
    host: Origin,
    client: reqwest::Client,
    out_of_descriptors: AtomicBool,
}

impl Fetcher {
    /// A fetcher for one visit of the host of `url`. Its requests to that host share one connection, which closes when
    /// the fetcher is dropped; a connection to any other host closes after its response. So a visit has at most two
    /// open connections.
    pub fn for_visit(&self, url: &Url) -> Self {
        // Clients were already made from these parts, so only the library itself could fail.
        let client = self
            .client_parts
            .build_client(1, None)
            .unwrap_or_else(|error| {
                tracing::error!(%error, "no client for the visit could be made; every request opens a new connection");
                self.single_use_client.clone()
            });
        Self {
            client: self.single_use_client.clone(),
            visit_client: Some(Arc::new(VisitClient {
                host: url.origin(),
                client,
                out_of_descriptors: AtomicBool::new(false),
            })),
            ..self.clone()
        }
    }

    /// Whether this visit ran out of file descriptors, so that its result says nothing about the host.
    pub fn ran_out_of_descriptors(&self) -> bool {
        let visit = self.visit_client.as_ref();
        visit.is_some_and(|visit| visit.out_of_descriptors.load(Ordering::Relaxed))
    }

    /// Records a failure of this process for the visit to which it belongs.
    pub(super) fn record_local_failure(&self, error: FetchError) -> FetchError {
        if let Some(visit_client) = self
            .visit_client
            .as_ref()
            .filter(|_| error.is_local_failure)
        {
            visit_client
                .out_of_descriptors
                .store(true, Ordering::Relaxed);
        }
        error
    }

    pub(super) fn client_for(&self, url: &Url) -> &reqwest::Client {
        match &self.visit_client {
            Some(visit) if visit.host == url.origin() => &visit.client,
            _ => &self.client,
        }
    }
}
