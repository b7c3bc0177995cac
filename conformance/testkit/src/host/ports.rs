//! Free ports on loopback.

use std::net::TcpListener;
use std::ops::Range;

use anyhow::{Result, ensure};
use rand::seq::SliceRandom;

/// Below those that Linux gives to connections (ip_local_port_range): no connection gets the port of a server
/// that is down by chance, and no client that tries it again and again connects to itself.
const PORTS: Range<u16> = 12_000..32_768;

/// As many different free ports as asked for: all are held before the first is let go.
pub fn free_ports(count: usize) -> Result<Vec<u16>> {
    let mut ports: Vec<u16> = PORTS.collect();
    ports.shuffle(&mut rand::rng());
    let free = |port| TcpListener::bind(("127.0.0.1", port)).ok().map(|held| (port, held));
    let held: Vec<_> = ports.into_iter().filter_map(free).take(count).collect();
    ensure!(held.len() == count, "{count} ports are not free among {PORTS:?}");
    Ok(held.into_iter().map(|(port, _)| port).collect())
}
