//! A listener that must never be connected to.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};

use url::Url;

use super::FORBIDDEN;

/// Listens on a forbidden address. Connections complete in its backlog, so one check at the end is enough.
pub struct Canary {
    listener: TcpListener,
    pub at: SocketAddr,
}

impl Canary {
    pub fn new() -> Self {
        Self::on(FORBIDDEN.into())
    }

    pub fn on(address: IpAddr) -> Self {
        Self::at(address, 0).unwrap()
    }

    /// # Errors
    /// If another process on this machine has that port.
    pub fn at(address: IpAddr, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((address, port))?;
        listener.set_nonblocking(true)?;
        let at = listener.local_addr()?;
        Ok(Self { listener, at })
    }

    pub fn url(&self) -> Url {
        format!("http://{}/", self.at).parse().unwrap()
    }

    pub fn was_touched(&self) -> bool {
        self.listener.accept().is_ok()
    }

    #[track_caller]
    pub fn assert_untouched(&self) {
        let error = self
            .listener
            .accept()
            .expect_err("a forbidden address was connected to");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}
