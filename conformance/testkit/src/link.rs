//! A proxied connection to a server that can be cut and restored: for tests of a program whose host is not
//! there yet, or goes away.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::host::OwnPorts;

/// A port that forwards connections to a server while it is up.
pub struct Link {
    /// `https://127.0.0.1:PORT`, or `http` if the server's is.
    pub url: String,
    port: u16,
    server: SocketAddr,
    up: Option<CancellationToken>,
    _ports: OwnPorts,
}

impl Link {
    /// Creates a link to the server of this URL. It is cut at first.
    pub fn new(url: &str) -> Result<Link> {
        let (scheme, server) = url.split_once("://").with_context(|| format!("not a URL: {url}"))?;
        let server = server.parse().with_context(|| format!("not an address: {url}"))?;
        let mut ports = OwnPorts::default();
        let port = ports.take_another()?;
        Ok(Link { url: format!("{scheme}://127.0.0.1:{port}"), port, server, up: None, _ports: ports })
    }

    /// Forwards connections from now on.
    pub async fn mend(&mut self) -> Result<()> {
        self.mend_for(u64::MAX).await
    }

    /// Forwards connections from now on, each until the client has sent so many bytes.
    pub async fn mend_for(&mut self, bytes: u64) -> Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).await?;
        let cut = CancellationToken::new();
        tokio::spawn(lead(listener, self.server, bytes, cut.clone()));
        self.up = Some(cut);
        Ok(())
    }

    /// Ends open connections, and refuses new ones.
    pub fn cut(&mut self) {
        if let Some(up) = self.up.take() {
            up.cancel();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.cut();
    }
}

/// Waits for the next connection. An accept that fails is tried again after a moment: the client had gone before, or the process
/// had no file descriptor left, until others are closed.
pub async fn accepted(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn lead(listener: TcpListener, server: SocketAddr, bytes: u64, cut: CancellationToken) {
    loop {
        let client = tokio::select! {
            () = cut.cancelled() => return,
            client = accepted(&listener) => client,
        };
        let cut = cut.clone();
        tokio::spawn(async move {
            let Ok(server) = TcpStream::connect(server).await else { return };
            tokio::select! {
                () = cut.cancelled() => {}
                () = carry(client, server, bytes) => {}
            }
        });
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, bytes: u64) {
    let (from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let mut asked = from_client.take(bytes);
    tokio::select! {
        _ = tokio::io::copy(&mut asked, &mut to_server) => {}
        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
    }
}
