//! Addresses of agents, and the request that asks each of them for a task that does not exist.

use a2a_card::{AgentCard, Interface, named_enum};
use serde_json::json;
use url::{Host, Url};

use super::ABSENT_TASK_ID;
use crate::fetch::EndpointRequest;
use crate::guard::SsrfGuard;

named_enum! {
    /// The form in which an agent is asked: a protocol binding of one generation of the protocol. The first one that a
    /// card declares is used: HTTP+JSON first, because a GET changes nothing at a server that is no agent.
    pub enum EndpointForm {
        /// 1.0 over HTTP+JSON.
        HttpJsonV1 = "http_json_1",
        /// 0.3 over HTTP+JSON.
        HttpJsonV0 = "http_json_0",
        /// 1.0 over gRPC.
        GrpcV1 = "grpc_1",
        /// 0.3 over gRPC.
        GrpcV0 = "grpc_0",
        /// 1.0 over JSON-RPC.
        JsonRpcV1 = "json_rpc_1",
        /// 0.1, 0.2 and 0.3 over JSON-RPC.
        JsonRpcV0 = "json_rpc_0",
    }
}

impl EndpointForm {
    /// The form of an interface; `None` for a binding or version that is not checked. A JSON-RPC interface without a
    /// version is one of before 1.0, because only cards of that time may omit it.
    fn from_interface(interface: &Interface) -> Option<Self> {
        let version = interface.protocol_version.as_deref();
        let is_v1 = version.map(|version| version == "1" || version.starts_with("1."));
        let is_v0_3 = version == Some("0.3");
        let is_v0 = is_v0_3 || matches!(version, Some("0.1" | "0.2"));
        let binding = interface.binding.trim().to_ascii_uppercase();
        match (binding.as_str(), is_v1) {
            ("HTTP+JSON", None | Some(true)) => Some(Self::HttpJsonV1),
            ("HTTP+JSON", Some(false)) if is_v0_3 => Some(Self::HttpJsonV0),
            ("GRPC", None | Some(true)) => Some(Self::GrpcV1),
            ("GRPC", Some(false)) if is_v0_3 => Some(Self::GrpcV0),
            ("JSONRPC", Some(true)) => Some(Self::JsonRpcV1),
            ("JSONRPC", None) => Some(Self::JsonRpcV0),
            ("JSONRPC", Some(false)) if is_v0 => Some(Self::JsonRpcV0),
            _ => None,
        }
    }

    /// Whether it is a form of 1.0.
    pub const fn is_v1(self) -> bool {
        matches!(self, Self::HttpJsonV1 | Self::GrpcV1 | Self::JsonRpcV1)
    }

    /// Whether the request is a gRPC call.
    pub const fn is_grpc(self) -> bool {
        matches!(self, Self::GrpcV1 | Self::GrpcV0)
    }

    /// Whether the request is a JSON-RPC call.
    pub const fn is_json_rpc(self) -> bool {
        matches!(self, Self::JsonRpcV1 | Self::JsonRpcV0)
    }

    /// The protocol binding, as cards name it.
    pub const fn binding(self) -> &'static str {
        match self {
            Self::HttpJsonV1 | Self::HttpJsonV0 => "HTTP+JSON",
            Self::GrpcV1 | Self::GrpcV0 => "GRPC",
            Self::JsonRpcV1 | Self::JsonRpcV0 => "JSONRPC",
        }
    }
}

/// Where and how one agent is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointAddress {
    /// The form of the request.
    pub form: EndpointForm,
    /// The URL of the interface.
    pub url: Url,
    /// The tenant that 1.0 wants in every request.
    pub tenant: Option<String>,
}

impl EndpointAddress {
    /// The addresses of a card that can be checked, in the order of preference: by form, then in the card's order.
    pub fn from_card(card: &AgentCard) -> Vec<Self> {
        let interfaces = card.interfaces.iter();
        let mut addresses: Vec<Self> = interfaces.filter_map(Self::from_interface).collect();
        addresses.sort_by_key(|address| address.form);
        addresses
    }

    fn from_interface(interface: &Interface) -> Option<Self> {
        let form = EndpointForm::from_interface(interface)?;
        let mut url = match form.is_grpc() {
            true => parse_grpc_url(&interface.url)?,
            false => Url::parse(&interface.url).ok()?,
        };
        url.set_fragment(None);
        let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
        is_http.then(|| Self {
            form,
            url,
            tenant: interface
                .tenant
                .clone()
                .filter(|tenant| form.is_v1() && !tenant.is_empty()),
        })
    }

