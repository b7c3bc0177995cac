//! The protobuf encoding of objects, derived from the schema: proto2 as gogo writes it for Kubernetes' Go types.
//!
//! ```text
//! 6b 38 73 00  Unknown{typeMeta = 1 {apiVersion = 1, kind = 2}, raw = 2, contentEncoding = 3, contentType = 4}
//!                                                               ^^^ the message: Schema's fields by number
//! ```
//!
//! Fields are written in ascending order of their numbers, maps in that of their keys. Strings are written even if
//! they are empty, because Go's are not pointers; numbers and booleans only if they are present, because most of Go's
//! are pointers; a field with [`Field::always`](crate::schema::Field) is always written.

mod decode;
mod encode;
mod envelope;
mod scalar;
pub(crate) mod wire;

pub use decode::{decode, decode_delete_options, decode_message};
pub use encode::{encode, encode_message, encode_metadata};
pub use envelope::{Envelope, MAGIC};

#[cfg(test)]
mod tests;
