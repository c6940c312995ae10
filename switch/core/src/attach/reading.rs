//! What an attach reads of the chip, one page at a time.
//!
//! ```text
//!   pools ─► costs ─► warm: groups, ports, router interfaces, memberships, FDB ─► Config, Left, what it has learned
//! ```
//!
//! Nothing here asks by itself: whoever has the device posts what is [asked](Reading::ask) next and brings the
//! [answer](Reading::take). The device is not trusted: what it lists has an end, and a limit.

use std::collections::HashMap;

use tandem_abi::object::{Object, fixed, records};
use tandem_abi::raw;
use tandem_sal::{Attach, Device, Pages, Request, SalError};
use tandem_store::{Config, Left, Policy};

use super::Found;
use crate::view::{SharedView, vlan_of};

/// Objects of one class at most, whatever the chip says that it has room for.
const OBJECTS_MAX: usize = 1 << 20;
/// So many of a class there may be in any chip: what its numbers tell apart.
const NUMBERS: usize = 1 << 16;

/// One question, which may take several pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Pools,
    Costs,
    Groups,
    Ports,
    Rifs,
    Members,
    /// After the memberships: they say which VLAN an entry's domain is at its port.
    Fdb,
}

const COLD: &[Part] = &[Part::Pools, Part::Costs];
const WARM: &[Part] = &[
    Part::Pools,
    Part::Costs,
    Part::Groups,
    Part::Ports,
    Part::Rifs,
    Part::Members,
    Part::Fdb,
];

/// What was read so far.
#[derive(Debug, Default)]
pub struct Reading {
    parts: &'static [Part],
    /// How far the part has come that is read.
    pages: Pages,
    /// Objects in them.
    objects: usize,
    pools: Vec<raw::tnd_pool>,
    costs: Vec<raw::tnd_class_cost>,
    left: Left,
    /// VLAN by port and domain.
    vids: HashMap<(u16, u16), u16>,
    /// Addresses that are the chip's own or an earlier driver's: VLAN and address.
    found: Vec<(u16, [u8; 6])>,
    learned: Vec<Found>,
}

impl Reading {
    /// Of a chip that was attached so.
    #[must_use]
    pub fn new(how: Attach) -> Reading {
        Reading {
            parts: match how {
                Attach::Cold => COLD,
                Attach::Warm => WARM,
            },
            ..Reading::default()
        }
    }

    /// What is asked next: in words, and the command. `None`: all is read.
    #[must_use]
    pub fn ask(&self) -> Option<(&'static str, Request<'static>)> {
        let (what, cls) = match self.parts.first()? {
            Part::Pools => ("pools", None),
            Part::Costs => ("costs", Some(raw::tnd_class_cost::CLASS)),
            Part::Groups => ("groups of next hops", Some(raw::tnd_nhg::CLASS)),
            Part::Ports => ("ports", Some(raw::tnd_port::CLASS)),
            Part::Rifs => ("router interfaces", Some(raw::tnd_rif::CLASS)),
            Part::Members => ("memberships of VLANs", Some(raw::tnd_vlan_member::CLASS)),
            Part::Fdb => ("FDB", Some(raw::tnd_fdb::CLASS)),
        };
        let request = Request {
            op: match cls {
                None => raw::TND_OP_SNAPSHOT,
                Some(_) => raw::TND_OP_DUMP,
            },
            cls: cls.unwrap_or(0),
            arg: self.pages.cursor(),
            output: true,
            ..Request::default()
        };
        Some((what, request))
    }

    /// Pages read of what is [asked](Self::ask).
    #[must_use]
    pub fn pages(&self) -> usize {
        self.pages.read()
    }

