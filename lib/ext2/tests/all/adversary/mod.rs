//! Tests that wish the file system ill: lives at random beside a model and beside Linux, crashes at every write,
//! disks that fail, and damaged metadata.
//!
//! The parts: [`disk`] is the disk and the executor, [`recording`] what was written to it; [`operation`] are the
//! words that the [`model`], a volume mounted here ([`volume`]) and one mounted by Linux ([`linux`]) understand;
//! [`generator`] draws them from a seed; [`player`] plays them.

mod crash;
mod crash_in_place;
mod disk;
mod faults;
mod generator;
mod image;
mod linux;
mod model;
mod noise;
mod operation;
mod player;
mod promise;
mod random_crowd;
mod random_linux;
mod random_model;
mod recording;
mod tools;
mod volume;
