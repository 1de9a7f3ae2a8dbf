//! The fold beside a dull model of it, which keeps every event and works everything out with loops.
//!
//! The model is written from the design, not from the code that it is compared with. A failure prints the shortest
//! list of steps that proptest found, and keeps its seed for the next run.

mod dull;
mod machine;
mod order;
mod reach;
mod replay;
mod told;
mod totality;
mod verdict;
mod versions;
