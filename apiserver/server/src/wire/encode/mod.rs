//! Objects as bytes, in the form that the client negotiated:
//!
//! ```text
//!   object     one object, or its Table or metadata
//!   list       a page, made in steps and streamed if it is large
//! ```

mod list;
mod object;

pub use list::{ListPage, list, list_json};
pub use object::{ObjectView, include_object, object_bytes, one};
