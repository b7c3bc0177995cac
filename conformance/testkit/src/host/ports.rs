//! Free ports on loopback.

use std::net::TcpListener;
use std::ops::Range;

use anyhow::{Result, ensure};
use rand::seq::SliceRandom;

/// Below the ephemeral ports of Linux (ip_local_port_range), so that no connection takes the port of a server that is
/// down, and no client that retries connects to itself.
const PORTS: Range<u16> = 12_000..32_768;

/// Returns `count` different free ports. All are bound before the first is released.
pub fn free_ports(count: usize) -> Result<Vec<u16>> {
    let mut ports: Vec<u16> = PORTS.collect();
    ports.shuffle(&mut rand::rng());
    let free = |port| TcpListener::bind(("127.0.0.1", port)).ok().map(|held| (port, held));
    let held: Vec<_> = ports.into_iter().filter_map(free).take(count).collect();
    ensure!(held.len() == count, "{count} ports are not free among {PORTS:?}");
    Ok(held.into_iter().map(|(port, _)| port).collect())
}
