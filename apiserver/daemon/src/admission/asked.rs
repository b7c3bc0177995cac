//! For tests: an authorizer whose host answers by a rule and records its reviews.

#![allow(clippy::unwrap_used, reason = "tests may fail")]

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drydock_serving::auth::authz::Authorizer;
use drydock_serving::auth::{Caller, Origin};
use drydock_serving::request::user::User;
use http::{Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// The user of `--controller-users`.
pub const CONTROLLER: &str = "system:serviceaccount:drydock-system:drydock-controller-manager";

/// The resource attributes of each review that a host received.
#[derive(Clone, Default)]
pub struct Asked(Arc<Mutex<Vec<Value>>>);

impl Asked {
    pub fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }

    /// The names of the objects.
    pub fn names(&self) -> Vec<String> {
        self.all().iter().map(|about| name(about).to_owned()).collect()
    }
}

/// Creates an authorizer whose host decides by user and object name.
pub fn host(rule: fn(&str, &str) -> bool) -> (Arc<Authorizer>, Asked) {
    host_by(move |spec| rule(spec["user"].as_str().unwrap(), name(&spec["resourceAttributes"])))
}

/// Creates an authorizer whose host decides by the review's spec.
pub fn host_by(rule: impl Fn(&Value) -> bool + Clone + Send + 'static) -> (Arc<Authorizer>, Asked) {
    let asked = Asked::default();
    let told = asked.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (told, rule) = (told.clone(), rule.clone());
        async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let review: Value = serde_json::from_slice(&body).unwrap();
            let allowed = rule(&review["spec"]);
            told.0.lock().unwrap().push(review["spec"]["resourceAttributes"].clone());
            let answer = json!({"status": {"allowed": allowed}}).to_string();
            Ok::<_, Infallible>(Response::new(Body::from(answer.into_bytes())))
        }
    });
    let authorizer = Authorizer::new(Client::new(service, "default"), Arc::default());
    (Arc::new(authorizer.asking_in_general(|user| user.name == CONTROLLER)), asked)
}

fn name(about: &Value) -> &str {
    about["name"].as_str().unwrap_or_default()
}

pub fn caller(name: &str, groups: &[&str]) -> Caller {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    let user = User { name: name.to_owned(), groups, ..User::default() };
    Caller::new(Arc::new(user), Origin::local(Duration::from_secs(60)))
}
