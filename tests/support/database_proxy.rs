//! A proxy between a registry and its PostgreSQL server, which can be cut.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use url::Url;

/// What a proxy does with connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyState {
    /// Every byte is passed on.
    Forwarding,
    /// As behind a cut cable: no bytes arrive, and no error either. The connections end with this state.
    Silent,
    /// As while the server restarts: connections are closed, and new ones too.
    Refusing,
}

/// A proxy on a loopback port of its own, for one registry.
pub struct DatabaseProxy {
    url: Url,
    state: watch::Sender<ProxyState>,
}

impl DatabaseProxy {
    /// Starts a proxy to the server of this database.
    pub async fn start(database_url: &str) -> Self {
        let mut url = Url::parse(database_url).unwrap();
        let server = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(address.port())).unwrap();
        let state = watch::Sender::new(ProxyState::Forwarding);
        let receiver = state.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server.clone(), receiver.clone()));
            }
        });
        Self { url, state }
    }

    /// The URL of the database through this proxy.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Changes what happens to connections, open ones too.
    pub fn set_state(&self, state: ProxyState) {
        self.state.send_replace(state);
    }
}

async fn forward(mut client: TcpStream, server: String, mut state: watch::Receiver<ProxyState>) {
    if *state.borrow() == ProxyState::Refusing {
        return;
    }
    let Ok(mut upstream) = TcpStream::connect(server).await else {
        return;
    };
    tokio::select! {
        biased;
        _ = state.wait_for(|state| *state != ProxyState::Forwarding) => {}
        _ = copy_bidirectional(&mut client, &mut upstream) => return,
    }
    // An error means that the test has ended.
    let _ = state.wait_for(|state| *state != ProxyState::Silent).await;
}
