//! The papers' own models, kept as they are published: [`perks`] (Zhang et al., ICS'23) projects what the
//! bandwidths allow a persistent kernel, [`ebisu`] (Zhang et al., ICS'23) how deep and wide temporal blocking
//! should be.

pub mod ebisu;
pub mod perks;
