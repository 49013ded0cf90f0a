//! The connections of one visit, which close with it.
//!
//! Hosts are visited hours apart, so a connection that outlives its visit is used by nobody, while thousands of them
//! would use up the file descriptors of the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use url::{Origin, Url};

use super::{FetchError, Fetcher};

#[derive(Debug)]
pub(super) struct VisitClient {
    host: Origin,
    client: reqwest::Client,
    ran_out: AtomicBool,
}

impl Fetcher {
    /// A fetcher for one visit of the host of `url`. Its requests to that host share one connection, which closes when
    /// this is dropped; one to any other host closes after its response. So a visit has at most two open connections.
    pub fn for_visit(&self, url: &Url) -> Self {
        // Its parts have made clients already, so only the library itself could fail.
        let client = self.parts.client(1, None).unwrap_or_else(|error| {
            tracing::error!(%error, "a visit makes a connection for each request");
            self.single.clone()
        });
        Self {
            guard: Arc::clone(&self.guard),
            limits: self.limits,
            parts: Arc::clone(&self.parts),
            client: self.single.clone(),
            single: self.single.clone(),
            visit: Some(VisitClient {
                host: url.origin(),
                client,
                ran_out: AtomicBool::new(false),
            }),
            resolver: Arc::clone(&self.resolver),
            clock: Arc::clone(&self.clock),
            key_hosts: Arc::clone(&self.key_hosts),
        }
    }

    /// Whether this visit ran out of file descriptors, so that it says nothing about its host.
    pub fn ran_out_of_descriptors(&self) -> bool {
        let visit = self.visit.as_ref();
        visit.is_some_and(|visit| visit.ran_out.load(Ordering::Relaxed))
    }

    /// Remembers a failure of our own for the visit that it belongs to.
    pub(super) fn note_failure(&self, error: FetchError) -> FetchError {
        if let Some(visit) = self.visit.as_ref().filter(|_| error.is_ours) {
            visit.ran_out.store(true, Ordering::Relaxed);
        }
        error
    }

    pub(super) fn client_for(&self, url: &Url) -> &reqwest::Client {
        match &self.visit {
            Some(visit) if visit.host == url.origin() => &visit.client,
            _ => &self.client,
        }
    }
}
