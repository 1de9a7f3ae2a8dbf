//! The real engine, fold and stream machines on one thread, under a virtual clock, over a simulated disk and network.
//! Everything follows from a [`acts::Scenario`].

pub(crate) mod acts;
mod checks;
pub(crate) mod disk;
mod log;
mod network;
pub(crate) mod reached;
pub(crate) mod run;
mod saved;
pub(crate) mod seeds;
mod site;
mod steady;
