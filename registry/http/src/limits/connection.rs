//! Client connections, closed when they make no progress for too long.
//!
//! The HTTP library limits the arrival time of the first request on a connection and nothing after that: one byte of a
//! second request, or a response that is never read, would hold a connection forever. This module therefore limits the
//! time between reads and writes of the socket itself, for every protocol.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::limits::connections::ConnectionPermit;

/// Timeouts of a connection, one for each phase.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionTimeouts {
    /// Maximum wait for the next request.
    pub idle: Duration,
    /// Maximum time from the first byte of a request to the first byte of its response.
    pub response: Duration,
    /// Maximum wait for the client to read available bytes.
    pub write: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionPhase {
    Request,
    Response,
    ClientRead,
}

/// A connection that holds a permit and fails once it makes no progress for too long.
#[derive(Debug)]
pub struct TimedConnection<T> {
    stream: T,
    timeouts: ConnectionTimeouts,
    phase: ConnectionPhase,
    phase_started_at: Instant,
    /// Fires at the latest after the shortest timeout, and is then reset to the remaining time.
    timer: Pin<Box<Sleep>>,
    _permit: ConnectionPermit,
}

impl<T> TimedConnection<T> {
    /// Starts the timeouts. Must be called when the connection has just been opened.
    pub fn new(stream: T, permit: ConnectionPermit, timeouts: ConnectionTimeouts) -> Self {
        Self {
            stream,
            timeouts,
            phase: ConnectionPhase::Request,
            phase_started_at: Instant::now(),
            timer: Box::pin(sleep(timeouts.shortest())),
            _permit: permit,
        }
    }

    fn enter_phase(&mut self, phase: ConnectionPhase) {
        self.phase = phase;
        self.phase_started_at = Instant::now();
    }

    /// Ready with an error once the time is up.
    fn poll_timeout(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        loop {
            ready!(self.timer.as_mut().poll(context));
            let now = Instant::now();
            let end = self.phase_started_at + self.timeouts.for_phase(self.phase);
            if end <= now {
                let message = match self.phase {
                    ConnectionPhase::Request => "no request arrived",
                    ConnectionPhase::Response => "the request took too long",
                    ConnectionPhase::ClientRead => "the client does not read the response",
                };
                return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            let next = end.min(now + self.timeouts.shortest());
            self.timer.as_mut().reset(next);
        }
    }

    fn enter_phase_after_write(
        &mut self,
        result: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        match result {
            Poll::Ready(Ok(count)) if count > 0 => self.enter_phase(ConnectionPhase::Request),
            Poll::Ready(_) => {}
            Poll::Pending => {
                if self.phase != ConnectionPhase::ClientRead {
                    self.enter_phase(ConnectionPhase::ClientRead);
                }
                return self.poll_timeout(context).map(Err);
            }
        }
        result
    }
}

impl ConnectionTimeouts {
    fn for_phase(&self, phase: ConnectionPhase) -> Duration {
        match phase {
            ConnectionPhase::Request => self.idle,
            ConnectionPhase::Response => self.response,
            ConnectionPhase::ClientRead => self.write,
        }
    }

    fn shortest(&self) -> Duration {
        self.idle.min(self.response).min(self.write)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for TimedConnection<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled_before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if result.is_pending() {
            return self.poll_timeout(context).map(Err);
        }
        if buffer.filled().len() > filled_before && self.phase == ConnectionPhase::Request {
            self.enter_phase(ConnectionPhase::Response);
        }
        result
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for TimedConnection<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.enter_phase_after_write(result, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.enter_phase_after_write(result, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::IpAddr;
    use std::sync::Arc;

    use a2a_registry_core::config::Config;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;
    use crate::limits::connections::ConnectionLimiter;

    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(3600);

    /// A client end and a server end with these timeouts, connected by a buffer of 64 bytes.
    fn pair(patience: ConnectionTimeouts) -> (DuplexStream, TimedConnection<DuplexStream>) {
        let connections = Arc::new(ConnectionLimiter::new(&Config::default()));
        let place = connections.admit(IpAddr::from([192, 0, 2, 1])).unwrap();
        let (client, server) = duplex(64);
        (client, TimedConnection::new(server, place, patience))
    }

    fn patience(idle: Duration, answer: Duration, write: Duration) -> ConnectionTimeouts {
        ConnectionTimeouts {
            idle,
            response: answer,
            write,
        }
    }

    #[tokio::test]
    async fn a_client_that_asks_nothing_is_cut_off() {
        let (_client, mut server) = pair(patience(SHORT, LONG, LONG));
        let error = server.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_request_that_trickles_is_cut_off() {
        let (mut client, mut server) = pair(patience(LONG, SHORT, LONG));
        let trickle = async {
            let mut next = tokio::time::interval(SHORT / 10);
            while client.write_all(b"G").await.is_ok() {
                next.tick().await;
            }
        };
        let read = async {
            loop {
                if let Err(error) = server.read_u8().await {
                    return error;
                }
            }
        };
        // If every byte restarted the timeout, this would never end.
        let error = tokio::select! {
            () = trickle => unreachable!("the server's end is open"),
            error = read => error,
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_cut_off() {
        let (_client, mut server) = pair(patience(LONG, LONG, SHORT));
        let error = server.write_all(&[b'x'; 65]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn an_answer_begins_a_new_wait() {
        let (mut client, mut server) = pair(patience(LONG, SHORT, LONG));
        client.write_all(b"request").await.unwrap();
        let mut request = [0; 7];
        server.read_exact(&mut request).await.unwrap();
        server.write_all(b"answer").await.unwrap();
        // While waiting for the next request, the response timeout does not apply.
        let waited = tokio::time::timeout(SHORT * 3, server.read_u8()).await;
        assert!(waited.is_err(), "{waited:?}");
    }
}
