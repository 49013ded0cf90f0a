//! TLS in front of an origin.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::origin::Origin;

#[path = "../../crawler/tests/crawl/support/trust.rs"]
#[allow(dead_code, reason = "the crawler's tests use more of it")]
mod trust;

pub use trust::{Authority, Identity};

/// A TLS terminator on an address of its own that forwards to an origin.
pub struct TlsFront {
    address: SocketAddr,
    current: Arc<Mutex<CurrentCertificate>>,
    _accepting: AbortOnDropHandle<()>,
}

/// The current certificate, and the token that ends the connections made with it.
struct CurrentCertificate {
    identity: Identity,
    /// The authority whose certificates clients must present, if any.
    client_authority: Option<Vec<u8>>,
    ended: CancellationToken,
}

impl CurrentCertificate {
    fn acceptor(&self) -> TlsAcceptor {
        match &self.client_authority {
            Some(authority) => self.identity.mutual_acceptor(authority),
            None => self.identity.acceptor(None),
        }
    }
}

impl TlsFront {
    /// Starts to listen in front of an origin.
    ///
    /// # Errors
    ///
    /// If the address is taken, or its port needs privileges.
    pub async fn bind(
        address: SocketAddr,
        identity: Identity,
        behind: &Origin,
    ) -> io::Result<Self> {
        Self::bind_before_address(address, identity, None, behind.address()).await
    }

    /// Starts to listen in front of any server.
    ///
    /// # Errors
    ///
    /// As [`TlsFront::bind`].
    pub async fn bind_before_server(
        address: SocketAddr,
        identity: Identity,
        behind: SocketAddr,
    ) -> io::Result<Self> {
        Self::bind_before_address(address, identity, None, behind).await
    }

    /// Starts to listen on loopback, only for clients with a certificate of that authority.
    pub async fn bind_mutual(identity: Identity, clients: &Authority, behind: &Origin) -> Self {
        let address = ([127, 0, 0, 1], 0).into();
        let clients = Some(clients.der());
        let bound = Self::bind_before_address(address, identity, clients, behind.address()).await;
        bound.unwrap()
    }

    async fn bind_before_address(
        address: SocketAddr,
        identity: Identity,
        clients: Option<Vec<u8>>,
        behind: SocketAddr,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shown = Arc::new(Mutex::new(CurrentCertificate {
            identity,
            client_authority: clients,
            ended: CancellationToken::new(),
        }));
        let now = Arc::clone(&shown);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, ended) = {
                    let shown = now.lock().unwrap();
                    (shown.acceptor(), shown.ended.clone())
                };
                tokio::spawn(ended.run_until_cancelled_owned(async move {
                    // A client that rejects the certificate closes the connection.
                    let Ok(mut near) = acceptor.accept(stream).await else {
                        return;
                    };
                    let mut far = TcpStream::connect(behind).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                }));
            }
        });
        Ok(Self {
            address,
            current: shown,
            _accepting: AbortOnDropHandle::new(accepting),
        })
    }

    /// The URL of a path, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// Uses another certificate from now on, and ends the connections made with the old one.
    pub fn replace_certificate(&self, identity: Identity) {
        let mut shown = self.current.lock().unwrap();
        shown.ended.cancel();
        let clients = shown.client_authority.take();
        *shown = CurrentCertificate {
            identity,
            client_authority: clients,
            ended: CancellationToken::new(),
        };
    }
}
