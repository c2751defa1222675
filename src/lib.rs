//! An embedded, typed record store with atomic secondary indexes, and the benchmark that proves it.
//!
//! # The map
//!
//! `use` arrows point one way: `cli` → [`report`] → [`mod@bench`] → [`store`] → [`engine`]. A test keeps it so.
//!
//! | room | takes in → gives out | must never know |
//! |---|---|---|
//! | [`engine`] | bytes → bytes: named ordered trees in one directory, atomic batches, snapshots | what a record is |
//! | [`store`] | records → batches: a typed [`store::Collection`] with its indexes; [`store::Profile`] is one instance | files and threads |
//! | [`mod@bench`] | a plan → results: the published workload on our engine and on its peers | how results are shown |
//! | [`report`] | results → files: JSON, Markdown, CSV, charts | databases and clocks |
//! | `cli` | arguments and workload files → requests | everything below it has never heard of clap |
//!
//! The rooms `bench`, `report` and `cli` need the feature `cli` (on by default). With
//! `default-features = false` the crate is the library alone, in pure Rust.

pub mod engine;
pub mod store;

#[cfg(feature = "cli")]
pub mod bench;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzz;
#[cfg(feature = "cli")]
pub mod report;

#[cfg(test)]
mod tests;

/// Compiles and runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
