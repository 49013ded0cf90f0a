//! Debian's nginx with the shipped configurations: in front of one or more registries, and in front of an agent.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use reqwest::Client;
use tokio::process::Command;

use super::polling::eventually;
use super::program::Program;
use super::tls::Authority;
use super::{free_port, install_tls};

const SHIPPED: &str = include_str!("../../packaging/nginx/a2a-registry.conf");
const SHIPPED_GATEWAY: &str = include_str!("../../packaging/nginx/agent-gateway.conf");
const HOST: &str = "registry.example.com";
/// The address of the clients. The proxy and the registries are at 127.0.0.1, which alone is trusted.
pub const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));
/// A header that the shipped configuration does not send: the address of the registry that has answered.
pub const SERVED_BY: &str = "x-served-by";

/// An installed nginx, and the ports that it will listen on.
pub struct NginxSite {
    program: PathBuf,
    tls_port: u16,
    plain_port: u16,
}

/// An agent behind a gateway, and the registry that the gateway asks.
pub struct GuardedAgent<'a> {
    /// Host and port of the agent.
    pub address: &'a str,
    /// Its id at the registry.
    pub id: &'a str,
    pub registry_port: u16,
    /// The token with which the gateway asks.
    pub token: &'a str,
}

/// A running nginx. Dropping it kills it.
pub struct Nginx {
    _program: Program,
    /// A client that trusts its certificate.
    pub client: Client,
}

impl NginxSite {
    /// The program that `tests/run` unpacked, or an installed one, which Debian keeps out of the PATH of users; `None` if
    /// there is neither.
    pub fn find() -> Option<Self> {
        let unpacked = std::env::var_os("A2A_REGISTRY_TEST_NGINX").map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
        let installed = folders.map(|folder| folder.join("nginx"));
        let mut programs = unpacked.into_iter().chain(installed);
        let program = programs.find(|program| program.is_file())?;
        Some(Self {
            program,
            tls_port: free_port(),
            plain_port: free_port(),
        })
    }

    /// The URL of the site.
    pub fn url(&self) -> String {
        format!("https://{HOST}:{}", self.tls_port)
    }

    /// The address that answers plain requests.
    pub fn plain_address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.plain_port).into()
    }

    /// Starts nginx in front of the registries on these ports, with its files in that folder.
    pub async fn start(&self, folder: &Path, registry_ports: &[u16]) -> Nginx {
        self.start_with(folder, &self.adapted(folder, registry_ports))
            .await
    }

    /// Starts nginx in front of an agent, with its files in that folder.
    pub async fn start_gateway(&self, folder: &Path, agent: &GuardedAgent<'_>) -> Nginx {
        self.start_with(folder, &self.adapted_gateway(folder, agent))
            .await
    }

    async fn start_with(&self, folder: &Path, configuration: &str) -> Nginx {
        install_tls();
        let authority = Authority::new("the proxy's");
        let (certificate, key) = authority.identity(HOST).pem();
        std::fs::write(folder.join("certificate.pem"), certificate).unwrap();
        std::fs::write(folder.join("key.pem"), key).unwrap();
        let file = folder.join("a2a-registry.conf");
        std::fs::write(&file, configuration).unwrap();
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary = temporary.map(|name| format!("    {name}_temp_path temp_{name};\n"));
        let frame = format!(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr notice;\nevents {{}}\nhttp {{\n    \
             access_log off;\n{}    include {};\n}}\n",
            temporary.concat(),
            file.display()
        );
        let main = folder.join("nginx.conf");
        std::fs::write(&main, frame).unwrap();
        let mut command = Command::new(&self.program);
        command.arg("-p").arg(folder).arg("-c").arg(&main);
        command.arg("-e").arg("stderr");
        let program = Program::start(command);
        let root = reqwest::Certificate::from_pem(&authority.pem()).unwrap();
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .tls_certs_only([root])
            .resolve(HOST, ([127, 0, 0, 1], self.tls_port).into())
            .local_address(CLIENT)
            .build()
            .unwrap();
        eventually("nginx answers", async || {
            client
                .get(format!("{}/livez", self.url()))
                .send()
                .await
                .ok()
        })
        .await;
        Nginx {
            _program: program,
            client,
        }
    }

    /// The shipped file with other names, paths and ports, and with [`SERVED_BY`]. Each replaced text must occur.
    fn adapted(&self, folder: &Path, registry_ports: &[u16]) -> String {
        let Self {
            tls_port,
            plain_port,
            ..
        } = self;
        let upstream = |port: &u16| format!("server 127.0.0.1:{port} max_fails=2 fail_timeout=2s;");
        let upstreams: Vec<String> = registry_ports.iter().map(upstream).collect();
        let replacements = [
            ("listen 443 ssl", format!("listen 127.0.0.1:{tls_port} ssl")),
            ("listen 80;", format!("listen 127.0.0.1:{plain_port};")),
            (
                "/etc/ssl/certs/registry.example.com.pem",
                folder.join("certificate.pem").display().to_string(),
            ),
            (
                "/etc/ssl/private/registry.example.com.key",
                folder.join("key.pem").display().to_string(),
            ),
            (
                "server 127.0.0.1:8080 max_fails=2 fail_timeout=2s;",
                upstreams.join("\n    "),
            ),
            (
                "proxy_http_version 1.1;",
                format!(
                    "proxy_http_version 1.1;\n    add_header {SERVED_BY} $upstream_addr always;"
                ),
            ),
        ];
        replace_all(SHIPPED, replacements)
    }

    /// The shipped file of a gateway with another name, and with other paths and addresses.
    fn adapted_gateway(&self, folder: &Path, agent: &GuardedAgent<'_>) -> String {
        let replacements = [
            (
                "listen 443 ssl",
                format!("listen 127.0.0.1:{} ssl", self.tls_port),
            ),
            (
                "/etc/ssl/certs/agent.example.com.pem",
                folder.join("certificate.pem").display().to_string(),
            ),
            (
                "/etc/ssl/private/agent.example.com.key",
                folder.join("key.pem").display().to_string(),
            ),
            (
                "server_name agent.example.com",
                format!("server_name {HOST}"),
            ),
            (
                "server 127.0.0.1:8080",
                format!("server 127.0.0.1:{}", agent.registry_port),
            ),
            ("agent=AGENT;", format!("agent={};", agent.id)),
            ("Bearer TOKEN", format!("Bearer {}", agent.token)),
            (
                "proxy_pass http://127.0.0.1:9000;",
                format!("proxy_pass http://{};", agent.address),
            ),
        ];
        replace_all(SHIPPED_GATEWAY, replacements)
    }
}

/// Replaces texts, each of which must occur.
fn replace_all<const N: usize>(text: &str, replacements: [(&str, String); N]) -> String {
    let replace = |text: String, (from, to): (&str, String)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, &to)
    };
    replacements.into_iter().fold(text.to_owned(), replace)
}
