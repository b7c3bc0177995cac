//! What the handler chain hands to the verbs: an authenticated, authorized request.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use http::{HeaderMap, Method};

use crate::audit::Trail;
use crate::request_info::RequestInfo;
use crate::user::User;

/// A request after authentication and authorization.
pub struct Request {
    /// HTTP method.
    pub method: Method,
    /// What it is about.
    pub info: Arc<RequestInfo>,
    /// Who asks.
    pub user: Arc<User>,
    /// Headers, without those that authenticated.
    pub headers: HeaderMap,
    /// Body, not read yet.
    pub body: Body,
    /// When a request that does not stream must have been answered.
    pub deadline: Instant,
    /// Value of the `Audit-Id` header.
    pub audit_id: String,
    /// Where what becomes known of it is logged.
    pub audit: Trail,
}
