//! A TLS site on port 443 for the tests' domain: only on that port do files prove the domain and TLS keys belong to
//! the fingerprint.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};

use a2a_registry_api::DomainView;
use tempfile::NamedTempFile;

use super::{DOMAIN, OwnershipSetup};
use crate::support::in_process_registry::InProcessRegistry;
use crate::support::origin::Origin;
use crate::support::tls::{Authority, TlsFront};

/// The site.
pub struct TlsSite {
    pub origin: Origin,
    authority: Authority,
    /// The authority's certificate, as a file.
    root: NamedTempFile,
    front: TlsFront,
    address: SocketAddr,
}

impl TlsSite {
    /// Listens on an address of its own; `None`, with a printed note, if the process may not use port 443.
    pub async fn on_443() -> Option<Self> {
        let authority = Authority::new("a site's");
        let root = NamedTempFile::new().unwrap();
        std::fs::write(root.path(), authority.pem()).unwrap();
        let origin = Origin::start();
        for last in 1..=250 {
            let address = SocketAddr::from((Ipv4Addr::new(127, 0, 43, last), 443));
            match TlsFront::bind(address, authority.identity(DOMAIN), &origin).await {
                Ok(front) => {
                    return Some(Self {
                        origin,
                        authority,
                        root,
                        front,
                        address,
                    });
                }
                // Another test has it.
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                Err(error) => {
                    eprintln!("SKIPPED: port 443 cannot be listened on here: {error}");
                    return None;
                }
            }
        }
        panic!("250 sites at once");
    }

    /// The certificate of the authority.
    pub fn root(&self) -> Vec<u8> {
        self.authority.pem()
    }

    /// The listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Uses a certificate with another key from now on.
    pub fn change_key(&self) {
        self.front
            .replace_certificate(self.authority.identity(DOMAIN));
    }
}

/// The proof file that an account has to place.
pub struct ProofFile {
    /// The URL that the check fetches.
    pub url: String,
    /// The path of that URL.
    pub path: String,
    /// The required content.
    pub body: String,
}

impl ProofFile {
    /// The proof file from the account's view of the domain.
    pub fn from_view(view: &DomainView) -> Self {
        let file = view
            .challenges
            .iter()
            .find(|one| one.method.as_str() == "http");
        let file = file.unwrap();
        let url = file.url.clone().unwrap();
        let path = url.strip_prefix(&format!("https://{DOMAIN}")).unwrap();
        Self {
            path: path.to_owned(),
            body: file.body.clone().unwrap(),
            url,
        }
    }
}

impl OwnershipSetup {
    /// A registry whose resolver leads the domain's name to the site.
    pub async fn at_site(url: &str, site: &TlsSite) -> Self {
        let registry = InProcessRegistry::with_config(url, |config| {
            config.crawler.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
            config.crawler.extra_ca = vec![site.root.path().to_owned()];
        })
        .await;
        let setup = Self::with_registry(registry);
        setup.names.set(DOMAIN, [site.address.ip()]);
        setup
    }
}
