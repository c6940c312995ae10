// SPDX-License-Identifier: Apache-2.0
//! What of a chip the decision may use: its tables as the ABI lets them be written, with the sizes that the device tells.

use tandem_abi::raw;
use tandem_ofoffload::tables::{self, Chip, MacLookup};
use tandem_ofoffload::{FORMS, Offload};
use tandem_openflow::Field;

use crate::part::Slice;
use crate::row;

/// How the ports classify frames, and so what the keys of the MAC table are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lookup {
    /// By address alone.
    #[default]
    Address,
    /// By VLAN and address.
    Vlan,
}

/// Why a chip can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// No tables are known for it.
    #[error("a chip {0} has no table of flows that is known here")]
    Unknown(String),
    /// It does not tell of the memory of its rows.
    #[error("the chip has no memory {0}")]
    Pool(&'static str),
    /// Its domains are too few for a lookup by VLAN.
    #[error("{chip} has {domains} forwarding domains: its MAC table can't be looked up by VLAN")]
    Domains {
        /// Its profile.
        chip: String,
        /// How many.
        domains: u32,
    },
    /// A part of its rows is not enough for those in front of all others.
    #[error(
        "{chip} has {lines} lines for rows, a part of it for each of {of} logical switches {part}, and the rows that \
         always stand there take {needs} in OpenFlow {version}: {most} logical switches at most"
    )]
    Part {
        /// Its profile.
        chip: String,
        /// Of all its rows.
        lines: u32,
        /// Switches.
        of: u8,
        /// Lines of this one.
        part: u32,
        /// Lines of guards, and of the row behind all others.
        needs: u32,
        /// In which version.
        version: &'static str,
        /// Switches whose parts are enough.
        most: u8,
    },
}

/// VLANs that a tag may have.
const VLANS: u32 = 4094;
/// Domains of `tiny`.
const TINY: u32 = 4;

/// A chip's tables.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub chip: Chip,
    /// Pool of the list's lines.
    lines: &'static str,
    /// Of those that classify.
    class: &'static str,
    /// Of rows for the form in which frames leave.
    forms: &'static str,
}

/// A domain for each of the switches on a chip, if it has so many and they are looked up by address: by VLAN each tag is
/// one.
pub(crate) fn domains(profile: &str, lookup: Lookup, slice: Slice) -> Slice {
    let has = if profile == "tiny" { TINY } else { VLANS };
    let domains = slice.domains && lookup == Lookup::Address && u32::from(slice.of) <= has;
    Slice { domains, ..slice }
}

/// By the profile's name.
pub(crate) fn known(
    profile: &str,
    lookup: Lookup,
    slice: Slice,
    classes: bool,
    forms: bool,
) -> Result<Known, Unfit> {
    // Its domains are known before it is attached to: it would be refused each time
    if (profile, lookup) == ("tiny", Lookup::Vlan) {
        return Err(Unfit::Domains {
            chip: profile.to_owned(),
            domains: TINY,
        });
    }
    let by = match lookup {
        Lookup::Address => MacLookup::Address,
        Lookup::Vlan => MacLookup::Vlan,
    };
    let (mut chip, lines, class, form) = match profile {
        "nxp-t1040" => (tables::vsc9953(by), "is2-tcam", "is1-tcam", "es0-tcam"),
        "arista-7500e" => (tables::arista_7500e(0, by), "ipv6-lpm", "", ""),
        "tiny" => (tables::tiny(by), "acl-tcam", "", ""),
        other => return Err(Unfit::Unknown(other.to_owned())),
    };
    for kind in &mut chip.acl.kinds {
        kind.columns.retain(|c| row::has_place(c.field));
    }
    chip.class = chip.class.filter(|_| classes);
    if let Some(c) = &mut chip.class {
        for kind in &mut c.rows.kinds {
            kind.columns.retain(|c| row::has_place(c.field));
        }
        (c.first, c.groups) = slice.groups(c.first, c.groups);
        if forms && chip.egress.is_some() {
            // Each switch has its ports' lists, but of groups its part
            c.forms = FORMS.min(c.groups / 8);
        }
    }
    chip.miss_drop = true;
    if !slice.has_mac() {
        chip.mac = None;
    }
    if let Some(m) = chip.mac.as_mut().filter(|_| slice.domains) {
        (m.size, m.port_sets) = (slice.part(m.size), slice.part(m.port_sets));
    }
    Ok(Known {
        chip,
        lines,
        class,
        forms: form,
    })
}

/// What the device tells of its pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Lines of the list that are free.
    pub lines: u32,
    /// Of those that classify, if lists can do that.
    pub class: u32,
    /// Of rows for forms.
    pub forms: u32,
    pub counters: u32,
    pub sets: u32,
    pub domains: u32,
}

