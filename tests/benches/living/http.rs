//! Single requests to a server, one connection each.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A request with these header lines (each with its line end) and a body, which is empty for none.
pub fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Vec<u8> {
    let body_headers = match body.is_empty() {
        true => String::new(),
        false => format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        ),
    };
    format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{headers}{body_headers}\r\n{body}")
        .into_bytes()
}

/// The header line of a token; nothing without one.
pub fn bearer(token: &str) -> String {
    match token.is_empty() {
        true => String::new(),
        false => format!("Authorization: Bearer {token}\r\n"),
    }
}

/// Sends a request with a token, which may be empty, and returns status and body of its response; a body that is no JSON is
/// null.
pub fn call(
    address: SocketAddr,
    method: &str,
    path: &str,
    token: &str,
    body: &str,
) -> (u16, Value) {
    let headers = format!("Connection: close\r\n{}", bearer(token));
    let answer = exchange(address, &request(address, method, path, &headers, body)).unwrap();
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.get(9..12).and_then(|status| status.parse().ok());
    (
        status.unwrap(),
        serde_json::from_str(body).unwrap_or_default(),
    )
}

/// Whether a GET is a success; a server that does not answer in time is none.
pub fn succeeds(address: SocketAddr, path: &str) -> bool {
    let get = request(address, "GET", path, "Connection: close\r\n", "");
    let answer = exchange(address, &get);
    answer.is_ok_and(|answer| answer.get(9..12) == Some(b"200"))
}

fn exchange(address: SocketAddr, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// The response of a GET, which must be a success.
pub fn read(address: SocketAddr, path: &str, token: &str) -> Value {
    let (status, body) = call(address, "GET", path, token, "");
    assert_eq!(status, 200, "{path}: {body}");
    body
}
