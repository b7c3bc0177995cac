//! The behaviour suites on etcd, and its own tests. They need etcd: `DRYDOCK_ETCD` names its binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod etcd;
mod members;
mod outages;
mod proxy;
mod space;

use drydock_storage::testing::backend_suite::harness::Store;
use drydock_storage_etcd::testing::TestEtcd;

async fn start() -> (Store, TestEtcd) {
    let etcd = TestEtcd::start();
    (etcd.backend("/suite").await, etcd)
}

mod backend {
    drydock_storage::backend_behaviours!(crate::start);
}

mod typed_store {
    use drydock_storage::testing::storage_suite::{Fixture, on_store};
    use drydock_storage_etcd::testing::TestEtcd;

    drydock_storage::storage_behaviours!(crate::typed_store::start);

    pub async fn start() -> (Fixture, TestEtcd) {
        let (backend, etcd) = crate::start().await;
        (on_store(backend), etcd)
    }
}

mod cached_store {
    use drydock_storage::testing::storage_suite::{Fixture, on_cache};
    use drydock_storage_etcd::testing::TestEtcd;

    drydock_storage::storage_behaviours!(crate::cached_store::start);

    pub async fn start() -> (Fixture, TestEtcd) {
        let (backend, etcd) = crate::start().await;
        (on_cache(backend).await, etcd)
    }
}

mod cache {
    // One watch of etcd is one connection. What else the cache guarantees does not depend on the backend.
    drydock_storage::cache_behaviours! { crate::start;
        resumed: a_hundred_watches_that_resume_are_one_watch_of_the_backend;
    }
}
