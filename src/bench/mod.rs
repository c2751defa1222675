//! A plan in, results out. Knows no file format.
//!
//! [`plan`] draws the operations of a phase before its clock starts. [`runner`] opens a contender and takes it through the
//! sixteen [phases](phase); [`workers`] runs one of them on all threads at once, with a [`dataset`] making the profiles
//! ([`generate`] is the published one) and [`checksum`] folding every answer. [`event`] is what a run tells while it goes on, [`result`] what [`fold`] leaves
//! of it in the end. [`process`] gives a contender a process of its own, [`directory`] a place for its store;
//! [`environment`] says on what machine that was.
//!
//! Beside all that, `torture` crashes, fails and damages our engine for as long as asked.

pub mod checksum;
pub mod contenders;
pub mod dataset;
pub mod directory;
pub mod dotnet;
pub mod environment;
pub mod event;
pub mod fold;
pub mod generate;
pub mod measure;
mod natural;
pub mod phase;
pub mod plan;
pub mod process;
pub mod result;
pub mod runner;
pub(crate) mod torture;
pub mod workers;
