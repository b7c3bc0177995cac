//! A proxy to a server that can block, delay responses, or drop progress requests.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// A progress request on a watch's stream, as gRPC encodes it, and one of the same length that etcd does not know and
/// ignores (etcd: rpc.proto, WatchRequest).
const PROGRESS: [&[u8; 7]; 2] = [&[0, 0, 0, 0, 2, 0x1a, 0], &[0, 0, 0, 0, 2, 0x7a, 0]];

/// A proxy to a server. While it is shut, it accepts connections and forwards nothing.
pub struct Proxy {
    /// The URL that it listens on.
    pub url: String,
    state: Arc<State>,
}

struct State {
    open: watch::Sender<bool>,
    /// Delay of each response, in milliseconds.
    slow: AtomicU64,
    /// Whether progress requests are dropped.
    mute: AtomicBool,
    muted: watch::Sender<usize>,
    connections: AtomicUsize,
}

impl Proxy {
    pub async fn to(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State {
            open: watch::Sender::new(true),
            slow: AtomicU64::new(0),
            mute: AtomicBool::new(false),
            muted: watch::Sender::new(0),
            connections: AtomicUsize::new(0),
        });
        let passing = state.clone();
        tokio::spawn(async move {
            loop {
                // One that fails says nothing of the next: its client has gone, or no file descriptor is left for now.
                let Ok((client, _)) = listener.accept().await else {
                    let _ =
                        tokio::time::timeout(Duration::from_millis(10), std::future::pending::<()>()).await;
                    continue;
                };
                passing.connections.fetch_add(1, SeqCst);
                tokio::spawn(pass(client, target, passing.clone()));
            }
        });
        Self { url, state }
    }

    pub fn shut(&self) {
        self.state.open.send_replace(false);
    }

    pub fn open(&self) {
        self.state.open.send_replace(true);
    }

    /// Delays responses by `time` from now on.
    pub fn answer_after(&self, time: Duration) {
        self.state.slow.store(u64::try_from(time.as_millis()).unwrap(), SeqCst);
    }

    /// Drops progress requests from now on, as for a watch that is catching up.
    pub fn mute(&self) {
        self.state.muted.send_replace(0);
        self.state.mute.store(true, SeqCst);
    }

    pub fn unmute(&self) {
        self.state.mute.store(false, SeqCst);
    }

    /// Waits until `count` progress requests were dropped.
    pub async fn until_muted(&self, count: usize) {
        self.state.muted.subscribe().wait_for(|muted| *muted >= count).await.unwrap();
    }

    /// Returns the number of connections made.
    pub fn connections(&self) -> usize {
        self.state.connections.load(SeqCst)
    }
}

async fn pass(client: TcpStream, target: u16, state: Arc<State>) {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await.unwrap();
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let (late, delayed) = mpsc::channel(1024);
    tokio::select! {
        () = ask(from_client, to_server, &state) => {}
        () = listen(from_server, late, &state) => {}
        () = answer(delayed, to_client, &state) => {}
    }
}

async fn ask(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: &State) {
    let (mut buffer, mut open) = (vec![0; 4096], state.open.subscribe());
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if state.mute.load(SeqCst) {
            state.mute_all(&mut buffer[..count]);
        }
        if open.wait_for(|open| *open).await.is_err() || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

async fn listen(mut from: OwnedReadHalf, late: mpsc::Sender<(Instant, Vec<u8>)>, state: &State) {
    let mut buffer = vec![0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let at = Instant::now() + Duration::from_millis(state.slow.load(SeqCst));
        if late.send((at, buffer[..count].to_vec())).await.is_err() {
            return;
        }
    }
}

async fn answer(mut delayed: mpsc::Receiver<(Instant, Vec<u8>)>, mut to: OwnedWriteHalf, state: &State) {
    let mut open = state.open.subscribe();
    while let Some((at, bytes)) = delayed.recv().await {
        tokio::time::sleep_until(at).await;
        if open.wait_for(|open| *open).await.is_err() || to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

impl State {
    fn mute_all(&self, bytes: &mut [u8]) {
        let [asks, says_nothing] = PROGRESS;
        for start in 0..bytes.len().saturating_sub(asks.len() - 1) {
            let here = &mut bytes[start..start + asks.len()];
            if here == asks {
                here.copy_from_slice(says_nothing);
                self.muted.send_modify(|muted| *muted += 1);
            }
        }
    }
}
