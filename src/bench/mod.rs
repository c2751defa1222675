//! A plan in, results out. Knows no file format.
//!
//! [`plan`] draws every operation before any clock starts. [`runner`] opens a contender and takes it through the
//! sixteen [phases](phase); [`workers`] runs one of them on all threads at once, with [`generate`] making the profiles
//! and [`checksum`] folding every answer. [`event`] is what a run tells while it goes on, [`result`] what is left
//! of it in the end.

pub mod checksum;
pub mod contenders;
pub mod dotnet;
pub mod event;
pub mod generate;
pub mod measure;
pub mod phase;
pub mod plan;
pub mod result;
pub mod runner;
pub mod workers;
