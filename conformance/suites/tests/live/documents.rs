//! Documents that clients keep: their tags, and the 304 for those who have them, by our port and through the
//! aggregator.

use anyhow::{Context, Result};
use http::{Request, header};
use http_body_util::BodyExt;
use kube::Client;
use serde_json::Value;

use crate::shared::shared;

const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const OURS: &str = "apis/coordination.k8s.io/v1alpha1";

#[tokio::test(flavor = "multi_thread")]
async fn who_has_a_document_is_not_sent_it_again() -> Result<()> {
    let drydock = &shared().await?.drydock;
    let (direct, host) = (drydock.direct().await?, drydock.host.client().await?);
    for (client, path, accept) in [
        (&direct, "/apis".to_owned(), DISCOVERY),
        (&direct, "/openapi/v2".to_owned(), "application/json"),
        (&direct, "/openapi/v3".to_owned(), "application/json"),
        (&direct, schema(&direct).await?, "application/json"),
        (&host, schema(&host).await?, "application/json"),
        (&host, format!("/openapi/v3/{OURS}"), "application/json"),
        (&host, "/apis".to_owned(), DISCOVERY),
        (&host, "/openapi/v2".to_owned(), "application/json"),
    ] {
        let (code, tag, body) = get(client, &path, accept, "").await?;
        assert!(code == 200 && !tag.is_empty() && !body.is_empty(), "{path}: {code} {tag}");
        let (code, again, body) = get(client, &path, accept, &tag).await?;
        assert_eq!((code, again.as_str(), body.len()), (304, tag.as_str(), 0), "{path}");
        let (code, _, body) = get(client, &path, accept, "\"another\"").await?;
        assert!(code == 200 && !body.is_empty(), "{path}: {code}");
    }
    Ok(())
}

/// The address of our kinds' schema, which says what is there.
async fn schema(client: &Client) -> Result<String> {
    let (_, _, index) = get(client, "/openapi/v3", "application/json", "").await?;
    let index: Value = serde_json::from_slice(&index)?;
    let url = index["paths"][OURS]["serverRelativeURL"].as_str();
    url.map(str::to_owned).with_context(|| format!("our kinds are not in {index}"))
}

async fn get(client: &Client, path: &str, accept: &str, tag: &str) -> Result<(u16, String, Vec<u8>)> {
    let mut request = Request::get(path).header(header::ACCEPT, accept);
    if !tag.is_empty() {
        request = request.header(header::IF_NONE_MATCH, tag);
    }
    let answer = client.send(request.body(Vec::new().into())?).await?;
    let (parts, body) = answer.into_parts();
    let tag = parts.headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()).unwrap_or_default();
    Ok((parts.status.as_u16(), tag.to_owned(), body.collect().await?.to_bytes().to_vec()))
}
