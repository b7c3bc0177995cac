//! grpc.health.v1.Health: SERVING while /readyz passes, for the server and for the mounted service by name.

use std::sync::Arc;
use std::time::Duration;

use drydock_serving::health::Health;
use futures::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_check_response, health_server};

/// Name of the service.
pub(super) const NAME: &str = "grpc.health.v1.Health";
/// The method that needs no authentication.
pub(super) const CHECK: &str = "/grpc.health.v1.Health/Check";
/// The method that needs an authenticated caller.
pub(super) const WATCH: &str = "/grpc.health.v1.Health/Watch";
/// Time between two runs of the checks while a client watches.
const PERIOD: Duration = Duration::from_secs(1);

/// Whether the server is ready, for checks and watches.
#[derive(Clone)]
pub(super) struct ServiceReadiness {
    health: Health,
    service: &'static str,
    ready: Arc<watch::Sender<bool>>,
}

impl ServiceReadiness {
    /// Readiness by the checks of `health`; `service` is the name of the mounted service.
    pub(super) fn new(health: Health, service: &'static str) -> Self {
        Self { health, service, ready: Arc::new(watch::channel(false).0) }
    }

    /// Runs the checks while a client watches, until the future is dropped.
    pub(super) async fn follow(&self) {
        let mut period = tokio::time::interval(PERIOD);
        loop {
            period.tick().await;
            if self.ready.receiver_count() > 0 {
                self.look();
            }
        }
    }

    fn look(&self) {
        let is_ready = self.health.is_ready();
        self.ready.send_if_modified(|known| std::mem::replace(known, is_ready) != is_ready);
    }

    fn knows(&self, service: &str) -> bool {
        service.is_empty() || service == self.service || service == NAME
    }
}

#[tonic::async_trait]
impl health_server::Health for ServiceReadiness {
    type WatchStream = BoxStream<'static, Result<HealthCheckResponse, Status>>;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !self.knows(&request.get_ref().service) {
            return Err(Status::not_found("this server has no service of that name"));
        }
        Ok(Response::new(response(serving(self.health.is_ready()))))
    }

    /// An unknown service stays unknown: services are mounted before the server starts.
    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        if !self.knows(&request.get_ref().service) {
            let unknown = stream::once(async { Ok(response(ServingStatus::Unknown)) });
            return Ok(Response::new(unknown.chain(stream::pending()).boxed()));
        }
        let mut ready = self.ready.subscribe();
        self.look();
        ready.mark_changed();
        let changes = stream::unfold(ready, |mut ready| async move {
            ready.changed().await.ok()?;
            let is_ready = *ready.borrow_and_update();
            Some((Ok(response(serving(is_ready))), ready))
        });
        Ok(Response::new(changes.boxed()))
    }
}

fn serving(is_ready: bool) -> ServingStatus {
    if is_ready { ServingStatus::Serving } else { ServingStatus::NotServing }
}

/// Maps `Unknown` to SERVICE_UNKNOWN, as the protocol demands for a watch.
fn response(status: ServingStatus) -> HealthCheckResponse {
    let status = match status {
        ServingStatus::Serving => health_check_response::ServingStatus::Serving,
        ServingStatus::NotServing => health_check_response::ServingStatus::NotServing,
        ServingStatus::Unknown => health_check_response::ServingStatus::ServiceUnknown,
    };
    HealthCheckResponse { status: status.into() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    use tonic::Code;
    use tonic_health::pb::health_server::Health as _;

    use super::*;

    fn readiness() -> (ServiceReadiness, Arc<AtomicBool>) {
        let ready = Arc::new(AtomicBool::new(true));
        let check = ready.clone();
        let check = Arc::new(move || if check.load(SeqCst) { Ok(()) } else { Err("not yet".to_owned()) });
        (ServiceReadiness::new(Health::default().ready("test", check), "p.S"), ready)
    }

    fn of(service: &str) -> Request<HealthCheckRequest> {
        Request::new(HealthCheckRequest { service: service.to_owned() })
    }

    #[tokio::test]
    async fn a_check_says_what_readyz_says() {
        let (readiness, ready) = readiness();
        let status =
            async |service: &str| readiness.check(of(service)).await.map(|it| it.into_inner().status());
        for service in ["", "p.S", NAME] {
            assert_eq!(status(service).await.unwrap(), health_check_response::ServingStatus::Serving);
        }
        ready.store(false, SeqCst);
        assert_eq!(status("").await.unwrap(), health_check_response::ServingStatus::NotServing);
        assert_eq!(status("other.S").await.unwrap_err().code(), Code::NotFound);
    }

    #[tokio::test]
    async fn a_watch_tells_what_there_is_and_each_change() {
        let (readiness, ready) = readiness();
        let following = readiness.clone();
        let _following =
            tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move { following.follow().await }));
        let mut watch = readiness.watch(of("p.S")).await.unwrap().into_inner();
        let mut next = async || watch.next().await.unwrap().unwrap().status();
        assert_eq!(next().await, health_check_response::ServingStatus::Serving);
        ready.store(false, SeqCst);
        assert_eq!(next().await, health_check_response::ServingStatus::NotServing);
        let mut unknown = readiness.watch(of("other.S")).await.unwrap().into_inner();
        let first = unknown.next().await.unwrap().unwrap().status();
        assert_eq!(first, health_check_response::ServingStatus::ServiceUnknown);
    }
}
