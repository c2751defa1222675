//! Tests across rooms.

#[cfg(feature = "cli")]
mod alone;
#[cfg(feature = "cli")]
mod background;
mod bounds;
#[cfg(feature = "cli")]
mod command_line;
mod direction;
#[cfg(feature = "cli")]
mod durability;
#[cfg(feature = "cli")]
mod intruders;
#[cfg(feature = "cli")]
mod log_tail;
#[cfg(feature = "cli")]
mod observability;
#[cfg(feature = "cli")]
mod recovery_cases;
#[cfg(feature = "cli")]
mod resources;
mod salvage;
#[cfg(feature = "cli")]
mod shared_syncs;
mod sharing;
mod sizes;
#[cfg(feature = "cli")]
mod transactions;
#[cfg(feature = "cli")]
mod upkeep;
#[cfg(feature = "cli")]
mod waits;
