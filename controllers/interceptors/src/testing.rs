//! For tests: a request in the turn of the DaemonSet interceptor, and a reporter.

// Compiled for tests alone.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use drydock_api::eviction_request::interceptors::DAEMON_SET;
use drydock_api::eviction_request::{EvictionRequest, InterceptorStatus, Requester};
use drydock_runtime::ControllerContext;
use jiff::Timestamp;

use crate::report::{ProgressReport, Reporter};

pub(crate) fn request() -> EvictionRequest {
    let mut request = EvictionRequest::named("ns", "uid");
    request.spec.requesters = vec![Requester { name: "r.example.com".into() }];
    request.status.active_interceptors = vec![DAEMON_SET.into()];
    request.status.interceptors = vec![InterceptorStatus { name: DAEMON_SET.into(), ..Default::default() }];
    request
}

pub(crate) fn progress(message: &str) -> ProgressReport {
    ProgressReport { message: message.into(), ..ProgressReport::default() }
}

pub(crate) fn reporter(context: &ControllerContext) -> Reporter {
    Reporter::new(context.clone(), DAEMON_SET, Duration::ZERO)
}

pub(crate) fn at_second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}
