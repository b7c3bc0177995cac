//! Delegated authentication and authorization for a program that serves no API: the host knows the user of the bearer
//! token, and authorizes what the request does. Its answers are remembered and shared, and callers are bounded, as in an
//! API server.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use drydock_machinery::ApiError;
use http::Response;
use http::request::Parts;
use kube::Client;

use crate::auth::authn::{self, Peer, Proof, TokenReviewer, token};
use crate::auth::authz::{AuthorizationAttributes, Authorizer};
use crate::auth::caller::Caller;
use crate::auth::review::ReviewLimiter;
use crate::clock;
use crate::request::info::RequestInfo;
use crate::wire::status;

/// Longest time for both answers.
const LIMIT: Duration = Duration::from_secs(10);

/// Authenticates and authorizes requests.
pub struct DelegatedAuth {
    tokens: TokenReviewer,
    authorizer: Authorizer,
}

impl DelegatedAuth {
    /// Asks the host through `client`, which needs ClusterRole system:auth-delegator.
    pub fn new(client: Client) -> Self {
        let limiter = Arc::new(ReviewLimiter::default());
        let tokens = TokenReviewer::new(client.clone(), limiter.clone());
        Self { tokens, authorizer: Authorizer::new(client, limiter) }
    }

    /// Believes only tokens for one of these audiences; with none, those for the host's own.
    #[must_use]
    pub fn for_audiences(self, audiences: Vec<String>) -> Self {
        Self { tokens: self.tokens.for_audiences(audiences), ..self }
    }

    /// Returns the refusal of a request; `None` if its user may do what it asks. Removes the token from the headers, and
    /// reports what it proves to `peer`.
    pub async fn refusal(&self, request: &mut Parts, peer: &Peer) -> Option<Response<Body>> {
        let info = RequestInfo::parse(&request.method, &request.uri);
        let authorized = tokio::time::timeout(LIMIT, self.authorize(request, &info, peer)).await;
        let late =
            || Err(ApiError::service_unavailable("the host did not answer the access reviews in time"));
        let refused = authorized.unwrap_or_else(|_| late()).err()?;
        Some(status::refusal(&refused, &request.headers, &info.query))
    }

