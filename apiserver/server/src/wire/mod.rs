//! Bytes from and to objects, and errors as answers: the only place that knows wire formats.
//!
//! ```text
//!   body ──▶ codec ──▶ objects ──▶ encode ──▶ response, in the form that negotiate chose
//! ```

pub mod body;
pub(crate) mod codec;
pub mod encode;
pub mod negotiate;
pub mod storage_error;
