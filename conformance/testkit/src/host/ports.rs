//! Free ports on loopback, each of which one process of the machine gets.
//!
//! ```text
//! block:  guard | port | port | ...     a process binds the guard of a block, and has its ports then
//! ```
//!
//! The kernel closes the guards of a process that ends, however it ends, and other processes get its blocks. Until then a port
//! that was chosen is nobody else's: not before its server is started, and not while its server is down. Whoever runs for long
//! gives ports back ([`OwnPorts`]): there are some 20,000.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::{Deref, Range};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use rand::seq::SliceRandom;

/// The ports that are given. No connection takes the port of a server that is down, and no client that retries connects to
/// itself, as these are below the ephemeral ports of Linux, unless the machine has others.
const PORTS: Range<u16> = 12_000..32_768;
/// The ports of a block, its guard included: each block costs its process a file descriptor.
const BLOCK: u16 = 64;
/// The first and the last ephemeral port of this machine.
const EPHEMERAL: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// The blocks of this process.
static OURS: Mutex<PortBlocks> = Mutex::new(PortBlocks::NOTHING);

/// Returns `count` different free ports, which no other call returns, in this process or in another one, as long as this
/// process runs.
pub fn free_ports(count: usize) -> Result<Vec<u16>> {
    Ok(std::mem::take(&mut OwnPorts::take(count)?.0))
}

/// Free ports, which nobody else gets before this is dropped. Its servers have to end before.
#[derive(Debug, Default)]
pub struct OwnPorts(Vec<u16>);

impl OwnPorts {
    /// Takes `count` different ones.
    pub fn take(count: usize) -> Result<Self> {
        let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Self((0..count).map(|_| ours.give()).collect::<Result<_>>()?))
    }

    /// Takes one more, and returns it.
    pub fn take_another(&mut self) -> Result<u16> {
        let port = OURS.lock().unwrap_or_else(PoisonError::into_inner).give()?;
        self.0.push(port);
        Ok(port)
    }
}

impl Deref for OwnPorts {
    type Target = [u16];

    fn deref(&self) -> &[u16] {
        &self.0
    }
}

impl Drop for OwnPorts {
    fn drop(&mut self) {
        OURS.lock().unwrap_or_else(PoisonError::into_inner).left.extend(&self.0);
    }
}

/// The blocks that a process has.
struct PortBlocks {
    guards: Vec<TcpListener>,
    /// The ports that are not given. The one that has been left for longest is given next.
    left: VecDeque<u16>,
}

impl PortBlocks {
    const NOTHING: Self = Self { guards: Vec::new(), left: VecDeque::new() };

    /// Returns the next port that is free.
    fn give(&mut self) -> Result<u16> {
        loop {
            for _ in 0..self.left.len() {
                let Some(port) = self.left.pop_front() else { break };
                if bind(port).is_some() {
                    return Ok(port);
                }
                // Someone listens there, for now.
                self.left.push_back(port);
            }
            self.take_block()?;
        }
    }

    fn take_block(&mut self) -> Result<()> {
        let ephemeral = std::fs::read_to_string(EPHEMERAL).unwrap_or_default();
        let ports = outside(&ephemeral);
        let mut guards: Vec<u16> = ports.clone().step_by(usize::from(BLOCK)).collect();
        guards.shuffle(&mut rand::rng());
        let taken = guards.into_iter().find_map(|port| Some((port, bind(port)?)));
        let (first, guard) = taken.with_context(|| format!("no block of ports is free in {ports:?}"))?;
        self.guards.push(guard);
        self.left.extend(first + 1..(first + BLOCK).min(ports.end));
        Ok(())
    }
}

fn bind(port: u16) -> Option<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()
}

/// The part of [`PORTS`] below the ephemeral ports, if it is long enough; all of them if not.
fn outside(ephemeral: &str) -> Range<u16> {
    let first = ephemeral.split_whitespace().next().and_then(|first| first.parse().ok());
    let below = PORTS.start..PORTS.end.min(first.unwrap_or(PORTS.end));
    if below.len() >= 64 * usize::from(BLOCK) { below } else { PORTS }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::wait::LIMIT;

    /// Test processes that ran side by side chose the same port, and the server that was later to bind it ended.
    #[test]
    fn no_port_is_given_to_two_processes_nor_twice() -> Result<()> {
        let [mut one, mut other] = [PortBlocks::NOTHING, PortBlocks::NOTHING];
        let mut ports = Vec::new();
        for _ in 0..2 * BLOCK {
            ports.extend([one.give()?, other.give()?]);
        }
        let given = ports.len();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), given);
        Ok(())
    }

    #[test]
    fn a_port_on_which_someone_listens_is_not_given() -> Result<()> {
        let mut blocks = PortBlocks::NOTHING;
        blocks.give()?;
        let taken = blocks.left.front().copied().context("a block of two ports")?;
        let listener = bind(taken);
        assert_ne!(blocks.give()?, taken);
        drop(listener);
        assert!(blocks.left.contains(&taken), "it may be given later");
        Ok(())
    }

    /// A run of hours took a block after another, until there was none.
    #[test]
    fn ports_come_back_and_no_more_blocks_are_taken() -> Result<()> {
        let mut blocks = PortBlocks::NOTHING;
        for _ in 0..100 * BLOCK {
            let port = blocks.give()?;
            blocks.left.push_back(port);
        }
        assert_eq!(blocks.guards.len(), 1);
        let own = OwnPorts::take(3)?;
        let ports = own.to_vec();
        let ours = || OURS.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(!ports.iter().any(|port| ours().left.contains(port)));
        drop(own);
        let left = ours();
        assert!(ports.iter().all(|port| left.left.contains(port)));
        Ok(())
    }

    #[test]
    fn a_process_that_ends_leaves_its_blocks_to_others() -> Result<()> {
        let mut blocks = PortBlocks::NOTHING;
        blocks.give()?;
        let guard = blocks.guards[0].local_addr()?.port();
        assert!(bind(guard).is_none());
        drop(blocks);
        // A child that another test starts meanwhile has the guard open until it executes its program.
        let began = Instant::now();
        while bind(guard).is_none() {
            anyhow::ensure!(began.elapsed() < LIMIT, "the guard stays open");
            std::thread::yield_now();
        }
        Ok(())
    }

    #[test]
    fn ports_of_outgoing_connections_are_left_out_where_enough_others_are_left() {
        assert_eq!(outside("32768\t60999\n"), PORTS);
        assert_eq!(outside("20000\t60999\n"), PORTS.start..20_000);
        assert_eq!(outside("1024\t65535\n"), PORTS);
        assert_eq!(outside(""), PORTS);
    }
}
