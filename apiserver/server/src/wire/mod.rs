//! Bytes from and to objects; of this crate the only place that knows wire formats.
//!
//! ```text
//!   body ──▶ codec ──▶ objects ──▶ object, list ──▶ response, in the form that `drydock_serving::wire::negotiate` chose
//!
//!   object     one object, or its Table or metadata
//!   list       a page, made in steps and streamed if it is large
//! ```

pub mod body;
pub(crate) mod codec;
pub mod list;
pub mod object;
pub mod storage_error;
