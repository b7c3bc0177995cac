//! What goes wrong by chance.

/// How often each fault occurs while there is power, in 1,000 writes and syncs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// A write ends in the middle.
    pub short_write: u32,
    /// A write finds no space, after a part of it.
    pub no_space: u32,
    /// A sync fails, after a part of it.
    pub bad_sync: u32,
    /// A fault of the test itself: a sync does nothing, and reports success.
    pub lying_sync: u32,
}