impl Known {
    /// A decision for it, without room before it is attached.
    pub fn empty(&self) -> Offload {
        let mut chip = self.chip.clone();
        chip.acl.size = 0;
        if let Some(m) = &mut chip.mac {
            m.size = 0;
        }
        if let Some(c) = &mut chip.class {
            c.rows.size = 0;
        }
        Offload::new(chip)
    }

    /// Entries of the MAC table that a switch may have at most, where others have theirs.
    pub fn mac_part(&self, slice: Slice) -> Option<u32> {
        let shared = self.chip.mac.filter(|_| slice.domains);
        shared.map(|m| m.size)
    }

    /// Are there rows on ports of IPv6 packets?
    pub fn ports6(&self) -> bool {
        let mut kinds = self.chip.acl.kinds.iter();
        kinds.any(|k| {
            let has = |f: Field| k.columns.iter().any(|c| c.field == f);
            has(Field::Ipv6Src) && (has(Field::TcpDst) || has(Field::Icmpv6Type))
        })
    }

    /// Of a SNAPSHOT.
    pub fn sizes(&self, pools: impl Iterator<Item = raw::tnd_pool>) -> Result<Sizes, Unfit> {
        let mut s = Sizes::default();
        let mut told = false;
        for p in pools {
            let free = p.size.saturating_sub(p.used + p.in_flight + p.committed);
            match tandem_abi::get_name(&p.name).as_str() {
                name if name == self.lines => (s.lines, told) = (free, true),
                name if name == self.class && self.chip.class.is_some() => s.class = free,
                name if name == self.forms && self.has_forms() => s.forms = free,
                "acl-counter" => s.counters = free,
                "multicast-group" => s.sets = free,
                "vlan" => s.domains = free,
                _ => {}
            }
        }
        told.then_some(s).ok_or(Unfit::Pool(self.lines))
    }

    /// Stages of the lists that its ports have.
    pub fn stages(&self) -> impl Iterator<Item = u16> + use<> {
        let class = self.chip.class.is_some();
        [
            (class, raw::TND_ACL_FLOW_CLASS),
            (true, raw::TND_ACL_FLOW),
            (self.has_forms(), raw::TND_ACL_FLOW_EGRESS),
        ]
        .into_iter()
        .filter_map(|(has, stage)| has.then_some(stage))
    }

    /// May packets leave in two forms?
    pub fn has_forms(&self) -> bool {
        self.chip.class.as_ref().is_some_and(|c| c.forms > 0)
    }

    /// Lines of the guard of the list that classifies.
    pub fn class_fixed(&self) -> u32 {
        let lines = self.chip.class.as_ref().filter(|c| c.forms > 0);
        lines
            .and_then(|c| c.rows.kinds.first())
            .map_or(0, |k| k.lines)
    }

    /// Lines that the guards take: each looks at what every kind of rows can look at.
    pub fn guard_lines(&self, guards: &[raw::tnd_acl_entry]) -> u32 {
        let least = |frames: fn(u16) -> bool| {
            let kinds = self.chip.acl.kinds.iter();
            let fit = kinds.filter(|k| k.frames.one().is_some_and(frames));
            fit.map(|k| k.lines).min()
        };
        let any = self.chip.acl.kinds.first().map_or(1, |k| k.lines);
        let of = |e: &raw::tnd_acl_entry| match (e.mask.fragment, e.key.ethertype) {
            (0, _) => any,
            (_, 0x0800) => least(|t| t == 0x0800).unwrap_or(any),
            _ => least(|t| t == 0x86dd).unwrap_or(any),
        };
        guards.iter().map(of).sum()
    }
}

/// Does a lookup by VLAN find a domain for each?
pub(crate) fn check(lookup: Lookup, profile: &str, sizes: &Sizes) -> Result<(), Unfit> {
    if lookup == Lookup::Vlan && sizes.domains < VLANS {
        return Err(Unfit::Domains {
            chip: profile.to_owned(),
            domains: sizes.domains,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a device that classifies nothing for it the pool is nobody's: a decision is not told of lines that it never has.
    #[test]
    fn lines_of_lists_that_classify_nothing() {
        let mut pool = raw::tnd_pool {
            size: 100,
            ..Default::default()
        };
        let mut sizes = |classes| {
            let known = known("nxp-t1040", Lookup::Vlan, Slice::default(), classes, false).unwrap();
            let pools = ["is2-tcam", "is1-tcam"].map(|name| {
                tandem_abi::set_name(&mut pool.name, name);
                pool
            });
            known.sizes(pools.into_iter()).unwrap().class
        };
        assert_eq!((sizes(true), sizes(false)), (100, 0));
    }
}
