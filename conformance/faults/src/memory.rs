//! The memory that connections share beside a write-ahead log (sqlite.org/walformat.html, 2.2). It is never given back:
//! regions are zeroed and used again, so that a pointer into one is never dangling.

use std::sync::atomic::{AtomicU8, Ordering};

/// A piece of it.
pub type Region = &'static [AtomicU8];

/// Regions that are not in use.
#[derive(Default)]
pub struct RegionPool(Vec<Region>);

impl RegionPool {
    /// A region of zeroes.
    pub fn take(&mut self, size: usize) -> Region {
        match self.0.iter().position(|region| region.len() == size) {
            Some(at) => self.0.swap_remove(at),
            None => Box::leak((0..size).map(|_| AtomicU8::new(0)).collect()),
        }
    }

    /// Takes regions back to which no connection points any more.
    pub fn give(&mut self, regions: Vec<Region>) {
        for region in &regions {
            region.iter().for_each(|byte| byte.store(0, Ordering::Relaxed));
        }
        self.0.extend(regions);
    }
}
