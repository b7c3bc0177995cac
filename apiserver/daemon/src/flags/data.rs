//! The commands that work on the stored data, with names from etcd and k3s.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::storage::{DataDir, StorageFlags};

/// Work on the data, instead of serving.
#[derive(Clone, Debug, Subcommand)]
pub enum DataCommand {
    /// Copies the embedded store into a new file, while a server may be running on it, and checks the copy
    Backup(Backup),
    /// Restores a backup into a --data-dir that holds no store
    Restore(Restore),
    /// Reads all of the embedded store, or of a backup, and reports what it holds or what is wrong with it
    Check(Check),
    /// Moves all objects from the embedded store to etcd, or back; stop every API server first
    Migrate(Migrate),
    /// Allows servers to start again on a store whose objects were moved elsewhere; later writes to the other store are not in it
    Reclaim(Reclaim),
    /// Shows the newest fencing token of each user who has sent one, or removes one
    FencingTokens(FencingTokensFlags),
}

/// Flags of `backup`.
#[derive(Clone, Debug, Args)]
pub struct Backup {
    /// The embedded store
    #[command(flatten)]
    pub data_dir: DataDir,
    /// File for the copy; it must not exist
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Flags of `restore`.
#[derive(Clone, Debug, Args)]
pub struct Restore {
    /// The embedded store
    #[command(flatten)]
    pub data_dir: DataDir,
    /// How far above the backup's revision the new store continues: must exceed the number of writes since the backup, so that
    /// clients that saw those writes list again; 0 restores the revision as it was
    #[arg(long, value_name = "N", default_value_t = 1_000_000_000)]
    pub bump_revision: u64,
    /// The backup
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Flags of `check`.
#[derive(Clone, Debug, Args)]
pub struct Check {
    /// The embedded store
    #[command(flatten)]
    pub data_dir: DataDir,
    /// A backup, instead of the store under --data-dir
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Flags of `migrate`.
#[derive(Clone, Debug, Args)]
pub struct Migrate {
    /// Store to move the objects to; servers refuse to start on the other one from then on
    #[arg(long, value_name = "STORE")]
    pub to: Store,
    /// Both stores
    #[command(flatten)]
    pub storage: StorageFlags,
}

/// Flags of `reclaim`.
#[derive(Clone, Debug, Args)]
pub struct Reclaim {
    /// The store
    #[command(flatten)]
    pub storage: StorageFlags,
    /// How far above its last revision the store continues: must exceed the number of writes to the other store since, so that
    /// clients that saw those writes list again
    #[arg(long, value_name = "N", default_value_t = 1_000_000_000)]
    pub bump_revision: u64,
}

/// Flags of `fencing-tokens`.
#[derive(Clone, Debug, Args)]
pub struct FencingTokensFlags {
    /// The store
    #[command(flatten)]
    pub storage: StorageFlags,
    /// Remove the token of this user, so that older ones are taken again, also those of writes under way: let no program of
    /// this user run meanwhile. For a token that no other can exceed; no server may be running on the embedded store
    #[arg(long, value_name = "USER")]
    pub reset: Option<String>,
}

/// A store by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Store {
    /// The prefix --etcd-prefix of --etcd-servers
    Etcd,
    /// The file under --data-dir
    Embedded,
}

impl DataCommand {
    /// Returns what is wrong with the flags, if anything.
    pub fn contradiction(&self) -> Option<&'static str> {
        match self {
            Self::Migrate(migrate) if migrate.storage.etcd.etcd_servers.is_empty() => {
                Some("--etcd-servers must name the etcd that objects are moved to or from")
            }
            _ => None,
        }
    }
}
