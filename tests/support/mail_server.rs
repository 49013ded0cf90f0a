//! A small SMTP server that keeps the mails that it takes.

use std::sync::{Arc, Mutex, MutexGuard};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use super::tls::Identity;

/// A running server on a loopback port of its own.
pub struct MailServer {
    port: u16,
    state: Arc<Mutex<ServerState>>,
    _accepting: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct ServerState {
    mails: Vec<ReceivedMail>,
    connections: usize,
    is_down: bool,
    refusal: Option<String>,
}

/// A mail that the server has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedMail {
    /// The address of the recipient, as the client named it.
    pub recipient: String,
    /// Whether it came over TLS.
    pub is_encrypted: bool,
    /// User and password, in Base64, as the client sent them.
    pub credentials: Option<String>,
    head: String,
    body: String,
}

impl ReceivedMail {
    fn new(session: &Session, content: &str) -> Self {
        let (head, body) = content.split_once("\r\n\r\n").unwrap();
        Self {
            recipient: session.recipient.clone(),
            is_encrypted: session.is_encrypted,
            credentials: session.credentials.clone(),
            // A line that begins with a space continues the one before.
            head: head.replace("\r\n ", " "),
            body: body.to_owned(),
        }
    }

    /// The names of all headers, in their order.
    pub fn header_names(&self) -> Vec<&str> {
        let lines = self.head.lines();
        lines.map(|line| line.split_once(':').unwrap().0).collect()
    }

    /// The value of the first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find_map(|(key, value)| key.eq_ignore_ascii_case(name).then(|| value.trim()))
    }

    /// The text, decoded, with the line ends of this machine.
    pub fn text(&self) -> String {
        let bytes = match self.header("content-transfer-encoding").unwrap() {
            "7bit" => self.body.clone().into_bytes(),
            "quoted-printable" => decode_quoted_printable(&self.body),
            "base64" => {
                let text: String = self.body.lines().collect();
                data_encoding::BASE64.decode(text.as_bytes()).unwrap()
            }
            other => panic!("{other}"),
        };
        String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
    }

    /// The link that confirms or ends such mails.
    pub fn link(&self) -> String {
        let link = self.header("list-unsubscribe").unwrap();
        link.trim_matches(['<', '>']).to_owned()
    }
}

fn decode_quoted_printable(text: &str) -> Vec<u8> {
    let text = text.replace("=\r\n", "");
    let mut parts = text.split('=');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(code, 16).unwrap());
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

impl MailServer {
    /// Starts a server without encryption.
    pub async fn start() -> Self {
        Self::start_with(None).await
    }

    /// Starts a server; with an identity it offers STARTTLS, and takes credentials afterwards.
    pub async fn start_with(identity: Option<&Identity>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(ServerState::default()));
        let acceptor = identity.map(|identity| identity.acceptor(None));
        let shared = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (shared, acceptor) = (Arc::clone(&shared), acceptor.clone());
                tokio::spawn(async move {
                    // A client may close the connection at any time.
                    let _ended = serve(stream, acceptor, &shared).await;
                });
            }
        });
        Self {
            port,
            state,
            _accepting: AbortOnDropHandle::new(accepting),
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap()
    }

    /// Every mail so far.
    pub fn mails(&self) -> Vec<ReceivedMail> {
        self.state().mails.clone()
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.state().connections
    }

    /// Hangs up on every client from now on, or no longer.
    pub fn set_down(&self, is_down: bool) {
        self.state().is_down = is_down;
    }

    /// Refuses every recipient with this answer from now on, or no longer.
    pub fn set_refusal(&self, answer: Option<&str>) {
        self.state().refusal = answer.map(str::to_owned);
    }
}

/// What a client has said on a connection.
#[derive(Debug, Default)]
struct Session {
    is_encrypted: bool,
    offers_tls: bool,
    credentials: Option<String>,
    recipient: String,
}

async fn serve(
    mut stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    state: &Mutex<ServerState>,
) -> std::io::Result<()> {
    {
        let mut state = state.lock().unwrap();
        state.connections += 1;
        if state.is_down {
            return Ok(());
        }
    }
    send_line(&mut stream, "220 mail.test").await?;
    let mut session = Session {
        offers_tls: acceptor.is_some(),
        ..Session::default()
    };
    let starts_tls = converse(&mut BufReader::new(&mut stream), &mut session, state).await?;
    if let Some(acceptor) = acceptor.filter(|_| starts_tls) {
        let mut session = Session {
            is_encrypted: true,
            ..Session::default()
        };
        let encrypted = acceptor.accept(stream).await?;
        converse(&mut BufReader::new(encrypted), &mut session, state).await?;
    }
    Ok(())
}

/// Answers commands until the connection ends, or TLS begins, which is returned.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut BufReader<S>,
    session: &mut Session,
    state: &Mutex<ServerState>,
) -> std::io::Result<bool> {
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(false);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words.as_slice() {
            ["EHLO", _] => {
                let offer = match (session.is_encrypted, session.offers_tls) {
                    (true, _) => "250-AUTH PLAIN\r\n",
                    (false, true) => "250-STARTTLS\r\n",
                    (false, false) => "",
                };
                format!("250-mail.test\r\n{offer}250 8BITMIME")
            }
            ["STARTTLS"] => {
                send_line(stream, "220 begin").await?;
                return Ok(true);
            }
            ["AUTH", "PLAIN", credentials] => {
                session.credentials = Some((*credentials).to_owned());
                "235 welcome".to_owned()
            }
            ["MAIL", ..] => "250 ok".to_owned(),
            ["RCPT", recipient, ..] => {
                let address = recipient.trim_start_matches("TO:<").trim_end_matches('>');
                session.recipient = address.to_owned();
                let refusal = state.lock().unwrap().refusal.clone();
                refusal.unwrap_or_else(|| "250 ok".to_owned())
            }
            ["DATA"] => {
                send_line(stream, "354 go on").await?;
                let content = read_content(stream).await?;
                let mail = ReceivedMail::new(session, &content);
                state.lock().unwrap().mails.push(mail);
                "250 taken".to_owned()
            }
            ["QUIT"] => {
                send_line(stream, "221 bye").await?;
                return Ok(false);
            }
            _ => "500 unknown".to_owned(),
        };
        send_line(stream, &answer).await?;
    }
}

async fn send_line<S: AsyncWrite + Unpin>(stream: &mut S, line: &str) -> std::io::Result<()> {
    stream.write_all(format!("{line}\r\n").as_bytes()).await?;
    stream.flush().await
}

/// Reads the lines up to the one with a dot alone.
async fn read_content<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut BufReader<S>,
) -> std::io::Result<String> {
    let mut content = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if line == ".\r\n" {
            return Ok(content);
        }
        // A dot was added before one at the beginning of a line.
        content.push_str(line.strip_prefix('.').unwrap_or(&line));
    }
}
