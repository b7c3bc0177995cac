//! Proxied connections between clients and members, and between members, which can be delayed and cut.
//! Everything is on loopback.
//!
//! Members reach one another at the ports of these proxies. The first request on a connection says which
//! member opened it: etcd's members name themselves in a header (etcd: rafthttp, X-Server-From).

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::Result;
use drydock_testkit::link::accepted;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The number of all clients together, beside those of members.
pub const CLIENTS: usize = usize::MAX;
/// The origin of a connection that has not named one.
const UNNAMED: usize = usize::MAX - 1;
/// A request head that is longer than this names no origin.
const LONGEST_HEAD: usize = 16 << 10;

/// All proxies of a cluster.
#[derive(Clone)]
pub struct Links {
    flow: watch::Sender<LinkFlow>,
    members: Arc<Mutex<HashMap<u64, usize>>>,
    end: CancellationToken,
}

/// Which connections pass bytes at present.
#[derive(Clone, Default)]
struct LinkFlow {
    /// Pairs between which nothing passes.
    held: HashSet<(usize, usize)>,
    /// How often connections to each have been cut.
    cuts: HashMap<usize, u64>,
}

impl Links {
    pub fn new() -> Self {
        Self {
            flow: watch::Sender::new(LinkFlow::default()),
            members: Arc::default(),
            end: CancellationToken::new(),
        }
    }

    /// Which member has this id.
    pub fn name(&self, id: u64, member: usize) {
        self.members.lock().insert(id, member);
    }

    /// Forwards a port to that of a member. `origin` is who connects there, or none if they name themselves.
    pub async fn lead(&self, port: u16, to: usize, origin: Option<usize>, target: u16) -> Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let links = self.clone();
        tokio::spawn(async move {
            while let Some(client) = links.end.run_until_cancelled(accepted(&listener)).await {
                let links = links.clone();
                tokio::spawn(async move { links.connect(client, to, origin, target).await });
            }
        });
        Ok(())
    }

    /// No connection is taken from now on.
    pub fn end(&self) {
        self.end.cancel();
    }

    /// Nothing passes between these until [`Self::mend`]; connections stay.
    pub fn hold(&self, pairs: impl IntoIterator<Item = (usize, usize)>) {
        let both = pairs.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
        self.flow.send_modify(|flow| flow.held.extend(both));
    }

    /// Everything passes.
    pub fn mend(&self) {
        self.flow.send_modify(|flow| flow.held.clear());
    }

    /// Ends all connections to a member from clients.
    pub fn cut(&self, to: usize) {
        self.flow.send_modify(|flow| *flow.cuts.entry(to).or_default() += 1);
    }

    async fn connect(&self, client: TcpStream, to: usize, origin: Option<usize>, target: u16) {
        let (mut read, write) = client.into_split();
        let mut head = Vec::new();
        let id = match origin {
            Some(_) => None,
            None => match named(&mut read, &mut head).await {
                Ok(id) => id,
                Err(_) => return,
            },
        };
        let origin = ConnectionOrigin { links: self.clone(), known: origin, id, to };
        if !origin.passes().await {
            return;
        }
        let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await else { return };
        let (server_read, mut server_write) = server.into_split();
        if server_write.write_all(&head).await.is_err() {
            return;
        }
        tokio::select! {
            () = origin.carry(read, server_write) => {}
            () = origin.carry(server_read, write) => {}
            () = origin.cut() => {}
        }
    }
}

/// Where a connection leads from and to.
struct ConnectionOrigin {
    links: Links,
    known: Option<usize>,
    id: Option<u64>,
    to: usize,
}

impl ConnectionOrigin {
    fn from(&self) -> usize {
        let named = || self.links.members.lock().get(&self.id?).copied();
        self.known.or_else(named).unwrap_or(UNNAMED)
    }

    fn is_held(&self, flow: &LinkFlow) -> bool {
        match self.from() {
            UNNAMED => flow.held.iter().any(|(from, to)| *from != CLIENTS && *to == self.to),
            from => flow.held.contains(&(from, self.to)),
        }
    }

    /// Waits until bytes pass; false when nothing ever will.
    async fn passes(&self) -> bool {
        let mut flow = self.links.flow.subscribe();
        flow.wait_for(|flow| !self.is_held(flow)).await.is_ok()
    }

    async fn cut(&self) {
        let mut flow = self.links.flow.subscribe();
        let cuts = |flow: &LinkFlow| flow.cuts.get(&self.to).copied().unwrap_or_default();
        let now = cuts(&flow.borrow());
        if self.known.is_none() || flow.wait_for(|flow| cuts(flow) != now).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    async fn carry(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let Ok(count) = from.read(&mut buffer).await else { return };
            if count == 0 || !self.passes().await || to.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    }
}

/// Reads the head of the first request, and the id in it.
async fn named(read: &mut OwnedReadHalf, head: &mut Vec<u8>) -> Result<Option<u64>> {
    let mut buffer = [0; 4096];
    while head.len() < LONGEST_HEAD && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match read.read(&mut buffer).await? {
            0 => break,
            count => head.extend_from_slice(&buffer[..count]),
        }
    }
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = text.lines().find_map(|line| line.strip_prefix("x-server-from:"));
    Ok(value.and_then(|id| u64::from_str_radix(id.trim(), 16).ok()))
}
