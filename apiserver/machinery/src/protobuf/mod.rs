//! The protobuf form of objects, from the schema alone: proto2 as gogo writes it for Kubernetes' Go types.
//!
//! ```text
//! 6b 38 73 00  Unknown{typeMeta = 1 {apiVersion = 1, kind = 2}, raw = 2, contentEncoding = 3, contentType = 4}
//!                                                               ^^^ the message: Schema's fields by number
//! ```
//!
//! Fields ascend by number, maps by key. Strings are written even when empty, as Go's are no pointers; numbers and
//! booleans only when present, as most of Go's are; a field of [`Field::always`](crate::schema::Field) always.

mod decode;
mod delete_options;
mod encode;
mod envelope;
mod reader;
mod scalar;
mod writer;

pub use decode::{decode, decode_message};
pub use delete_options::decode_delete_options;
pub use encode::{encode, encode_message, encode_metadata};
pub use envelope::{Envelope, MAGIC};

#[cfg(test)]
mod tests;
