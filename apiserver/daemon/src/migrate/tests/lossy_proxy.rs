//! A proxy to etcd that closes a connection after a certain request, before its response.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Forwards everything except the responses to the first `times` requests that contain `words`: it closes those
/// connections.
pub struct LossyProxy {
    /// The port that it listens on.
    pub port: u16,
    left: Arc<AtomicUsize>,
}

impl LossyProxy {
    pub async fn start(to: u16, words: &'static str, times: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let left = Arc::new(AtomicUsize::new(times));
        let counted = left.clone();
        tokio::spawn(async move {
            loop {
                // One that fails says nothing of the next: its client has gone, or no file descriptor is left for now.
                let Ok((client, _)) = listener.accept().await else {
                    let _ =
                        tokio::time::timeout(Duration::from_millis(10), std::future::pending::<()>()).await;
                    continue;
                };
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await else { continue };
                tokio::spawn(pass(client, server, words.as_bytes(), counted.clone()));
            }
        });
        Self { port, left }
    }

    /// Returns how many responses are still to be dropped.
    pub fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }
}

async fn pass(mut client: TcpStream, mut server: TcpStream, words: &[u8], left: Arc<AtomicUsize>) {
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            count = client.read(&mut asked) => {
                let Ok(count @ 1..) = count else { return };
                if server.write_all(&asked[..count]).await.is_err() {
                    return;
                }
                let matches = asked[..count].windows(words.len()).any(|window| window == words);
                let one_less = |left: usize| left.checked_sub(1);
                if matches && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
                    // The response, or a part of it, has arrived when the connection is closed.
                    let _ = server.read(&mut answered).await;
                    return;
                }
            }
            count = server.read(&mut answered) => {
                let Ok(count @ 1..) = count else { return };
                if client.write_all(&answered[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}
