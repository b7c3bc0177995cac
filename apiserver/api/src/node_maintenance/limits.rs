//! How much one NodeMaintenance may hold.

/// Most nodes that one object carries. A node's status is about 350 bytes while its pods leave (its name, a target a
/// pod type, a message, two numbers), so that this many stay below the 1.5 MiB that storage takes.
pub const MAX_NODES: usize = 4000;
/// Most bytes of `status.nodeStatuses` as JSON: what storage takes, less room for the rest of the object.
pub const MAX_NODE_STATUSES_BYTES: usize = 1_400_000;
/// Most bytes that storage takes of one object, by default.
pub const MAX_OBJECT_BYTES: usize = 3 << 19;
/// Most entries of a drain plan, the twelve that are inserted among them.
pub const MAX_DRAIN_PLAN: usize = 512;
