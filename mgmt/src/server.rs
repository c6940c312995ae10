//! Serving an API on a Unix socket, in a thread of its own.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use hyper::body::Frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use crate::types::ErrorBody;

/// How long streams may go on after a stop was asked for.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// An answer that isn't a success: `{"error": "one line"}` with a 4xx or 5xx status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status.
    pub status: StatusCode,
    /// One line.
    pub message: String,
}

/// What a handler returns.
pub type ApiResult<T> = Result<Json<T>, ApiError>;

impl ApiError {
    /// Any status.
    pub fn new(status: StatusCode, message: impl std::fmt::Display) -> Self {
        ApiError {
            status,
            message: message.to_string().replace('\n', " "),
        }
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 404: what it names is not there.
    pub fn not_found(message: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 503: the daemon's threads don't answer, or a limit is reached; try again.
    pub fn unavailable(message: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// 503: too much waits for a thread of the daemon.
    pub fn busy(who: &str) -> Self {
        Self::unavailable(format!("too many requests wait for {who}: try again"))
    }

    /// 503: the thread that was asked has ended.
    pub fn stopping() -> Self {
        Self::unavailable("the daemon is stopping")
    }

    /// 504: not done in the time given.
    pub fn timeout(message: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, message)
    }

    /// 500: a fault of the daemon.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (
            self.status,
            Json(ErrorBody {
                error: self.message,
            }),
        )
            .into_response()
    }
}

/// Something that a thread does, between two turns, to what it owns.
pub type Job<S> = Box<dyn FnOnce(&mut S) + Send>;

/// A daemon's thread answers within this time, or the request fails.
const ANSWER: Duration = Duration::from_secs(5);

/// Has `f` run by the thread that `who` names and `post` reaches (false: too much waits for it).
pub async fn ask<S, T: Send + 'static>(
    who: &str,
    post: impl FnOnce(Job<S>) -> bool,
    f: impl FnOnce(&mut S) -> T + Send + 'static,
) -> Result<T, ApiError> {
    let (to, answer) = oneshot::channel();
    let posted = post(Box::new(move |s| {
        let _ = to.send(f(s));
    }));
    if !posted {
        return Err(ApiError::busy(who));
    }
    answered(who, answer).await
}

/// Waits for an answer of that thread's, or of somebody else's through it.
pub async fn answered<T>(who: &str, answer: oneshot::Receiver<T>) -> Result<T, ApiError> {
    match tokio::time::timeout(ANSWER, answer).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(_)) => Err(ApiError::stopping()),
        Err(_) => Err(ApiError::timeout(format!("{who} did not answer in 5 s"))),
    }
}

/// Why a socket can't be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Somebody answers there.
    #[error("{path} is in use by a running daemon: stop it or choose --name", path = .0.display())]
    InUse(PathBuf),
    /// Something that isn't a socket is in the way.
    #[error("{path} is there and is no socket: remove it", path = .0.display())]
    NotASocket(PathBuf),
    /// The system's answer.
    #[error("serve {path}: {cause}", path = path.display())]
    Io {
        /// Which socket.
        path: PathBuf,
        /// The system's answer; part of the line, hence not an error of its own behind it.
        cause: std::io::Error,
    },
}

/// A running server; stops when it is dropped.
#[derive(Debug)]
pub struct ServerHandle {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

impl ServerHandle {
    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets running requests end (streams: for half a second), removes the socket.
    pub fn stop(mut self) {
        self.shut_down();
    }