    /// Scheme, host and port, without the scheme's default port.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// The registrable domain of the host, or the host itself if it has none.
    pub fn site(&self) -> &str {
        match self.url.host() {
            Some(Host::Domain(name)) => SsrfGuard::registrable_domain(name),
            _ => self.url.host_str().unwrap_or_default(),
        }
    }

    pub(crate) fn request(&self) -> EndpointRequest {
        let (url, body) = match self.form {
            EndpointForm::HttpJsonV1 => (self.task_url(&["tasks", ABSENT_TASK_ID]), None),
            EndpointForm::HttpJsonV0 => (self.task_url(&["v1", "tasks", ABSENT_TASK_ID]), None),
            EndpointForm::GrpcV1 => {
                let mut message = Vec::new();
                if let Some(tenant) = &self.tenant {
                    push_text_field(&mut message, 1, tenant);
                }
                push_text_field(&mut message, 2, ABSENT_TASK_ID);
                let url = self.grpc_method_url("/lf.a2a.v1.A2AService/GetTask");
                (url, Some(grpc_frame(&message)))
            }
            EndpointForm::GrpcV0 => {
                let mut message = Vec::new();
                push_text_field(&mut message, 1, &format!("tasks/{ABSENT_TASK_ID}"));
                let url = self.grpc_method_url("/a2a.v1.A2AService/GetTask");
                (url, Some(grpc_frame(&message)))
            }
            EndpointForm::JsonRpcV1 | EndpointForm::JsonRpcV0 => {
                (self.url.clone(), Some(self.json_rpc_call()))
            }
        };
        EndpointRequest {
            url,
            body,
            is_v1: self.form.is_v1(),
            is_grpc: self.form.is_grpc(),
        }
    }

    /// The URL of a task over HTTP+JSON: below the interface's address and the tenant. Segments are escaped, so that a
    /// tenant cannot lead to another path.
    fn task_url(&self, segments: &[&str]) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty();
            path.extend(self.tenant.as_deref());
            path.extend(segments);
        }
        url
    }

    /// The URL of a gRPC method: the path is the method's, whatever path the address has.
    fn grpc_method_url(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        url.set_path(path);
        url.set_query(None);
        url
    }

    fn json_rpc_call(&self) -> Vec<u8> {
        let method = match self.form.is_v1() {
            true => "GetTask",
            false => "tasks/get",
        };
        let mut params = json!({"id": ABSENT_TASK_ID});
        if let Some(tenant) = &self.tenant {
            params["tenant"] = tenant.as_str().into();
        }
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            .to_string()
            .into_bytes()
    }
}

/// The address of a gRPC server. A bare `host:port` means TLS.
fn parse_grpc_url(text: &str) -> Option<Url> {
    let (scheme, rest) = match text.split_once("://") {
        Some(("http", rest)) => ("http", rest),
        Some(("https" | "grpcs" | "grpc", rest)) => ("https", rest),
        Some(_) => return None,
        None => ("https", text),
    };
    Url::parse(&format!("{scheme}://{rest}")).ok()
}

