//! Hosts with names of their own, all on one loopback port: HTTPS by certificates of an authority that is made at the
//! start, and the answers of DNS about the names.
//!
//! Nothing of it reaches the network. The names belong to nobody (RFC 2606), the authority may certify no others, and
//! its key is dropped as soon as it has signed the one certificate.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use a2a_crawler::dns::{DnsError, Resolver, TxtLookup, TxtRecords};
use a2a_crawler::guard::{ConnectOverride, SsrfGuard};
use async_trait::async_trait;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CidrSubnet, DnType, GeneralSubtree, IsCa,
    KeyPair, KeyUsagePurpose, NameConstraints,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use time::OffsetDateTime;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// How long the certificates are valid.
const VALIDITY: time::Duration = time::Duration::days(30);
/// Clocks that are late by this much still accept them.
const CLOCK_TOLERANCE: time::Duration = time::Duration::hours(1);
/// Limits of a connection.
const MAX_REQUEST_BYTES: usize = 16 * 1024;
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_CONNECTIONS: usize = 64;
/// Name server of every name.
const NAME_SERVER: &str = "ns.example.com";

/// Running hosts. They stop with [`NamedHosts::stop`], or with the runtime they were started in.
#[derive(Debug)]
pub struct NamedHosts {
    names: Vec<String>,
    address: SocketAddr,
    authority_pem: String,
    content: Arc<Mutex<HostContent>>,
    server: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct HostContent {
    /// Documents by host and path.
    documents: HashMap<(String, String), Vec<u8>>,
    /// TXT records by name.
    txt_records: HashMap<String, Vec<String>>,
}

type SharedContent = Arc<Mutex<HostContent>>;

/// Resolver that answers for the names itself and asks another one about all others.
#[derive(Debug)]
struct NamedHostResolver {
    /// The registrable domains of the names.
    zones: Vec<String>,
    address: IpAddr,
    content: SharedContent,
    others: Arc<dyn Resolver>,
}

impl NamedHosts {
    /// Starts hosts with these names on a free loopback port, in the current tokio runtime.
    ///
    /// # Errors
    /// If no port is free, or no certificate can be made.
    pub async fn start(names: &[&str], now: OffsetDateTime) -> io::Result<Self> {
        let (authority_pem, acceptor) = certify_names(names, now).map_err(io::Error::other)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let content = SharedContent::default();
        let server = tokio::spawn(accept_connections(listener, acceptor, Arc::clone(&content)));
        Ok(Self {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            address,
            authority_pem,
            content,
            server,
        })
    }

    /// The certificate of the authority, which signs for these names only.
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// For each name where it is reached.
    pub fn connect_overrides(&self) -> impl Iterator<Item = ConnectOverride> {
        self.names.iter().map(|name| ConnectOverride {
            host: name.clone(),
            address: self.address,
        })
    }

    /// Resolver that answers for the names, and asks `others` about every other name.
    pub fn resolver(&self, others: Arc<dyn Resolver>) -> Arc<dyn Resolver> {
        let zones = self
            .names
            .iter()
            .map(|name| SsrfGuard::registrable_domain(name).to_owned());
        Arc::new(NamedHostResolver {
            zones: zones.collect(),
            address: self.address.ip(),
            content: Arc::clone(&self.content),
            others,
        })
    }

    /// Serves a document at a path of a host from now on.
    pub fn set_document(&self, host: &str, path: &str, document: Vec<u8>) {
        let key = (host.to_owned(), path.to_owned());
        lock_content(&self.content).documents.insert(key, document);
    }

    /// Adds a TXT record.
    pub fn add_txt_record(&self, name: &str, value: &str) {
        let mut content = lock_content(&self.content);
        let records = content.txt_records.entry(name.to_lowercase()).or_default();
        records.push(value.to_owned());
    }

