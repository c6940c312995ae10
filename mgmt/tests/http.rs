//! Server and client against each other over a real socket.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Query;
use axum::routing::{get, post};
use axum::{Json, Router};
use tandem_mgmt::client::query;
use tandem_mgmt::server::stream_body;
use tandem_mgmt::types::{Items, Page, Resource, SyncAnswer, SyncRequest};
use tandem_mgmt::{ApiError, ApiResult, Client, ServerHandle, serve};

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("tandem-http-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }
    fn socket(&self) -> PathBuf {
        self.0.join("asicd.sock")
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn resources(Query(page): Query<Page>) -> ApiResult<Items<Resource>> {
    if page.limit > 100 {
        return Err(ApiError::bad_request(
            "limit 101 is too large (at most 100)",
        ));
    }
    let row = Resource {
        name: "ipv4-lpm".into(),
        size: page.limit,
        ..Default::default()
    };
    Ok(Json(vec![row].into()))
}

async fn sync(Json(r): Json<SyncRequest>) -> ApiResult<SyncAnswer> {
    tokio::time::sleep(Duration::from_millis(r.timeout_ms)).await;
    Ok(Json(SyncAnswer {
        waited_ms: r.timeout_ms,
    }))
}

async fn endless() -> Body {
    let (tx, body) = stream_body(2);
    tokio::spawn(async move { while tx.send(b"packet ".to_vec()).await.is_ok() {} });
    body
}

fn start(dir: &Dir) -> ServerHandle {
    let router = Router::new()
        .route("/v1/resources", get(resources))
        .route("/v1/sync", post(sync))
        .route("/v1/capture", get(endless));
    serve(&dir.socket(), router).unwrap()
}

#[test]
fn answers_errors_and_limits() {
    let dir = Dir::new("answers");
    let server = start(&dir);
    let mode = std::fs::metadata(dir.socket())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    let client = Client::new(dir.socket());
    let got: Items<Resource> = client
        .get(&query("/v1/resources", &[("limit", "7"), ("cursor", "")]))
        .unwrap();
    assert_eq!((got.items[0].size, got.next), (7, None));

    let e = client
        .get::<Items<Resource>>("/v1/resources?limit=101")
        .unwrap_err();
    assert_eq!(
        (e.status(), e.to_string().as_str()),
        (Some(400), "limit 101 is too large (at most 100)")
    );
    for path in ["/v1/resources?limit=x", "/v1/nothing", "/v1/sync"] {
        let e = client.get::<Items<Resource>>(path).unwrap_err();
        assert!(e.status().is_some(), "{path}: {e:?}");
        assert!(!e.to_string().contains('\n') && !e.to_string().is_empty());
        assert!(!e.to_string().contains("refused"), "not our form: {e}");
    }

    let ok: SyncAnswer = client
        .post("/v1/sync", &SyncRequest { timeout_ms: 1 })
        .unwrap();
    assert_eq!(ok.waited_ms, 1);
    let e = client
        .clone()
        .with_timeout(Duration::from_millis(50))
        .post::<SyncAnswer>(
            "/v1/sync",
            &SyncRequest {
                timeout_ms: 3_600_000,
            },
        )
        .unwrap_err();
    assert_eq!(e.to_string(), "asicd did not answer within 0.05 s");
    server.stop();
    assert!(!dir.socket().exists());
}

#[test]
fn no_daemon_is_one_line_that_names_the_instance() {
    let dir = Dir::new("absent");
    let client = Client::new(dir.socket());
    let e = client.get::<SyncAnswer>("/v1/status").unwrap_err();
    let instance = dir.0.file_stem().unwrap().to_str().unwrap();
    assert!(e.is_not_running());
    assert_eq!(
        e.to_string(),
        format!(
            "asicd is not running for instance {instance}: no socket {}",
            dir.socket().display()
        )
    );
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let dir = Dir::new("stale");
    drop(std::os::unix::net::UnixListener::bind(dir.socket()).unwrap());
    let server = start(&dir);
    let e = serve(&dir.socket(), Router::new()).unwrap_err().to_string();
    assert!(e.contains("in use by a running daemon"), "{e}");
    server.stop();
    std::fs::write(dir.socket(), "mine").unwrap();
    let e = serve(&dir.socket(), Router::new()).unwrap_err().to_string();
    assert!(e.contains("is no socket"), "{e}");
    assert_eq!(std::fs::read_to_string(dir.socket()).unwrap(), "mine");
}

#[test]
fn a_stream_is_read_as_it_comes_and_does_not_hold_up_the_end() {
    let dir = Dir::new("stream");
    let server = start(&dir);
    let mut body = Client::new(dir.socket()).stream("/v1/capture").unwrap();
    let mut first = [0u8; 14];
    body.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"packet packet ");
    let t = Instant::now();
    server.stop();
    // half a second, and what a busy machine adds; else without end
    assert!(t.elapsed() < Duration::from_secs(60));
    assert!(Client::new(dir.socket()).stream("/v1/capture").is_err());
}

#[test]
fn a_stream_that_breaks_off_says_who_ended() {
    let dir = Dir::new("broken");
    let listener = std::os::unix::net::UnixListener::bind(dir.socket()).unwrap();
    let daemon = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let _ = peer.read(&mut [0; 4096]).unwrap();
        let half = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n";
        std::io::Write::write_all(&mut peer, half).unwrap();
    });
    let mut body = Client::new(dir.socket()).stream("/v1/capture").unwrap();
    let e = body.read_to_end(&mut Vec::new()).unwrap_err().to_string();
    assert_eq!(e, "asicd has ended");
    daemon.join().unwrap();
}
