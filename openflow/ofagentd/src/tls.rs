// SPDX-License-Identifier: Apache-2.0
//! TLS to controllers: both sides show a certificate, and each checks the other's against the same authority.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
};

/// Files in PEM, read once, at the start.
#[derive(Clone, Debug, Default, Args)]
pub struct Files {
    /// The switch's private key, for ssl: and pssl: (PEM)
    #[arg(long, value_name = "FILE")]
    pub private_key: Option<PathBuf>,
    /// The switch's certificate, and what leads from it to the authority (PEM)
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// The authority that controllers' certificates are checked against (PEM)
    #[arg(long, value_name = "FILE")]
    pub ca_cert: Option<PathBuf>,
}

/// What is said where one is missing.
pub const MISSING: &str = "ssl: and pssl: need --private-key, --certificate and --ca-cert";

impl Files {
    /// Are all there?
    pub fn all(&self) -> bool {
        self.private_key.is_some() && self.certificate.is_some() && self.ca_cert.is_some()
    }

    /// One is given.
    pub fn any(&self) -> bool {
        let files = [&self.private_key, &self.certificate, &self.ca_cert];
        files.into_iter().any(Option::is_some)
    }
}

/// What is needed for a connection of either direction.
pub struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

fn certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let read = || -> Result<Vec<_>, rustls::pki_types::pem::Error> {
        CertificateDer::pem_file_iter(path)?.collect()
    };
    let all = read().map_err(|e| anyhow::anyhow!("{}: {e}", path.display()))?;
    if all.is_empty() {
        bail!("{} has no certificate", path.display());
    }
    Ok(all)
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// One is missing, or is not what it should be.
    pub fn load(files: &Files) -> anyhow::Result<Tls> {
        let (Some(key), Some(own), Some(authority)) =
            (&files.private_key, &files.certificate, &files.ca_cert)
        else {
            bail!(MISSING);
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for c in certificates(authority)? {
            roots
                .add(c)
                .with_context(|| authority.display().to_string())?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(own)?;
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|e| anyhow::anyhow!("{}: {e}", key.display()))?;
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .with_context(|| own.display().to_string())?;
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)).build()?;
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .with_context(|| own.display().to_string())?;
        Ok(Tls {
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }

    /// On a connection that was made to `host`.
    pub fn call(&self, host: &str, tcp: TcpStream) -> io::Result<TlsStream> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let tls =
            ClientConnection::new(Arc::clone(&self.client), name).map_err(io::Error::other)?;
        Ok(TlsStream {
            tcp,
            tls: tls.into(),
        })
    }

    /// On a connection of somebody who called.
    pub fn answer(&self, tcp: TcpStream) -> io::Result<TlsStream> {
        let tls = ServerConnection::new(Arc::clone(&self.server)).map_err(io::Error::other)?;
        Ok(TlsStream {
            tcp,
            tls: tls.into(),
        })
    }
}

/// A connection by TLS, which begins with the first byte that is read or written.
pub struct TlsStream {
    /// Below.
    pub tcp: TcpStream,
    tls: Connection,
}

impl TlsStream {
    /// One step of the handshake after the other; none: it is done, else whether it waits to read, to write.
    pub fn handshake(&mut self) -> io::Result<Option<(bool, bool)>> {
        let mut flushed = self.flush()?;
        while self.tls.is_handshaking() {
            match self.take_in() {
                Ok(0) => return Err(io::Error::other("TLS: the peer hung up")),
                Ok(_) => flushed = self.flush()?,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Some((true, !flushed))),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(None)
    }

    /// Reads records; so many bytes, 0 at its end.
    fn take_in(&mut self) -> io::Result<usize> {
        let bytes = self.tls.read_tls(&mut self.tcp)?;
        if let Err(e) = self.tls.process_new_packets() {
            // the peer is told why
            let _ = self.flush();
            return Err(io::Error::other(format!("TLS: {e}")));
        }
        Ok(bytes)
    }

    /// What is there, 0 at its end.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(into) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            if self.take_in()? == 0 {
                return Ok(0);
            }
            self.flush()?;
        }
    }

    /// As much as it takes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        match self.tls.writer().write(bytes)? {
            0 => Err(ErrorKind::WouldBlock.into()),
            n => Ok(n),
        }
    }

    /// Sends what was written; false: not all of it yet.
    pub fn flush(&mut self) -> io::Result<bool> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.tcp) {
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }
}
