//! Makes the messages of the stream from our objects: pure functions, one module for each message.

pub mod eviction;
pub mod fields;
pub mod maintenance;
pub mod node;

pub mod bounds;
mod plan;
mod words;

use drydock_proto::prost_types;
use jiff::Timestamp;

/// Converts a time to protobuf.
pub fn timestamp(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: time.as_second(), nanos: time.subsec_nanosecond() }
}

/// Returns the sum of counts, which saturates.
fn count(of: impl Iterator<Item = i32>) -> i32 {
    of.fold(0, i32::saturating_add)
}
