//! HTTP/1.1 by hand.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{ServerEndpoint, TlsConnection};

/// Most of a head that is read.
const HEAD: usize = 64 << 10;

/// A connection on which bytes are written as they are.
pub struct RawHttp {
    stream: TlsConnection,
}

impl RawHttp {
    /// Opens it from an address of loopback.
    pub async fn open(endpoint: &ServerEndpoint, from: Ipv4Addr) -> Result<RawHttp> {
        Ok(RawHttp { stream: endpoint.http1(from).await? })
    }

    /// Writes bytes.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        self.stream.write_all(bytes.as_ref()).await?;
        Ok(self.stream.flush().await?)
    }

    /// The code of the next answer; its body is not read.
    pub async fn code(&mut self) -> Result<u16> {
        let mut head = Vec::new();
        let mut piece = [0; 4096];
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            let count = self.stream.read(&mut piece).await?;
            if count == 0 || head.len() > HEAD {
                bail!("no answer: {:?}", String::from_utf8_lossy(&head));
            }
            head.extend_from_slice(&piece[..count]);
        }
        let line = head.split(|byte| *byte == b' ').nth(1).context("no status line")?;
        std::str::from_utf8(line)?.parse().context("no code")
    }
}
