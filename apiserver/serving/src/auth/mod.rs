//! Authentication and authorization: the host decides by reviews.
//!
//! ```text
//!   caller         the authenticated sender of a request, where it comes from, and when it must be answered
//!   authn          the user behind a request: front proxy, client certificate, bearer token
//!   authz          whether the user may do what the request asks
//!   impersonation  the user as whom the caller asks to act, and whether the caller may
//!   review         TokenReviews and SubjectAccessReviews: shared, remembered, bounded
//!   delegated      authn and authz for a program that serves no API
//! ```

pub mod authn;
pub mod authz;
mod caller;
pub mod delegated;
pub mod impersonation;
pub mod review;

pub use caller::{Caller, Origin, ProvedBy};