    /// Stops the hosts and waits until their port is free.
    pub async fn stop(self) {
        self.server.abort();
        // A task that was aborted has stopped.
        let _ = self.server.await;
    }
}

fn lock_content(content: &Mutex<HostContent>) -> std::sync::MutexGuard<'_, HostContent> {
    content.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Resolver for NamedHostResolver {
    async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, DnsError> {
        match self.is_own_name(host) {
            true => Ok(vec![self.address]),
            false => self.others.resolve(host).await,
        }
    }

    async fn lookup_txt(&self, name: &str) -> TxtLookup {
        if !self.is_own_name(name) {
            return self.others.lookup_txt(name).await;
        }
        let content = lock_content(&self.content);
        let Some(texts) = content.txt_records.get(&name.to_lowercase()) else {
            return TxtLookup::Absent;
        };
        let mut records = TxtRecords::default();
        for text in texts {
            records.push([text]);
        }
        TxtLookup::Records(records)
    }

    async fn lookup_name_servers(&self, zone: &str) -> Result<Vec<String>, DnsError> {
        match self.is_own_name(zone) {
            true => Ok(vec![NAME_SERVER.to_owned()]),
            false => self.others.lookup_name_servers(zone).await,
        }
    }
}

impl NamedHostResolver {
    fn is_own_name(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.').to_lowercase();
        self.zones.iter().any(|zone| {
            let rest = name.strip_suffix(zone.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    }
}

/// An authority whose certificates are accepted for these names and the names below them only.
fn make_authority(
    names: &[String],
    now: OffsetDateTime,
) -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority
        .distinguished_name
        .push(DnType::CommonName, "a2a-registry demo");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    authority.name_constraints = Some(NameConstraints {
        permitted_subtrees: names.iter().cloned().map(GeneralSubtree::DnsName).collect(),
        excluded_subtrees: vec![
            GeneralSubtree::IpAddress(CidrSubnet::V4([0; 4], [0; 4])),
            GeneralSubtree::IpAddress(CidrSubnet::V6([0; 16], [0; 16])),
        ],
    });
    authority.not_before = now - CLOCK_TOLERANCE;
    authority.not_after = now + VALIDITY;
    CertifiedIssuer::self_signed(authority, KeyPair::generate()?)
}

/// A certificate for the names, and the certificate of the authority that signed it.
fn certify_names(
    names: &[&str],
    now: OffsetDateTime,
) -> Result<(String, TlsAcceptor), Box<dyn std::error::Error + Send + Sync>> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let issuer = make_authority(&names, now)?;
    let mut certified = CertificateParams::new(names)?;
    certified.not_before = now - CLOCK_TOLERANCE;
    certified.not_after = now + VALIDITY;
    let key = KeyPair::generate()?;
    let certificate: CertificateDer<'static> = certified.signed_by(&key, &issuer)?.into();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((issuer.pem(), TlsAcceptor::from(Arc::new(config))))
}

async fn accept_connections(listener: TcpListener, acceptor: TlsAcceptor, content: SharedContent) {
    let free_places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(place) = Arc::clone(&free_places).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (acceptor, content) = (acceptor.clone(), Arc::clone(&content));
        tokio::spawn(async move {
            // A client that breaks off, or is too slow, gets no response.
            let _ = timeout(
                CONNECTION_TIMEOUT,
                serve_connection(stream, acceptor, content),
            )
            .await;
            drop(place);
        });
    }
}

/// Responds to one request.
async fn serve_connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    content: SharedContent,
) -> io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > MAX_REQUEST_BYTES || stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let document = requested_document(&String::from_utf8_lossy(&head))
        .and_then(|key| lock_content(&content).documents.get(&key).cloned());
    let (status, body) = match document {
        Some(document) => ("200 OK", document),
        None => ("404 Not Found", b"{}".to_vec()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\ncache-control: max-age=60\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await
}

/// Host and path of a `GET`.
fn requested_document(head: &str) -> Option<(String, String)> {
    let mut lines = head.lines();
    let path = lines.next()?.strip_prefix("GET ")?.split(' ').next()?;
    let host = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    })?;
    Some((host.to_lowercase(), path.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use a2a_crawler::dns::EmptyResolver;
    use a2a_crawler::fetch::{FetchLimits, Fetcher, FetcherConfig, GetOptions};
    use a2a_crawler::guard::GuardConfig;
    use a2a_crawler::{AttemptOutcome, SystemClock};
    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    const CARD: &str = "/.well-known/agent-card.json";

    fn fetcher(hosts: &NamedHosts, connect: Vec<ConnectOverride>) -> Fetcher {
        let config = FetcherConfig {
            guard: SsrfGuard::new(GuardConfig {
                connect,
                ..GuardConfig::default()
            }),
            limits: FetchLimits::default(),
            contact_url: None,
            extra_ca: vec![hosts.authority_pem().as_bytes().to_vec()],
            key_hosts: Vec::new(),
        };
        let resolver = hosts.resolver(Arc::new(EmptyResolver));
        Fetcher::new(config, resolver, Arc::new(SystemClock)).unwrap()
    }

    async fn hosts() -> NamedHosts {
        // The fetcher verifies certificates by the system's clock.
        let now = a2a_crawler::Clock::now(&SystemClock);
        let hosts = NamedHosts::start(&["a.example.com", "b.example.net"], now).await;
        let hosts = hosts.unwrap();
        hosts.set_document("a.example.com", CARD, b"{\"a\":1}".to_vec());
        hosts
    }

    async fn fetch(fetcher: &Fetcher, url: &str) -> Result<(u16, Vec<u8>), AttemptOutcome> {
        let record = fetcher
            .get(&url.parse().unwrap(), &GetOptions::default())
            .await;
        let response = record.result.map_err(|error| error.outcome)?;
        Ok((response.status, response.body))
    }

    /// The crawler reaches the names by their overrides, over TLS that is verified, and nothing else of this machine.
    #[tokio::test]
    async fn the_crawler_reaches_each_name_and_nothing_else_here() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let hosts = hosts().await;
        let open = fetcher(&hosts, hosts.connect_overrides().collect());
        let card = |host: &str| format!("https://{host}{CARD}");
        assert_eq!(
            fetch(&open, &card("a.example.com")).await,
            Ok((200, b"{\"a\":1}".to_vec()))
        );
        let (status, _) = fetch(&open, &card("b.example.net")).await.unwrap();
        assert_eq!(status, 404);
        // Without an override the name leads to this machine, which the guard refuses.
        let closed = fetcher(&hosts, Vec::new());
        let refused = Err(AttemptOutcome::Refused);
        assert_eq!(fetch(&closed, &card("a.example.com")).await, refused);
        assert_eq!(fetch(&open, &card("c.example.com")).await, refused);
        // A certificate for another name does not do.
        let mut wrong: Vec<_> = hosts.connect_overrides().collect();
        wrong[0].host = "c.example.com".to_owned();
        let wrong = fetcher(&hosts, wrong);
        assert_eq!(
            fetch(&wrong, &card("c.example.com")).await,
            Err(AttemptOutcome::TlsInvalid)
        );
        hosts.stop().await;
    }

    #[tokio::test]
    async fn the_names_are_answered_here_and_all_others_elsewhere() {
        let hosts = hosts().await;
        hosts.add_txt_record("_a2a-registry.a.example.com", "here");
        let resolver = hosts.resolver(Arc::new(EmptyResolver));
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert_eq!(resolver.resolve("a.example.com").await, Ok(vec![loopback]));
        let found = resolver.lookup_txt("_a2a-registry.a.example.com").await;
        assert!(matches!(found, TxtLookup::Records(found) if found.records == ["here"]));
        let absent = resolver.lookup_txt("_a2a-registry.example.com").await;
        assert_eq!(absent, TxtLookup::Absent);
        let other = resolver.resolve("example.org").await;
        assert_eq!(other, Err(DnsError::NoSuchHost));
        hosts.stop().await;
    }

    #[test]
    fn the_authority_signs_for_its_names_only() {
        let now = a2a_crawler::Clock::now(&SystemClock);
        let authority = make_authority(&["a.example.com".to_owned()], now).unwrap();
        assert!(!authority.pem().contains("PRIVATE KEY"));
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build().unwrap();
        let is_accepted = |name: &str| {
            let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            let key = KeyPair::generate().unwrap();
            let signed = params.signed_by(&key, &authority).unwrap();
            let server = ServerName::try_from(name.to_owned()).unwrap();
            verifier
                .verify_server_cert(signed.der(), &[], &server, &[], UnixTime::now())
                .is_ok()
        };
        assert!(is_accepted("a.example.com"));
        for other in [
            "example.com",
            "b.example.com",
            "aa.example.com",
            "example.net",
            "127.0.0.1",
        ] {
            assert!(!is_accepted(other), "{other}");
        }
    }

    #[test]
    fn a_request_names_host_and_path() {
        let read = |head: &str| requested_document(head);
        let expected = Some(("a.example.com".to_owned(), "/x".to_owned()));
        assert_eq!(
            read("GET /x HTTP/1.1\r\nHost: A.example.com\r\n\r\n"),
            expected
        );
        for wrong in [
            "",
            "GET /x HTTP/1.1\r\n\r\n",
            "POST /x HTTP/1.1\r\nhost: a\r\n\r\n",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
