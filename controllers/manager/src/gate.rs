//! Who may read `/metrics`: whoever the host knows by their bearer token, and lets `get` the path.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, header};
use drydock_runtime::metrics::Gate;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tracing::debug;

/// A review takes no longer than this.
const LIMIT: Duration = Duration::from_secs(10);
/// A longer token is not a token.
const MAX_TOKEN: usize = 16 * 1024;

/// Asks the host.
pub fn by_host(client: Client) -> Gate {
    Arc::new(move |headers| {
        let client = client.clone();
        Box::pin(async move {
            let token = bearer(&headers).ok_or(StatusCode::UNAUTHORIZED)?;
            let reviewed = tokio::time::timeout(LIMIT, review(&client, token)).await;
            reviewed.unwrap_or(Err(StatusCode::SERVICE_UNAVAILABLE))
        })
    })
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let is_token = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= MAX_TOKEN;
    is_token.then(|| token.trim())
}

async fn review(client: &Client, token: &str) -> Result<(), StatusCode> {
    let user = user_of(client, token).await?.ok_or(StatusCode::UNAUTHORIZED)?;
    let review = SubjectAccessReview { spec: question(user), ..Default::default() };
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let answer = api.create(&PostParams::default(), &review).await.map_err(unavailable)?;
    if answer.status.is_some_and(|status| status.allowed) { Ok(()) } else { Err(StatusCode::FORBIDDEN) }
}

async fn user_of(client: &Client, token: &str) -> Result<Option<UserInfo>, StatusCode> {
    let spec = TokenReviewSpec { token: Some(token.to_owned()), audiences: None };
    let api: Api<TokenReview> = Api::all(client.clone());
    let review = TokenReview { spec, ..Default::default() };
    let status = api.create(&PostParams::default(), &review).await.map_err(unavailable)?.status;
    let status = status.unwrap_or_default();
    Ok(status.user.filter(|_| status.authenticated == Some(true)))
}

fn question(user: UserInfo) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: user.username,
        groups: user.groups,
        uid: user.uid,
        extra: user.extra,
        non_resource_attributes: Some(NonResourceAttributes {
            path: Some("/metrics".to_owned()),
            verb: Some("get".to_owned()),
        }),
        ..Default::default()
    }
}

fn unavailable(error: kube::Error) -> StatusCode {
    debug!(%error, "cannot ask the host about a reader of /metrics");
    StatusCode::SERVICE_UNAVAILABLE
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_a_bearer_token_of_sane_length_is_looked_at() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(of("Bearer abc"), Some("abc".into()));
        assert_eq!(of("bearer abc"), Some("abc".into()));
        assert_eq!(of("Basic abc"), None);
        assert_eq!(of("Bearer "), None);
        assert_eq!(of(&format!("Bearer {}", "x".repeat(MAX_TOKEN + 1))), None);
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
