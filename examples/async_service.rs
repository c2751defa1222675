//! An asynchronous service over the store: calls that may wait for the disk run on the runtime's pool for blocking work,
//! reads of what is in memory where they are.
//!
//! `cargo run --example async_service`

use std::error::Error;
use std::sync::Arc;

use postcard_schema::Schema;
use profilestore::engine::{Database, Durability, Options};
use profilestore::store::{self, AnyIndex, Collection, Index, Record, UniqueIndex};
use serde::{Deserialize, Serialize};
use tokio::task::{JoinSet, spawn_blocking};

const REQUESTS: u64 = 200;

#[derive(Debug, Serialize, Deserialize, Schema)]
struct Device {
    id: u64,
    serial: String,
}

#[derive(Deserialize)]
struct DeviceView<'a> {
    id: u64,
    serial: &'a str,
}

impl Device {
    const SERIAL: UniqueIndex<Self, String> = Index::new("serial", |device| device.serial);
}

impl Record for Device {
    type Id = u64;
    type View<'a> = DeviceView<'a>;

    const COLLECTION: &'static str = "devices";
    const VERSION: u8 = 1;
    const INDEXES: &'static [&'static dyn AnyIndex<Self>] = &[&Self::SERIAL];

    fn view(&self) -> DeviceView<'_> {
        DeviceView { id: self.id, serial: &self.serial }
    }

    fn id(device: &DeviceView<'_>) -> u64 {
        device.id
    }
}

/// Cheap to clone: one for each task.
#[derive(Clone)]
struct Devices(Arc<Collection<Device, Database>>);

impl Devices {
    /// A commit in class `sync` waits for the disk, together with all others that wait: many tasks share one sync, if the
    /// pool has a thread for each.
    async fn register(&self, device: Device) -> store::Result<()> {
        let devices = Arc::clone(&self.0);
        spawn_blocking(move || devices.insert(&device)).await.expect("an insert does not panic, nor is it aborted")
    }

    /// Right here, where all that is read stays in memory; in the pool if it has to come from a disk.
    fn find(&self, serial: &str) -> store::Result<Option<Device>> {
        self.0.find(Device::SERIAL, serial)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let database = Arc::new(Database::open(&dir, Options { durability: Durability::Sync, ..Options::default() })?);
    let devices = Devices(Arc::new(Collection::open(Arc::clone(&database))?));

    let mut requests = JoinSet::new();
    for id in 0..REQUESTS {
        let devices = devices.clone();
        // Two requests ask for each serial number; one of them is refused.
        requests.spawn(async move { devices.register(Device { id, serial: format!("SN-{}", id / 2) }).await });
    }
    let registered = requests.join_all().await.into_iter().flatten().count();
    println!("{registered} of {REQUESTS} devices registered");
    assert_eq!(registered as u64, REQUESTS / 2);

    let found = devices.find("SN-7")?.expect("one of two was registered");
    println!("SN-7 is device {}", found.id);
    assert_eq!(found.id / 2, 7);

    // Waits for what is under way in the background: not for a thread that drives tasks.
    spawn_blocking(move || database.close()).await??;
    Ok(())
}