/// Appends a string field of a Protocol Buffers message.
fn push_text_field(message: &mut Vec<u8>, field: u8, text: &str) {
    const LENGTH_DELIMITED: u8 = 2;
    message.push((field << 3) | LENGTH_DELIMITED);
    let mut length = text.len();
    while length > 0x7f {
        message.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    message.push((length & 0x7f) as u8);
    message.extend_from_slice(text.as_bytes());
}

/// The frame of an uncompressed gRPC message. Messages are short: a tenant comes from a card of limited size.
fn grpc_frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut frame = vec![0];
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(message);
    frame
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;

    fn interface(url: &str, binding: &str, version: Option<&str>) -> Interface {
        Interface {
            url: url.to_owned(),
            binding: binding.to_owned(),
            protocol_version: version.map(str::to_owned),
            tenant: None,
        }
    }

    fn card(interfaces: &[(&str, &str, Option<&str>)]) -> AgentCard {
        AgentCard {
            interfaces: interfaces
                .iter()
                .map(|&(url, binding, version)| interface(url, binding, version))
                .collect(),
            ..AgentCard::default()
        }
    }

    #[test]
    fn http_json_comes_first_then_grpc_then_json_rpc() {
        let card = card(&[
            ("https://a.example/rpc", "JSONRPC", Some("1.0")),
            ("a.example:443", "GRPC", Some("1.0")),
            ("https://a.example/rest", "http+json", Some("1.1")),
            ("https://a.example/old", "HTTP+JSON", Some("0.3")),
            ("https://a.example/other", "HTTP+JSON", Some("1.0")),
        ]);
        let addresses = EndpointAddress::from_card(&card);
        let urls = addresses.iter().map(|one| one.url.as_str());
        assert_eq!(
            urls.collect::<Vec<_>>(),
            [
                "https://a.example/rest",
                "https://a.example/other",
                "https://a.example/old",
                "https://a.example/",
                "https://a.example/rpc",
            ]
        );
    }

    #[test]
    fn what_cannot_be_asked_is_no_address() {
        for (url, binding, version) in [
            ("https://a.example/", "PIGEON", Some("1.0")),
            ("https://a.example/", "JSONRPC", Some("2.0")),
            ("https://a.example/", "JSONRPC", Some("0.9")),
            ("https://a.example/", "GRPC", Some("0.2")),
            ("https://a.example/", "HTTP+JSON", Some("0.2")),
            ("/relative", "JSONRPC", Some("1.0")),
            ("ftp://a.example/", "JSONRPC", Some("1.0")),
            ("dns:///a.example", "GRPC", Some("1.0")),
            ("", "JSONRPC", None),
        ] {
            let found = EndpointAddress::from_card(&card(&[(url, binding, version)]));
            assert!(found.is_empty(), "{url} {binding} {version:?}: {found:?}");
        }
    }

    #[test]
    fn every_form_asks_for_the_absent_task() {
        let id = ABSENT_TASK_ID;
        for (url, binding, version, expected_url, expected_body) in [
            (
                "https://a.example/rest/?k=v",
                "HTTP+JSON",
                Some("1.0"),
                format!("https://a.example/rest/tasks/{id}?k=v"),
                None,
            ),
            (
                "https://a.example/rest",
                "HTTP+JSON",
                Some("0.3"),
                format!("https://a.example/rest/v1/tasks/{id}"),
                None,
            ),
            (
                "https://a.example/rpc",
                "JSONRPC",
                Some("1.0"),
                "https://a.example/rpc".to_owned(),
                Some("\"method\":\"GetTask\""),
            ),
            (
                "https://a.example/rpc",
                "JSONRPC",
                None,
                "https://a.example/rpc".to_owned(),
                Some("\"method\":\"tasks/get\""),
            ),
            (
                "http://a.example:50051/ignored",
                "GRPC",
                Some("1.0"),
                "http://a.example:50051/lf.a2a.v1.A2AService/GetTask".to_owned(),
                Some("\u{12}\u{24}"),
            ),
            (
                "a.example:443",
                "GRPC",
                Some("0.3"),
                "https://a.example/a2a.v1.A2AService/GetTask".to_owned(),
                Some("\u{0a}\u{2a}tasks/"),
            ),
        ] {
            let addresses = EndpointAddress::from_card(&card(&[(url, binding, version)]));
            let request = addresses[0].request();
            assert_eq!(request.url.as_str(), expected_url);
            let body = request.body.map(|body| String::from_utf8(body).unwrap());
            match (body, expected_body) {
                (None, None) => {}
                (Some(body), Some(part)) => {
                    assert!(body.contains(part) && body.contains(id), "{body}");
                    assert!(!body.to_lowercase().contains("message"), "{body}");
                }
                other => panic!("{url}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_tenant_is_named_as_each_binding_wants_it() {
        let address = |binding| {
            let interface = Interface {
                tenant: Some("a/../b".to_owned()),
                ..interface("https://a.example/x", binding, Some("1.0"))
            };
            EndpointAddress::from_interface(&interface).unwrap()
        };
        let url = address("HTTP+JSON").request().url;
        assert_eq!(url.path(), format!("/x/a%2F..%2Fb/tasks/{ABSENT_TASK_ID}"));
        let body = address("JSONRPC").request().body.unwrap();
        assert!(
            String::from_utf8(body)
                .unwrap()
                .contains(r#""tenant":"a/../b""#)
        );
        let frame = address("GRPC").request().body.unwrap();
        assert_eq!(&frame[..13], b"\0\0\0\0\x2e\x0a\x06a/../b");
        let mut long = Vec::new();
        push_text_field(&mut long, 1, &"x".repeat(300));
        assert_eq!(&long[..3], b"\x0a\xac\x02");
    }
}
