//! The window in which a running simulation is watched and changed by hand: it will show a field while it evolves,
//! its rate and its plan, and let the user paint into the domain and turn the parameters.
#![deny(missing_docs)]
