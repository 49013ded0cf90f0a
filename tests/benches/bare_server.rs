//! Bare servers for comparison: they only return bytes, with the registry's HTTP library and number of workers.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread::available_parallelism;

use actix_web::dev::ServerHandle;
use actix_web::http::header::{self, HeaderValue};
use actix_web::web::{self, Bytes};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A running bare server.
#[derive(Debug)]
pub struct BareServer {
    /// Its listening address.
    pub address: SocketAddr,
    handle: ServerHandle,
}

impl BareServer {
    /// Serves these bodies as `/0`, `/1` and so on, each with its number as its entity tag, and 304 to requests with that
    /// tag. It has `workers` threads, or one for each core.
    pub fn start(bodies: Vec<Bytes>, workers: Option<usize>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let tagged = (0..).zip(bodies).map(|(index, body): (usize, _)| {
            let tag = HeaderValue::try_from(format!("\"{index}\"")).map_err(io::Error::other)?;
            Ok((tag, body))
        });
        let bodies = web::Data::new(tagged.collect::<io::Result<Vec<_>>>()?);
        let workers = workers.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
        let (ready, started) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                let server = HttpServer::new(move || {
                    App::new()
                        .app_data(bodies.clone())
                        .route("/{index}", web::get().to(body))
                })
                .workers(workers)
                .disable_signals()
                .listen(listener)?
                .run();
                let _ = ready.send(server.handle());
                server.await
            })
        });
        let handle = started.recv().map_err(io::Error::other)?;
        Ok(Self { address, handle })
    }

    /// Stops the server.
    pub async fn stop(self) {
        self.handle.stop(false).await;
    }
}

async fn body(
    request: HttpRequest,
    index: web::Path<usize>,
    bodies: web::Data<Vec<(HeaderValue, Bytes)>>,
) -> HttpResponse {
    let Some((tag, bytes)) = bodies.get(*index) else {
        return HttpResponse::NotFound().finish();
    };
    let mut answer = if request.headers().get(header::IF_NONE_MATCH) == Some(tag) {
        HttpResponse::NotModified().finish()
    } else {
        HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, JSON))
            .body(bytes.clone())
    };
    answer.headers_mut().insert(header::ETAG, tag.clone());
    answer
}
