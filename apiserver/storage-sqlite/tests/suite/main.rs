//! The behaviour suites on the embedded backend, and its own tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod copies;
mod durability;
mod files;
mod quota;
mod replaced_files;
mod store;

mod backend {
    drydock_storage::backend_behaviours!(crate::store::start);
}

mod typed_store {
    use drydock_storage::testing::storage_suite::{Fixture, on_store};

    drydock_storage::storage_behaviours!(crate::typed_store::start);

    pub async fn start() -> (Fixture, tempfile::TempDir) {
        let (backend, directory) = crate::store::start().await;
        (on_store(backend), directory)
    }
}

mod cached_store {
    use drydock_storage::testing::storage_suite::{Fixture, on_cache};

    drydock_storage::storage_behaviours!(crate::cached_store::start);

    pub async fn start() -> (Fixture, tempfile::TempDir) {
        let (backend, directory) = crate::store::start().await;
        (on_cache(backend).await, directory)
    }
}

mod other_version {
    use drydock_storage::testing::storage_suite::{Fixture, on_other_version};

    drydock_storage::storage_behaviours!(crate::other_version::start);

    pub async fn start() -> (Fixture, tempfile::TempDir) {
        let (backend, directory) = crate::store::start().await;
        (on_other_version(backend).await, directory)
    }
}

mod cache {
    drydock_storage::cache_behaviours!(crate::store::start);
}
