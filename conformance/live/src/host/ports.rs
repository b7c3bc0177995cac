//! Free ports on loopback.

use std::net::TcpListener;

use anyhow::Result;

/// As many different free ports as asked for: all are held before the first is let go.
pub fn free_ports(count: usize) -> Result<Vec<u16>> {
    let held = (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<Vec<_>, _>>()?;
    Ok(held
        .iter()
        .map(|listener| Ok(listener.local_addr()?.port()))
        .collect::<Result<_, std::io::Error>>()?)
}
