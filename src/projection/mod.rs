//! MEANING: a pure fold from facts to a state, and from the state to the resources that clients are sent.

pub mod resources;
