//! K's kind: a CustomResourceDefinition of D's own schema.

use anyhow::Result;
use drydock_testkit::crd::{self, CustomNames};
use drydock_testkit::host::TestHost;

use super::{DRYDOCK_API, SubjectServer};
use crate::client::ConnectionWindows;
use crate::object::{self, ObjectApi};

/// What K serves.
pub const API: ObjectApi = ObjectApi {
    group: "bench.drydock.example.com",
    version: "v1alpha1",
    kind: "EvictionRequest",
    resource: "evictionrequests",
    has_status: true,
    spec: object::eviction_request,
};

/// Creates the definition and waits until it is served.
pub async fn install(host: &TestHost, drydock: &SubjectServer) -> Result<()> {
    let client = drydock.http(1, ConnectionWindows::USUAL).await?;
    let path = format!("/openapi/v3/apis/{}/{}", DRYDOCK_API.group, DRYDOCK_API.version);
    let document = serde_json::from_slice(&client.read(&path).await?)?;
    let names = CustomNames {
        group: API.group,
        version: API.version,
        kind: API.kind,
        plural: API.resource,
        namespaced: true,
    };
    crd::install(host, &crd::definition(&names, &document)?)
}
