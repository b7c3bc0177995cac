//! The wire formats that every answer has in common: which form a client wants, errors and other Status in that form, and
//! responses of bytes.
//!
//! ```text
//!   negotiate  which form an answer takes
//!   status     errors and Success
//!   response   bytes, gzip above 128 KiB; documents of JSON or YAML (pretty: indented JSON)
//!   protobuf   the envelope, and the types of meta.k8s.io
//! ```

pub mod negotiate;
pub mod pretty;
pub mod protobuf;
pub mod response;
pub mod status;
