//! Tokens that our programs accept when they have audiences of their own. The host decides for which audience a token is.

use anyhow::{Context, Result};
use drydock_testkit::host::TestHost;
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::wait::{https_ready, until_some};
use http::{Request, header};
use kube::Client;
use serde_json::Value;

use super::setup::{BOTH, ProgramSetup};
use crate::shared::LIMIT;

const OURS: &str = "https://drydock-apiserver.drydock-system.svc";
/// The code for a caller who is authenticated, and may not get /metrics.
const FORBIDDEN: u16 = 403;
const UNAUTHORIZED: u16 = 401;

#[tokio::test(flavor = "multi_thread")]
async fn a_token_must_be_for_one_of_our_audiences() -> Result<()> {
    let host = TestHost::shared().await?;
    let issuer = issuer(&host.client().await?).await?;
    let [ours, other] = [OURS, "https://another.service.svc"].map(|audience| token(&host, Some(audience)));
    let (ours, other, hosts) = (ours.await?, other.await?, token(&host, None).await?);
    for name in BOTH {
        let own = format!("--api-audiences={OURS}");
        let both = format!("--api-audiences={OURS},{issuer}");
        // Without the flag the audience is the host's own.
        for (test, flag, expected) in [
            ("audience-none", None, [UNAUTHORIZED, UNAUTHORIZED, FORBIDDEN]),
            ("audience-own", Some(own), [FORBIDDEN, UNAUTHORIZED, UNAUTHORIZED]),
            ("audience-both", Some(both), [FORBIDDEN, UNAUTHORIZED, FORBIDDEN]),
        ] {
            let program = ProgramSetup::new(&host, test, name, &host.url).await?;
            let _running = program.start(flag.as_slice())?;
            https_ready(program.port, "/livez", LIMIT).await?;
            let url = format!("https://127.0.0.1:{}", program.port);
            let mut codes = Vec::new();
            for token in [&ours, &other, &hosts] {
                codes.push(code(&url, token).await?);
            }
            assert_eq!(codes, expected, "{name}, {test}: tokens for us, for another and for the host");
        }
    }
    Ok(())
}

/// A token that is sent to one of our programs must not be valid for the host.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_us_is_no_good_at_the_host() -> Result<()> {
    let host = TestHost::shared().await?;
    assert_eq!(code(&host.url, &token(&host, Some(OURS)).await?).await?, UNAUTHORIZED);
    assert_eq!(code(&host.url, &token(&host, None).await?).await?, FORBIDDEN);
    Ok(())
}

/// A token of a service account without rights, for this audience or else the host's own.
pub async fn token(host: &TestHost, audience: Option<&str>) -> Result<String> {
    let audience = audience.map(|audience| format!("--audience={audience}"));
    let words = [&["create", "token", "default"], audience.as_deref().as_slice()].concat();
    let kubectl = Kubectl::new(host);
    // The account is made a moment after the host has started.
    let made = async || Ok(kubectl.ok(&words).await.ok().map(|token| token.trim().to_owned()));
    until_some(LIMIT, || format!("{words:?} makes no token"), made).await
}

/// The host's own audience, unless a flag sets another one.
async fn issuer(client: &Client) -> Result<String> {
    let path = "/.well-known/openid-configuration";
    let document: Value = client.request(Request::get(path).body(Vec::new())?).await?;
    document["issuer"].as_str().map(str::to_owned).with_context(|| format!("{document}"))
}

async fn code(url: &str, token: &str) -> Result<u16> {
    let mut config = kube::Config::new(url.parse()?);
    config.accept_invalid_certs = true;
    let request = Request::get("/metrics").header(header::AUTHORIZATION, format!("Bearer {token}"));
    Ok(Client::try_from(config)?.send(request.body(Vec::new())?.map(Into::into)).await?.status().as_u16())
}
