//! What readers of the stream see, made from our objects: pure functions, one module a message.

pub mod eviction;
pub mod fields;
pub mod maintenance;
pub mod node;

pub mod bounds;
mod plan;
mod words;

use drydock_proto::prost_types;
use jiff::Timestamp;

/// The same moment in protobuf.
pub fn timestamp(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: time.as_second(), nanos: time.subsec_nanosecond() }
}

/// A count as the messages have it: sums beyond the range stay at its end.
fn count(of: impl Iterator<Item = i32>) -> i32 {
    of.fold(0, i32::saturating_add)
}
