// SPDX-License-Identifier: Apache-2.0
//! What a flow matches: a list of fields (§7.2.3), 1.0's `ofp_match` too.

use crate::{Field, Oxm};

/// A match. Fields stand in the order of the wire, each at most once, prerequisites before what hangs on them; one
/// whose mask is zero is left out, as it matches everything (§7.2.3.5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Match {
    /// All of them have to hold.
    pub fields: Vec<Oxm>,
    /// 1.0's match without a wildcard: it is above every other, whatever its priority (1.0 §3.4).
    pub exact: bool,
}

impl Match {
    /// Of this field, if it is asked of the packet at all.
    pub fn get(&self, field: Field) -> Option<&Oxm> {
        get(&self.fields, field)
    }
}

pub(crate) fn get(fields: &[Oxm], field: Field) -> Option<&Oxm> {
    fields.iter().find(|o| o.field == field)
}

/// The exact value that is asked of a field, for [`crate::oxm::prerequisites_met`]: of a VLAN also one that only says
/// that there is a tag.
pub(crate) fn asked(fields: &[Oxm], field: Field) -> Option<u128> {
    let oxm = get(fields, field)?;
    let present = u128::from(crate::oxm::VID_PRESENT);
    let tagged = field == Field::VlanVid && oxm.value & oxm.mask & present != 0;
    (tagged || oxm.mask == field.all_ones()).then_some(oxm.value)
}
