//! Authentication and authorization: the host decides by reviews.
//!
//! ```text
//!   authn      the user behind a request: front proxy, client certificate, bearer token
//!   authz      whether the user may do what the request asks
//!   impersonation  the user as whom the caller asks to act, and whether he may
//!   review     TokenReviews and SubjectAccessReviews: shared, remembered, bounded
//!   delegated  both, for a program that serves no API
//! ```

pub mod authn;
pub mod authz;
pub mod delegated;
pub mod impersonation;
pub mod review;
