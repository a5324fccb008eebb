//! Adversarial tests: random operations beside a model and beside Linux, crashes at every write, failing disks, and
//! damaged metadata.
//!
//! Modules: [`disk`] is the disk and the executor, [`recording`] the record of its writes; [`operation`] defines the
//! operations that the [`model`], a volume mounted here ([`volume`]) and one mounted by Linux ([`linux`]) implement;
//! [`generator`] derives them from a seed; [`player`] plays them.

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