    /// The answer to what was [asked](Self::ask): one without a refusal.
    ///
    /// # Errors
    /// It has no end.
    pub fn take(&mut self, cpl: &raw::tnd_cpl, out: &[u8]) -> Result<(), SalError> {
        let Some((part, rest)) = self.parts.split_first() else {
            return Ok(());
        };
        let count = cpl.out_count as usize;
        let (objects, room) = (self.objects.saturating_add(count), self.room());
        let endless = |why| {
            let what = self.ask().map_or("", |(what, _)| what);
            SalError::List { what, why }
        };
        if objects > room {
            return Err(endless(format!(
                "{objects} have come, and a chip of its size has {room} at most"
            )));
        }
        let mut pages = self.pages;
        let more = match part {
            // all pools are of one instant
            Part::Pools => false,
            _ => pages.goes_on(cpl.result).map_err(endless)?,
        };
        let left = &mut self.left;
        match part {
            Part::Pools => self.pools.extend(fixed::<raw::tnd_pool>(out).take(count)),
            Part::Costs => self.costs.extend(plain::<raw::tnd_class_cost>(out, count)),
            Part::Groups => {
                let groups = records::<raw::tnd_nhg>(out).take(count);
                left.groups
                    .extend(groups.map(|(g, tail)| (g, fixed(tail).collect())));
            }
            Part::Ports => left.ports.extend(plain::<raw::tnd_port>(out, count)),
            Part::Rifs => left.rifs.extend(plain::<raw::tnd_rif>(out, count)),
            Part::Members => {
                for m in plain::<raw::tnd_vlan_member>(out, count) {
                    left.members.insert((m.port, m.vid), m.fid);
                    self.vids.insert((m.port, m.fid), m.vid);
                }
            }
            Part::Fdb => plain(out, count).for_each(|e| self.entry(&e)),
        }
        (self.pages, self.objects) = (pages, objects);
        if !more {
            (self.parts, self.pages, self.objects) = (rest, Pages::default(), 0);
        }
        Ok(())
    }

    /// Objects of one class at most: each takes a slot of some pool, if its class has one.
    fn room(&self) -> usize {
        let slots: u64 = self.pools.iter().map(|p| u64::from(p.size)).sum();
        let slots = usize::try_from(slots).unwrap_or(usize::MAX);
        slots.clamp(NUMBERS, OBJECTS_MAX)
    }

    fn entry(&mut self, e: &raw::tnd_fdb) {
        let somebodys = raw::TND_FDB_STATIC | raw::TND_FDB_NO_AGE;
        if e.action != raw::TND_ACT_FORWARD || e.flags & somebodys != 0 {
            return;
        }
        let Some(vid) = self.vids.get(&(e.port, e.fid)) else {
            return;
        };
        let vlan = vlan_of(*vid);
        self.found.push((vlan, e.mac));
        // one that a driver wrote is confirmed like everything else
        if e.flags & raw::TND_FDB_LEARNED != 0 {
            self.learned.push(Found {
                vlan,
                mac: e.mac,
                port: e.port,
                fid: e.fid,
            });
        }
    }

    /// What the store needs to know of the chip; `limits`: commands that its pairs hold.
    #[must_use]
    pub fn config(&self, policy: Policy, ports: usize, limits: [usize; 2]) -> Config {
        let ports = u16::try_from(ports).unwrap_or(u16::MAX);
        let mut config = Config {
            policy,
            ..Config::of_chip(ports, &self.pools, &self.costs)
        };
        for (max, limit) in config.max_outstanding.iter_mut().zip(limits) {
            // leave room for questions
            *max = (*max).min(limit.saturating_sub(16).max(1));
        }
        config
    }

    /// What the chip has already, and what it has learned: after a warm attach. Whose addresses these are is marked in
    /// `view`.
    #[must_use]
    pub fn left(self, view: &SharedView) -> (Left, Vec<Found>) {
        let mut view = view.lock();
        for (vlan, mac) in self.found {
            view.set_found(vlan, mac);
        }
        (self.left, self.learned)
    }
}

/// Records that nothing follows.
fn plain<T: Object>(out: &[u8], count: usize) -> impl Iterator<Item = T> {
    records::<T>(out).take(count).map(|(object, _)| object)
}

