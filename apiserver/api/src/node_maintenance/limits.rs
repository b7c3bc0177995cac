//! Limits on the size of one NodeMaintenance.

/// Maximum number of nodes in one object. The status of a node has about 350 bytes while its pods leave (its name,
/// one target per pod type, a message, two numbers), so that this many stay below the 1.5 MiB that the storage
/// accepts.
pub const MAX_NODES: usize = 4000;
/// Maximum bytes of `status.nodeStatuses` as JSON: what the storage accepts, less space for the rest of the object.
pub const MAX_NODE_STATUSES_BYTES: usize = 1_400_000;
/// Maximum bytes of one object that the storage accepts by default.
pub const MAX_OBJECT_BYTES: usize = 3 << 19;
/// Maximum number of entries of a drain plan, with the twelve that are inserted.
pub const MAX_DRAIN_PLAN: usize = 512;
