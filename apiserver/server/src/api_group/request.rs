//! What the handler chain hands to the verbs: an authenticated, authorized request.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, Method};

use crate::audit::AuditContext;
use crate::auth::authn::{Caller, Origin};
use crate::flow_control::PriorityLevel;
use crate::request::info::{self, RequestInfo};
use crate::request::user::User;

/// A request after authentication and authorization.
pub struct Request {
    /// HTTP method.
    pub method: Method,
    /// What it is about.
    pub info: Arc<RequestInfo>,
    /// Who sent it.
    pub caller: Caller,
    /// Who asks: the caller, or as whom the caller acts.
    pub user: Arc<User>,
    /// The user's priority level.
    pub level: PriorityLevel,
    /// Headers, without those that authenticated.
    pub headers: HeaderMap,
    /// Body, not read yet.
    pub body: Body,
    /// Where what becomes known of it is logged.
    pub audit: AuditContext,
}

impl Request {
    /// A request that came in by no port, and is logged nowhere. It must be answered within `time`.
    pub fn local(request: http::Request<Body>, user: User, level: PriorityLevel, time: Duration) -> Self {
        let (http::request::Parts { method, uri, headers, .. }, body) = request.into_parts();
        let info = Arc::new(info::parse(&method, &uri));
        let (user, audit) = (Arc::new(user), AuditContext::default());
        let caller = Caller::new(user.clone(), Origin::local(time));
        Self { method, info, caller, user, level, headers, body, audit }
    }
}
