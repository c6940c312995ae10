// SPDX-License-Identifier: Apache-2.0
//! What a chip is for a switch, as who owns it says.

use tandem_ofcompose::Limits;
use tandem_openflow::Version;
use tandem_sal::SalError;

use crate::{Lookup, PortOf, Slice, Unfit};

/// What a chip is for a switch.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The chip's profile.
    pub profile: String,
    /// How its MAC table is looked up.
    pub lookup: Lookup,
    /// What the tables speak: the two versions read some frames differently.
    pub version: Version,
    /// The switch's ports.
    pub ports: Vec<PortOf>,
    /// Is there `LOCAL`?
    pub local: bool,
    /// Chains of flows of several tables.
    pub chains: Limits,
    /// Can lists classify frames before that of its rows?
    pub classes: bool,
    /// Which of the switches on this chip.
    pub slice: Slice,
}

impl Setup {
    /// May packets leave in two forms? What classifies them says by what their ports know them.
    pub(crate) fn has_forms(&self) -> bool {
        self.chains.forms && self.classes
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            sources: self.chains.sources && self.lookup == Lookup::Vlan && self.slice.has_mac(),
            members: self.chains.members && self.lookup == Lookup::Vlan && self.slice.has_mac(),
            forms: self.has_forms(),
            ..self.chains
        }
    }
}

/// Why a device can't be attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// It does not answer as it should.
    #[error(transparent)]
    Device(#[from] SalError),
    /// It is not what this use needs.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// What it holds was not written for this use.
    #[error("it holds {0}: all is to be written anew")]
    Foreign(&'static str),
}
