//! A blocking client of the API: requests with a time limit, and streamed bodies.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::runtime::Runtime;

use crate::instance::{Daemon, Instance};
use crate::types::ErrorBody;

/// Answers longer than this are refused: lists are paged.
const ANSWER_MAX: usize = 64 << 20;

/// Why there is no answer. Displays as one line.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error("{daemon} is not running for instance {instance}: {why} {path}", path = path.display())]
    NotRunning {
        /// Which daemon; "server" when it is not known.
        daemon: String,
        /// Of which instance.
        instance: String,
        /// "no socket" or "nobody answers on".
        why: &'static str,
        /// The socket.
        path: PathBuf,
    },
    /// The daemon refused.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The daemon's line.
        message: String,
    },
    /// Time is over.
    #[error("{daemon} did not answer within {seconds} s")]
    Timeout {
        /// Which daemon.
        daemon: String,
        /// The limit.
        seconds: f64,
    },
    /// An answer that isn't what was agreed.
    #[error("{daemon} answered with something unexpected: {detail}")]
    Unexpected {
        /// Which daemon.
        daemon: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The socket is another user's.
    #[error("{path}: permission denied: the instance is another user's, call this as root", path = path.display())]
    Denied {
        /// The socket.
        path: PathBuf,
    },
    /// The system's answer.
    #[error("talk to {path}: {cause}", path = path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// The system's answer; part of the line, hence not an error of its own behind it.
        cause: std::io::Error,
    },
}

impl ClientError {
    /// True when there is no daemon to talk to.
    pub fn is_not_running(&self) -> bool {
        matches!(self, ClientError::NotRunning { .. })
    }

    /// The HTTP status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            ClientError::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// Talks to one daemon. A connection is made for every request.
#[derive(Clone, Debug)]
pub struct Client {
    path: PathBuf,
    daemon: String,
    instance: String,
    timeout: Duration,
}

impl Client {
    /// For a socket; time limit 10 s.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let part = |p: Option<&Path>| {
            p.and_then(Path::file_stem)
                .map_or_else(|| "?".to_owned(), |s| s.to_string_lossy().into_owned())
        };
        Client {
            daemon: part(Some(&path)),
            instance: part(path.parent()),
            path,
            timeout: Duration::from_secs(10),
        }
    }

    /// For a daemon of an instance.
    pub fn to(instance: &Instance, daemon: Daemon) -> Self {
        Client {
            path: instance.socket(daemon),
            daemon: daemon.name().into(),
            instance: instance.name().into(),
            timeout: Duration::from_secs(10),
        }
    }

    /// Another time limit, for connection and answer together.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// GET, as JSON. `path` starts with `/` and may have a query: see [`query`].
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.json(Method::GET, path, Bytes::new())
    }

    /// POST of a JSON body, answered as JSON.
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|e| self.unexpected(e))?;
        self.json(Method::POST, path, body.into())
    }

    /// GET whose body is read as it comes, without a time limit between its parts (a capture).
    /// The limit holds for the head of the answer.
    pub fn stream(&self, path: &str) -> Result<BodyReader, ClientError> {
        let runtime = self.runtime()?;
        let body = runtime.block_on(async {
            let response = self
                .limit(self.send(Method::GET, path, Bytes::new()))
                .await?;
            if response.status().is_success() {
                Ok(response.into_body())
            } else {
                let status = response.status();
                Err(self.refusal(status, &self.limit(self.collect(response)).await?))
            }
        })?;
        Ok(BodyReader {
            daemon: self.daemon.clone(),
            runtime,
            body,
            rest: Bytes::new(),
        })
    }

    fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<T, ClientError> {
        let (status, bytes) = self.runtime()?.block_on(self.limit(async {
            let response = self.send(method, path, body).await?;
            let status = response.status();
            Ok((status, self.collect(response).await?))
        }))?;
        if !status.is_success() {
            return Err(self.refusal(status, &bytes));
        }
        serde_json::from_slice(&bytes).map_err(|e| self.unexpected(e))
    }

    fn runtime(&self) -> Result<Runtime, ClientError> {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| self.io(e))
    }

    async fn limit<T>(
        &self,
        work: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        tokio::time::timeout(self.timeout, work)
            .await
            .unwrap_or_else(|_| {
                Err(ClientError::Timeout {
                    daemon: self.daemon.clone(),
                    seconds: self.timeout.as_secs_f64(),
                })
            })
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let stream = UnixStream::connect(&self.path).await.map_err(|e| {
            let why = match e.kind() {
                std::io::ErrorKind::NotFound => "no socket",
                std::io::ErrorKind::ConnectionRefused => "nobody answers on",
                std::io::ErrorKind::PermissionDenied => {
                    let path = self.path.clone();
                    return ClientError::Denied { path };
                }
                _ => return self.io(e),
            };
            ClientError::NotRunning {
                daemon: self.daemon.clone(),
                instance: self.instance.clone(),
                why,
                path: self.path.clone(),
            }
        })?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|e| self.unexpected(e))?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|e| self.unexpected(e))?;
        sender
            .send_request(request)
            .await
            .map_err(|e| self.unexpected(e))
    }

    async fn collect(&self, response: Response<Incoming>) -> Result<Bytes, ClientError> {
        Limited::new(response.into_body(), ANSWER_MAX)
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes)
            .map_err(|e| self.unexpected(e))
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> ClientError {
        let message = serde_json::from_slice::<ErrorBody>(body)
            .map(|b| b.error)
            .unwrap_or_else(|_| {
                format!(
                    "{} refused: {}",
                    self.daemon,
                    status.canonical_reason().unwrap_or(status.as_str())
                )
            });
        ClientError::Refused {
            status: status.as_u16(),
            message,
        }
    }

    fn unexpected(&self, detail: impl std::fmt::Display) -> ClientError {
        ClientError::Unexpected {
            daemon: self.daemon.clone(),
            detail: detail.to_string(),
        }
    }

    fn io(&self, cause: std::io::Error) -> ClientError {
        ClientError::Io {
            path: self.path.clone(),
            cause,
        }
    }
}

/// `path` with a query whose values are percent-encoded: `query("/v1/routes", &[("limit", "5")])`.
/// Pairs with an empty value are left out.
pub fn query(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut out = path.to_owned();
    let mut mark = '?';
    for (key, value) in pairs.iter().filter(|(_, v)| !v.is_empty()) {
        out.push(mark);
        mark = '&';
        out.push_str(key);
        out.push('=');
        for b in value.bytes() {
            if b.is_ascii_alphanumeric() || b"-._~:,".contains(&b) {
                out.push(char::from(b));
            } else {
                out.push_str(&format!("%{b:02X}"));
            }
        }
    }
    out
}

/// A streamed body. Ends when the daemon ends it; dropping it ends the request.
#[derive(Debug)]
pub struct BodyReader {
    daemon: String,
    runtime: Runtime,
    body: Incoming,
    rest: Bytes,
}

impl Read for BodyReader {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while self.rest.is_empty() {
            match self.runtime.block_on(self.body.frame()) {
                None => return Ok(0),
                // a body that breaks off: who wrote it is gone
                Some(Err(_)) => {
                    return Err(std::io::Error::other(format!("{} has ended", self.daemon)));
                }
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.rest = data;
                    }
                }
            }
        }
        let n = out.len().min(self.rest.len());
        let part = self.rest.split_to(n);
        if let Some(to) = out.get_mut(..n) {
            to.copy_from_slice(&part);
        }
        Ok(n)
    }
}