    fn shut_down(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Binds `path` with mode 0600. A socket that nobody answers on is replaced; it never has another
/// mode under its own name. The directory should be 0700.
pub fn bind(path: &Path) -> Result<UnixListener, ServeError> {
    use std::os::unix::fs::FileTypeExt;
    let io = |cause| ServeError::Io {
        path: path.into(),
        cause,
    };
    match std::fs::symlink_metadata(path) {
        Ok(meta) if !meta.file_type().is_socket() => {
            return Err(ServeError::NotASocket(path.into()));
        }
        Ok(_) if UnixStream::connect(path).is_ok() => return Err(ServeError::InUse(path.into())),
        _ => {}
    }
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(format!(".{}", std::process::id()));
    let fresh = PathBuf::from(fresh);
    let _ = std::fs::remove_file(&fresh);
    let listener = UnixListener::bind(&fresh).map_err(io)?;
    std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| std::fs::rename(&fresh, path))
        .inspect_err(|_| {
            let _ = std::fs::remove_file(&fresh);
        })
        .map_err(io)?;
    Ok(listener)
}

/// The router as it is served: what it does not know, and what the framework refuses, is answered in our form.
fn dressed(router: Router) -> Router {
    router
        .fallback(|uri: axum::http::Uri| async move {
            ApiError::not_found(format!("no such path: {}", uri.path()))
        })
        .layer(axum::middleware::map_response(json_error))
}

/// One connection from memory, for fuzz targets: the bytes that a client sends, to the bytes that it gets, through the
/// very server of [`serve`]. The client reads for so many `rounds`, in which `between` may do what other threads do,
/// then it goes away. Wants a current-thread runtime.
pub async fn serve_bytes(
    router: Router,
    request: &[u8],
    rounds: usize,
    mut between: impl FnMut(),
) -> Vec<u8> {
    let (mut client, server) = tokio::io::duplex(request.len().max(1 << 16));
    let client = async move {
        let mut answer = Vec::new();
        let mut piece = vec![0; 1 << 14];
        if client.write_all(request).await.is_err() {
            return answer;
        }
        for _ in 0..rounds {
            tokio::task::yield_now().await;
            between();
            loop {
                let read = std::pin::pin!(client.read(&mut piece));
                // what is there now: nobody is waited for
                let read = now_or_not(read).await;
                match read {
                    Some(Ok(n)) if n > 0 => answer.extend(piece.get(..n).unwrap_or_default()),
                    Some(_) => return answer,
                    None => break,
                }
            }
        }
        answer
    };
    let server = axum::serve(Once(Some(server)), dressed(router));
    tokio::select! {
        answer = client => answer,
        _ = async { server.await } => Vec::new(),
    }
}

/// Looks once whether a future is ready.
async fn now_or_not<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    let mut future = Some(future);
    std::future::poll_fn(move |cx| {
        Poll::Ready(match future.take().map(|f| f.poll(cx)) {
            Some(Poll::Ready(value)) => Some(value),
            _ => None,
        })
    })
    .await
}

/// A listener to which one client comes.
struct Once(Option<tokio::io::DuplexStream>);

impl axum::serve::Listener for Once {
    type Io = tokio::io::DuplexStream;
    type Addr = ();

    async fn accept(&mut self) -> (Self::Io, ()) {
        match self.0.take() {
            Some(io) => (io, ()),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Binds `path` and serves `router` there, in one thread with a current-thread runtime. Unknown
/// paths, wrong methods and unreadable queries get `{"error": …}` too.
///
/// Handlers run one at a time on that thread: what may take long must be awaited, not waited for.
pub fn serve(path: &Path, router: Router) -> Result<ServerHandle, ServeError> {
    let io = |cause| ServeError::Io {
        path: path.into(),
        cause,
    };
    let listener = bind(path)?;
    listener.set_nonblocking(true).map_err(io)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(io)?;
    let listener = {
        let _in_runtime = runtime.enter();
        tokio::net::UnixListener::from_std(listener).map_err(io)?
    };
    let router = dressed(router);
    let (stop, stopped) = oneshot::channel::<()>();
    let name = path
        .file_stem()
        .map_or_else(|| "api".into(), |s| format!("{}-api", s.to_string_lossy()));
    let thread = std::thread::Builder::new()
        .name(name)
        .spawn(move || {
            runtime.block_on(async move {
                let (tell, told) = tokio::sync::watch::channel(false);
                let mut wait = told.clone();
                let server = axum::serve(listener, router).with_graceful_shutdown(async move {
                    let _ = wait.wait_for(|s| *s).await;
                });
                let limit = async move {
                    let _ = stopped.await;
                    let _ = tell.send(true);
                    tokio::time::sleep(STOP_GRACE).await;
                };
                tokio::select! {
                    r = async { server.await } => if let Err(e) = r {
                        tracing::error!("management API stopped: {e}");
                    },
                    () = limit => {}
                }
            });
            runtime.shutdown_background();
        })
        .map_err(io)?;
    Ok(ServerHandle {
        stop: Some(stop),
        thread: Some(thread),
        path: path.into(),
    })
}

/// A body that another thread fills: at most `depth` pieces wait, [`try_send`] says when one more
/// doesn't fit, and fails when the client is gone. Dropping the sender ends the body.
///
/// [`try_send`]: tokio::sync::mpsc::Sender::try_send
pub fn stream_body(depth: usize) -> (tokio::sync::mpsc::Sender<Vec<u8>>, Body) {
    let (tx, rx) = tokio::sync::mpsc::channel(depth.max(1));
    (tx, Body::new(ChannelBody(rx)))
}

struct ChannelBody(tokio::sync::mpsc::Receiver<Vec<u8>>);

impl hyper::body::Body for ChannelBody {
    type Data = hyper::body::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.0
            .poll_recv(cx)
            .map(|piece| piece.map(|p| Ok(Frame::data(p.into()))))
    }
}

/// Gives errors that the framework made (rejected query, wrong method) our form.
async fn json_error(response: Response) -> Response {
    let status = response.status();
    let is_json = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|v| v.as_bytes().starts_with(b"application/json"));
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let text = to_bytes(Body::new(response.into_body()), 4096)
        .await
        .map(|b| String::from_utf8_lossy(&b).trim().to_owned())
        .unwrap_or_default();
    let message = if text.is_empty() {
        status
            .canonical_reason()
            .unwrap_or("request refused")
            .to_lowercase()
    } else {
        text
    };
    ApiError::new(status, message).into_response()
}
