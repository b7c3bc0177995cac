//! Bytes from and to objects; of this crate the only place that knows wire formats.
//!
//! ```text
//!   body ──▶ codec ──▶ objects ──▶ encode ──▶ response, in the form that `drydock_serving::wire::negotiate` chose
//! ```

pub mod body;
pub(crate) mod codec;
pub mod list;
pub mod object;
pub mod storage_error;
