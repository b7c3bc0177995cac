//! Answers as bytes, in the form that the client negotiated:
//!
//! ```text
//!   object     one object, or its Table or metadata (pretty: indented JSON; protobuf: the envelope)
//!   list       a page, made in steps and streamed if it is large
//!   status     errors and Success
//!   response   bytes, gzip above 128 KiB
//! ```

mod list;
mod object;
mod pretty;
pub mod protobuf;
mod response;
mod status;

pub use list::{ListPage, list, list_json};
pub use object::{ObjectView, include_object, object_bytes, one};
pub use response::{bytes, value};
pub use status::{encoded as status_bytes, error, fallback, refusal, success};
