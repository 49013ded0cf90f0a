//! Resolver with scripted answers.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use a2a_crawler::dns::{DnsError, Resolver, TxtLookup};
use async_trait::async_trait;

type ScriptedAnswer = Result<Vec<IpAddr>, DnsError>;

/// Answers from a table; a name that is not in it does not exist. A host may have several answers, given one after
/// another, the last one repeatedly: so a test can change an answer between check and use.
#[derive(Debug, Default)]
pub struct StaticResolver {
    hosts: Mutex<HashMap<String, HostScript>>,
    texts: Mutex<HashMap<String, TxtLookup>>,
    zones: Mutex<HashMap<String, Vec<String>>>,
}

#[derive(Debug, Default)]
struct HostScript {
    answers: Vec<ScriptedAnswer>,
    asked: usize,
}

impl StaticResolver {
    /// A resolver without any host.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the addresses of `host`.
    pub fn set(&self, host: &str, addresses: impl IntoIterator<Item = IpAddr>) {
        self.script(host, vec![Ok(addresses.into_iter().collect())]);
    }

    /// Sets the answers for `host`, one for each look-up, the last one repeatedly.
    pub fn script(&self, host: &str, answers: Vec<Result<Vec<IpAddr>, DnsError>>) {
        let script = HostScript { answers, asked: 0 };
        self.hosts().insert(host.to_owned(), script);
    }

    /// Sets the answer to look-ups of the TXT records of `name`.
    pub fn set_texts(&self, name: &str, answer: TxtLookup) {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.insert(name.to_owned(), answer);
    }

    /// Sets the name servers of `zone`, sorted.
    pub fn set_name_servers<'a>(&self, zone: &str, servers: impl IntoIterator<Item = &'a str>) {
        let servers = servers.into_iter().map(str::to_owned).collect();
        let mut zones = self.zones.lock().unwrap_or_else(PoisonError::into_inner);
        zones.insert(zone.to_owned(), servers);
    }

    /// Number of look-ups of `host` since it was set.
    pub fn asked(&self, host: &str) -> usize {
        self.hosts().get(host).map_or(0, |script| script.asked)
    }

    fn hosts(&self) -> MutexGuard<'_, HashMap<String, HostScript>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Resolver for StaticResolver {
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, DnsError> {
        let mut hosts = self.hosts();
        let Some(script) = hosts.get_mut(host) else {
            return Err(DnsError::NoSuchHost);
        };
        let turn = script.asked.min(script.answers.len().saturating_sub(1));
        script.asked += 1;
        script
            .answers
            .get(turn)
            .cloned()
            .unwrap_or(Err(DnsError::NoSuchHost))
    }

    async fn lookup_txt(&self, name: &str) -> TxtLookup {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.get(name).cloned().unwrap_or(TxtLookup::Absent)
    }

    async fn lookup_name_servers(&self, zone: &str) -> Result<Vec<String>, DnsError> {
        let zones = self.zones.lock().unwrap_or_else(PoisonError::into_inner);
        zones.get(zone).cloned().ok_or(DnsError::NoSuchHost)
    }
}
