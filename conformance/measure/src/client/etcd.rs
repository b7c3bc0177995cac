//! Raw etcd: a key an object, its bytes the value.

use anyhow::{Context, Result, bail, ensure};
use async_trait::async_trait;
use bytes::Bytes;
use etcd_client::{
    Certificate, Client as Connection, Compare, CompareOp, ConnectOptions, GetOptions, Identity, SortOrder,
    SortTarget, TlsOptions, Txn, TxnOp,
};
use hyper::body::Incoming;
use serde_json::Value;

use super::{Credentials, ReadPage, SubjectClient, WatchBeginning};
use crate::object::ObjectApi;

const PREFIX: &str = "/bench/";
const PAGE: i64 = 2000;

/// Some connections to an etcd.
pub struct EtcdClient {
    api: ObjectApi,
    lanes: Vec<Connection>,
}

impl EtcdClient {
    /// Opens the connections.
    pub async fn connect(url: &str, credentials: &Credentials, api: ObjectApi, lanes: usize) -> Result<Self> {
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(std::fs::read(&credentials.ca)?))
            .identity(Identity::from_pem(
                std::fs::read(&credentials.cert)?,
                std::fs::read(&credentials.key)?,
            ));
        let mut clients = Vec::with_capacity(lanes);
        for _ in 0..lanes {
            let options = ConnectOptions::new().with_tls(tls.clone());
            clients.push(Connection::connect([url], Some(options)).await?);
        }
        Ok(Self { api, lanes: clients })
    }

    fn lane(&self, lane: usize) -> Connection {
        self.lanes[lane % self.lanes.len()].clone()
    }
}

#[async_trait(?Send)]
impl SubjectClient for EtcdClient {
    fn api(&self) -> &ObjectApi {
        &self.api
    }

    async fn create(&self, lane: usize, name: &str, object: Bytes) -> Result<()> {
        let key = format!("{PREFIX}{name}");
        let absent = Compare::mod_revision(key.as_str(), CompareOp::Equal, 0);
        let put = TxnOp::put(key.as_str(), object, None);
        let answer = self.lane(lane).txn(Txn::new().when([absent]).and_then([put])).await?;
        ensure!(answer.succeeded(), "{name} exists");
        Ok(())
    }

    async fn apply(&self, _: usize, _: &str, _: Bytes) -> Result<()> {
        bail!("etcd knows no apply")
    }

    async fn get(&self, lane: usize, name: &str) -> Result<Bytes> {
        let answer = self.lane(lane).get(format!("{PREFIX}{name}"), None).await?;
        match answer.kvs().first() {
            Some(pair) => Ok(Bytes::copy_from_slice(pair.value())),
            None => bail!("{name} is gone"),
        }
    }

    async fn revision_of(&self, lane: usize, name: &str) -> Result<String> {
        let answer = self.lane(lane).get(format!("{PREFIX}{name}"), None).await?;
        let pair = answer.kvs().first().with_context(|| format!("{name} is gone"))?;
        Ok(pair.mod_revision().to_string())
    }

    async fn swap(&self, lane: usize, name: &str, beat: u64, revision: &str) -> Result<Option<String>> {
        let key = format!("{PREFIX}{name}");
        let newest = Compare::mod_revision(key.as_str(), CompareOp::Equal, revision.parse()?);
        let put = TxnOp::put(key.as_str(), self.api.beating(name, beat, None)?, None);
        let answer = self.lane(lane).txn(Txn::new().when([newest]).and_then([put])).await?;
        let made = answer.header().context("an answer without a header")?.revision();
        Ok(answer.succeeded().then(|| made.to_string()))
    }

    async fn list(&self, _: usize) -> Result<Incoming> {
        bail!("raw etcd has no list to compare")
    }

    async fn page(&self, _: usize, _: Option<&str>) -> Result<ReadPage> {
        bail!("raw etcd has no pages to compare")
    }

    async fn revision(&self) -> Result<String> {
        bail!("raw etcd has no watch to compare")
    }

    async fn watch(&self, _: usize, _: WatchBeginning<'_>) -> Result<Incoming> {
        bail!("raw etcd has no watch to compare")
    }

    async fn all(&self) -> Result<Vec<Value>> {
        let (mut all, mut from) = (Vec::new(), PREFIX.as_bytes().to_vec());
        loop {
            let options = GetOptions::new()
                .with_range("/bench0")
                .with_limit(PAGE)
                .with_sort(SortTarget::Key, SortOrder::Ascend);
            let page = self.lane(0).get(from.clone(), Some(options)).await?;
            for pair in page.kvs() {
                all.push(serde_json::from_slice(pair.value())?);
                from = [pair.key(), &[0]].concat();
            }
            if !page.more() {
                return Ok(all);
            }
        }
    }
}
