//! Every order of polls, wakes and drops of a few tasks, random orders of more, each compared with a model.

mod explorer;
mod locks;
mod notify;
mod pool;
mod wakers;
