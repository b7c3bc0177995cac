//! Answers as bytes: the only place that knows wire formats.
//!
//! ```text
//!   respond (status, Answer, Output)
//!     ├── object     one object, or its Table or metadata
//!     ├── list       a page: concatenated shared bytes, streamed
//!     ├── status     errors and Success
//!     └── response   bytes, gzip above 128 KiB
//! ```

mod list;
mod object;
mod pretty;
pub mod protobuf;
mod response;
mod status;

pub use list::{ListPage, list, list_json};
pub use object::{ObjectView, include_object, object_bytes, one, value};
pub use response::bytes;
pub use status::{encoded as status_bytes, error, fallback, refusal, success};
