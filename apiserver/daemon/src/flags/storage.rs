//! The flags for where objects are kept. Serving and all commands that work on the data share them.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use drydock_storage::location::StorageLocation;
use drydock_storage_etcd::EtcdConfig;
use drydock_storage_sqlite::DataDirectory;

/// The folder of the embedded store.
#[derive(Clone, Debug, Args)]
pub struct DataDir {
    /// Folder for the embedded store's file
    #[arg(long, value_name = "DIR", default_value = "drydock-data")]
    pub data_dir: PathBuf,
}

impl DataDir {
    /// Where the embedded store is, without a quota.
    pub fn directory(&self) -> DataDirectory {
        DataDirectory { folder: self.data_dir.clone(), quota: None }
    }

    /// The embedded store's file.
    pub fn file(&self) -> PathBuf {
        self.directory().file()
    }
}

/// How etcd is reached.
#[derive(Clone, Debug, Args)]
pub struct EtcdFlags {
    /// etcd endpoints; without them objects are stored in SQLite under --data-dir
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    pub etcd_servers: Vec<String>,
    /// Prefix of every key in etcd
    #[arg(long, value_name = "PREFIX", default_value = "/registry/drydock")]
    pub etcd_prefix: String,
    /// CA bundle for etcd's certificates (PEM)
    #[arg(long, value_name = "FILE")]
    pub etcd_cafile: Option<PathBuf>,
    /// Client certificate for etcd (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    pub etcd_certfile: Option<PathBuf>,
    /// Private key of --etcd-certfile (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    pub etcd_keyfile: Option<PathBuf>,
}

impl EtcdFlags {
    /// The settings of the backend.
    pub fn config(&self) -> EtcdConfig {
        EtcdConfig {
            servers: self.etcd_servers.clone(),
            prefix: self.etcd_prefix.clone(),
            ca_file: self.etcd_cafile.clone(),
            cert_file: self.etcd_certfile.clone(),
            key_file: self.etcd_keyfile.clone(),
            ..EtcdConfig::default()
        }
    }
}

/// Flags of both backends.
#[derive(Clone, Debug, Args)]
pub struct StorageFlags {
    /// etcd
    #[command(flatten)]
    pub etcd: EtcdFlags,
    /// The embedded store
    #[command(flatten)]
    pub data_dir: DataDir,
}

impl StorageFlags {
    /// Whether objects are in etcd: its servers are set.
    pub fn is_etcd(&self) -> bool {
        !self.etcd.etcd_servers.is_empty()
    }

    /// Returns where objects are kept. `quota` is that of the embedded store, 0 for none; etcd has a quota of its own.
    pub fn location(&self, quota: u64) -> Arc<dyn StorageLocation> {
        match self.is_etcd() {
            true => Arc::new(self.etcd.config()),
            false => {
                let quota = (quota > 0).then_some(quota);
                Arc::new(DataDirectory { quota, ..self.data_dir.directory() })
            }
        }
    }
}