/// What was read of a chip.
#[derive(Debug)]
pub struct Read {
    /// What the store needs to know of it.
    pub config: Config,
    /// What it has already.
    pub left: Left,
    /// What it has learned.
    pub found_fdb: Vec<Found>,
}

/// Reads a chip that does nothing else yet, and waits for it: at a daemon's start.
///
/// # Errors
/// As [`Device::call`].
pub fn read(
    control: &mut dyn Device,
    how: Attach,
    policy: Policy,
    ports: usize,
    view: &SharedView,
) -> Result<Read, SalError> {
    let mut reading = Reading::new(how);
    while let Some((what, request)) = reading.ask() {
        let (cpl, out) = control.call(what, &request)?;
        reading.take(&cpl, &out)?;
    }
    let config = reading.config(policy, ports, [control.limit(0), control.limit(1)]);
    let (left, found_fdb) = reading.left(view);
    Ok(Read {
        config,
        left,
        found_fdb,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    fn answer(objects: u32, next: u64) -> raw::tnd_cpl {
        raw::tnd_cpl {
            out_count: objects,
            result: next,
            ..Default::default()
        }
    }

    /// A chip with one pool of so many slots, whose groups come next.
    fn of(slots: u32) -> Reading {
        let mut reading = Reading::new(Attach::Warm);
        let pool = raw::tnd_pool {
            size: slots,
            ..Default::default()
        };
        reading.take(&answer(1, 0), pool.as_bytes()).unwrap();
        reading.take(&answer(0, 0), &[]).unwrap();
        assert_eq!(reading.ask().unwrap().0, "groups of next hops");
        reading
    }

    /// All of a class, `each` objects a page: the number of pages that were taken, and the refusal.
    fn endless(reading: &mut Reading, each: u32, step: u64) -> (usize, String) {
        let mut cursor = 0;
        for pages in 0..1 << 21 {
            cursor += step;
            if let Err(e) = reading.take(&answer(each, cursor), &[]) {
                return (pages, e.to_string());
            }
        }
        (usize::MAX, String::new())
    }

    #[test]
    fn a_list_goes_forward() {
        let mut reading = of(10);
        reading.take(&answer(1, 7), &[]).unwrap();
        let (_, request) = reading.ask().unwrap();
        assert_eq!((request.arg, reading.pages()), (7, 1));
        for next in [7, 3] {
            let e = reading.take(&answer(1, next), &[]).unwrap_err();
            let line = format!(
                "the ASIC's groups of next hops can't be read: after page 2 at 7 it goes on at {next}: that has no end"
            );
            assert_eq!(e.to_string(), line);
        }
        reading.take(&answer(1, 8), &[]).unwrap();
        reading.take(&answer(1, 0), &[]).unwrap();
        assert_eq!(reading.ask().unwrap().0, "ports");
    }

    #[test]
    fn a_list_has_a_limit() {
        // by what the chip says that it has, but not below what there may be anyway, nor beyond what there is room for here
        for (slots, room) in [(10, 1 << 16), (100_000, 100_000), (u32::MAX, 1 << 20)] {
            let (pages, why) = endless(&mut of(slots), 1000, 1);
            assert_eq!(pages, room / 1000, "{slots}: {why}");
            assert!(
                why.ends_with(&format!("a chip of its size has {room} at most")),
                "{why}"
            );
        }
        let (_, why) = endless(&mut of(10), u32::MAX, 1);
        assert!(why.contains("4294967295 have come"), "{why}");
        // pages with nothing in them
        let (pages, why) = endless(&mut of(10), 0, 1);
        assert_eq!(pages, tandem_sal::PAGES_MAX - 1, "{why}");
        // each class has its own
        let mut reading = of(10);
        for class in ["ports", "router interfaces", "memberships of VLANs", "FDB"] {
            reading.take(&answer(60_000, 0), &[]).unwrap();
            assert_eq!(reading.ask().unwrap().0, class);
        }
        reading.take(&answer(60_000, 0), &[]).unwrap();
        assert!(reading.ask().is_none());
    }
}
