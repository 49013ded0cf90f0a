//! The site of the tests' domain, on port 443 with TLS: proofs, and what tells owners apart, are of that port alone.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};

use a2a_registry_api::DomainView;
use tempfile::NamedTempFile;

use super::{DOMAIN, OwnershipSetup};
use crate::support::origin::Origin;
use crate::support::stage::Stage;
use crate::support::tls::{Authority, TlsFront};

/// The site.
pub struct Site {
    pub origin: Origin,
    authority: Authority,
    /// The authority's certificate, as a file.
    root: NamedTempFile,
    front: TlsFront,
    address: SocketAddr,
}

impl Site {
    /// Listens on an address of its own. Says so loudly where only the mighty may, and is none then.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows a certificate of another key from now on.
    pub fn change_key(&self) {
        self.front.show(self.authority.identity(DOMAIN));
    }
}

/// The file that an account is told to place.
pub struct ProofFile {
    /// Where it is looked for.
    pub url: String,
    /// Where on the site that is.
    pub path: String,
    /// What it holds.
    pub body: String,
}

impl ProofFile {
    /// The one that an account is shown.
    pub fn of(view: &DomainView) -> Self {
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
    /// A registry that reaches the site, whose name leads there.
    pub async fn at(url: &str, site: &Site) -> Self {
        let stage = Stage::with(url, |config| {
            config.crawler.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
            config.crawler.extra_ca = vec![site.root.path().to_owned()];
        })
        .await;
        let house = Self::on(stage);
        house.names.set(DOMAIN, [site.address.ip()]);
        house
    }
}