    async fn authorize(&self, request: &mut Parts, info: &RequestInfo, peer: &Peer) -> Result<(), ApiError> {
        let authorization = request.headers.remove(http::header::AUTHORIZATION);
        // Of a path that is too long only a part is known, for which another user may be authorized.
        info.check_path().inspect_err(|_| peer.proves(Proof::Unasked))?;
        let origin = peer.origin(clock::now() + LIMIT);
        let token = authorization.as_ref().and_then(token::of_header);
        let user = match token {
            Some(token) => self.tokens.review(token, &origin).await,
            None => Err(ApiError::unauthorized().into()),
        };
        match &user {
            Ok(user) => peer.proves(Proof::User(user)),
            Err(error) => authn::refused(error, peer),
        }
        let caller = Caller::new(user?, origin);
        self.authorizer.require(&caller, &caller.user, &AuthorizationAttributes::from(info)).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use http::Request;
    use http_body_util::BodyExt;
    use parking_lot::Mutex;
    use serde_json::{Value, json};

    use super::*;
    use crate::auth::authn::peer::Observer;

    /// A host that knows `ann` and `bob` by their names, and lets ann get /metrics; and how often it was asked.
    fn host() -> (Client, Arc<AtomicUsize>) {
        let times = Arc::<AtomicUsize>::default();
        let counted = times.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            counted.fetch_add(1, SeqCst);
            async move {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let review: Value = serde_json::from_slice(&body).unwrap();
                let (spec, asked) = (&review["spec"], &review["spec"]["nonResourceAttributes"]);
                let known = ["ann", "bob"].iter().any(|name| spec["token"] == *name);
                let allowed = spec["user"] == "ann" && asked["path"] == "/metrics" && asked["verb"] == "get";
                let user = json!({"username": spec["token"]});
                let status = json!({"authenticated": known, "user": user, "allowed": allowed});
                let answer = json!({ "status": status }).to_string().into_bytes();
                Ok::<_, Infallible>(Response::new(kube::client::Body::from(answer)))
            }
        });
        (Client::new(service, "default"), times)
    }

    async fn code_for(auth: &DelegatedAuth, path: &str, token: Option<&str>, peer: &Peer) -> u16 {
        let mut request = Request::get(path).body(Body::empty()).unwrap();
        if let Some(token) = token {
            let value = format!("Bearer {token}").parse().unwrap();
            request.headers_mut().insert(http::header::AUTHORIZATION, value);
        }
        let mut parts = request.into_parts().0;
        let refused = auth.refusal(&mut parts, peer).await;
        assert!(!parts.headers.contains_key(http::header::AUTHORIZATION), "no handler sees the token");
        refused.map_or(200, |refused| refused.status().as_u16())
    }

    async fn code(auth: &DelegatedAuth, token: Option<&str>) -> u16 {
        code_for(auth, "/metrics", token, &Peer::default()).await
    }

    #[tokio::test]
    async fn only_a_user_with_the_right_is_authorized() {
        let auth = DelegatedAuth::new(host().0);
        let codes =
            [code(&auth, Some("ann")).await, code(&auth, Some("bob")).await, code(&auth, Some("x")).await];
        assert_eq!(codes, [200, 403, 401]);
        assert_eq!(code(&auth, None).await, 401);
    }

    /// Each scrape cost two reviews, and so did each junk token of any client.
    #[tokio::test]
    async fn who_was_asked_about_is_not_asked_about_again() {
        let (client, times) = host();
        let auth = DelegatedAuth::new(client);
        for _ in 0..10 {
            assert_eq!((code(&auth, Some("ann")).await, code(&auth, Some("x")).await), (200, 401));
            assert_eq!(code(&auth, None).await, 401);
        }
        assert_eq!(times.load(SeqCst), 3);
    }

    #[tokio::test]
    async fn a_token_that_is_too_long_to_be_one_is_not_asked_about() {
        let (client, times) = host();
        let auth = DelegatedAuth::new(client);
        assert_eq!(code(&auth, Some(&"x".repeat(40_000))).await, 401);
        assert_eq!(times.load(SeqCst), 0);
    }

    /// What was proved, as words.
    #[derive(Default)]
    struct Proved(Mutex<Vec<String>>);

    impl Observer for Proved {
        fn observe(&self, proof: Proof<'_>) {
            self.0.lock().push(match proof {
                Proof::User(user) => user.name.clone(),
                other => format!("{other:?}"),
            });
        }
    }

    /// The port kept connections open for as long as their clients liked, as it did not know that they were nobody's.
    #[tokio::test]
    async fn the_port_learns_what_each_request_proves() {
        let (silent, auth) = (DelegatedAuth::new(silent_host()), DelegatedAuth::new(host().0));
        let long = format!("/{}", "x".repeat(10_000));
        for (auth, path, token, code, expected) in [
            (&auth, "/metrics", Some("ann"), 200, &["ann"][..]),
            (&auth, "/metrics", Some("bob"), 403, &["bob"]),
            (&auth, "/metrics", Some("x"), 401, &["Nobody"]),
            (&auth, "/metrics", None, 401, &["Nobody"]),
            (&auth, long.as_str(), Some("ann"), 404, &["Unasked"]),
            (&silent, "/metrics", Some("ann"), 401, &[]),
        ] {
            let proved = Arc::<Proved>::default();
            let peer = Peer::default().observed_by(proved.clone());
            assert_eq!(code_for(auth, path, token, &peer).await, code, "{token:?}");
            assert_eq!(*proved.0.lock(), expected, "{token:?}");
        }
    }

    /// A host that refuses to review.
    fn silent_host() -> Client {
        let service = tower::service_fn(|_: Request<kube::client::Body>| async {
            let refused = Response::builder().status(403).body(kube::client::Body::empty());
            Ok::<_, Infallible>(refused.unwrap())
        });
        Client::new(service, "default")
    }
}
