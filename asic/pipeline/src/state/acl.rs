//! Lists of rules, what they are bound to, and what rules refer to: counters, ranges of ports, policers, mirror sessions.

use tandem_abi::raw;
use tandem_tables::policer::{self, Unit};
use tandem_tables::slots::Slots;
use tandem_tables::tcam::{Match, Matcher};

use super::object::HOT_ACL;
use super::{SetError, State};
use crate::acl::key;

/// Nothing in a slot field of [`Act`].
pub(crate) const NONE: u32 = u32::MAX;

/// Where in the pipeline a list works (`enum tnd_acl_stage`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AclStage {
    /// A frame comes in.
    Port = 0,
    /// The chip has decided to forward it.
    Ingress = 1,
    /// For each port that it would leave by.
    Egress = 2,
    /// A frame comes in at a flow port, where there are no others but the next.
    Flow = 3,
    /// The same, before that: what the frame is classified as.
    FlowClass = 4,
    /// For each port that such a frame would leave by: in which form.
    FlowEgress = 5,
}

/// How many there are.
pub const ACL_STAGES: usize = AclStage::ALL.len();

impl AclStage {
    /// All, in the order of the pipeline; those of flow ports last.
    pub const ALL: [AclStage; 6] = [
        AclStage::Port,
        AclStage::Ingress,
        AclStage::Egress,
        AclStage::Flow,
        AclStage::FlowClass,
        AclStage::FlowEgress,
    ];

    /// From the ABI's number; None if unknown.
    pub fn from_abi(n: u16) -> Option<AclStage> {
        AclStage::ALL.into_iter().find(|s| s.to_abi() == n)
    }

    /// The ABI's number.
    pub fn to_abi(self) -> u16 {
        match self {
            AclStage::Port => raw::TND_ACL_PORT,
            AclStage::Ingress => raw::TND_ACL_INGRESS,
            AclStage::Egress => raw::TND_ACL_EGRESS,
            AclStage::Flow => raw::TND_ACL_FLOW,
            AclStage::FlowClass => raw::TND_ACL_FLOW_CLASS,
            AclStage::FlowEgress => raw::TND_ACL_FLOW_EGRESS,
        }
    }
}

/// What is bound to a port at a stage (`struct tnd_acl_bind` without its key).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AclBind {
    /// Table id, 0 = none.
    pub table: u32,
    /// `TND_ACL_BIND_*`.
    pub flags: u16,
}

/// The same as the packet path wants it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) bind: AclBind,
    /// Slot of the list, or [`NONE`].
    pub(crate) slot: u32,
}

impl Bound {
    const NOTHING: Bound = Bound {
        bind: AclBind { table: 0, flags: 0 },
        slot: NONE,
    };

    /// Every frame to the CPU.
    pub(crate) fn traps(self) -> bool {
        self.bind.flags & raw::TND_ACL_BIND_TRAP_ALL != 0
    }

    /// Neither list nor flag.
    pub(crate) fn is_nothing(self) -> bool {
        self.slot == NONE && !self.traps()
    }
}

/// What a rule does, with everything it refers to by slot: all that the packet path needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Act {
    pub(crate) action: u16,
    pub(crate) flags: u32,
    pub(crate) target: u32,
    pub(crate) counter: u32,
    pub(crate) policer: u32,
    pub(crate) mirror: u32,
    pub(crate) vid: u16,
    pub(crate) pcp: u8,
    pub(crate) class: u16,
    pub(crate) dscp: u8,
    pub(crate) group: u8,
}

/// A rule: its body as the driver wrote it, and what the packet path needs of it.
#[derive(Debug, Clone)]
pub struct AclRule {
    /// In normal form.
    pub body: raw::tnd_acl_entry,
    pub(crate) act: Act,
}

/// An ACL table.
#[derive(Debug, Clone)]
pub struct AclTable {
    /// The driver's key.
    pub id: u32,
    /// What it may be bound to.
    pub stage: AclStage,
    /// Its rules.
    pub rules: Matcher<AclRule>,
}

/// A counter (`struct tnd_acl_counter`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AclCounter {
    /// The driver's key.
    pub id: u32,
    /// Hits.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time of the last one.
    pub used_ns: u64,
}

/// A range of ports (`struct tnd_acl_range`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AclRange {
    /// The driver's key.
    pub id: u32,
    /// `TND_ACL_RANGE_*`.
    pub field: u16,
    /// From, to: both belong to it.
    pub ports: (u16, u16),
}

/// A policer (`struct tnd_policer`).
#[derive(Debug, Clone)]
pub struct Policer {
    /// The driver's key.
    pub id: u32,
    /// `TND_POLICER_*`.
    pub flags: u16,
    /// Its bucket and counts.
    pub meter: policer::Policer,
}

/// A mirror session (`struct tnd_mirror`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mirror {
    /// The driver's key.
    pub id: u16,
    /// Analyser port, 0 = the CPU.
    pub port: u16,
    /// Bytes of a copy, 0 = all.
    pub truncate: u32,
    /// One of so many frames.
    pub rate: u32,
    /// Copies sent.
    pub packets: u64,
    /// Frames since the last copy.
    pub skipped: u32,
}

/// All of it. The firmware counts references: a slot that a rule names is filled.
#[derive(Debug, Clone, Default)]
pub struct Acl {
    pub(crate) tables: Slots<AclTable>,
    pub(crate) counters: Slots<AclCounter>,
    pub(crate) ranges: Slots<AclRange>,
    pub(crate) policers: Slots<Policer>,
    pub(crate) mirrors: Slots<Mirror>,
    /// By port number - 1.
    binds: Vec<[Bound; ACL_STAGES]>,
    /// Bindings at INGRESS and EGRESS: none, and the way out is as short as without lists.
    pub(crate) out_bound: u32,
    /// The same at FLOW_EGRESS.
    pub(crate) forms_bound: u32,
}

impl Acl {
    pub(super) fn new(ports: u16) -> Acl {
        Acl {
            binds: vec![[Bound::NOTHING; ACL_STAGES]; usize::from(ports)],
            ..Acl::default()
        }
    }

    /// Room for bindings of ports up to `ports`.
    pub(super) fn grow(&mut self, ports: usize) {
        if self.binds.len() < ports {
            self.binds.resize(ports, [Bound::NOTHING; ACL_STAGES]);
        }
    }

    /// What is bound to a port at a stage. None: no such port.
    pub fn bind(&self, port: u16, stage: AclStage) -> Option<AclBind> {
        let all = self.binds.get(usize::from(port).wrapping_sub(1))?;
        all.get(stage as usize).map(|b| b.bind)
    }

    /// The same for the packet path.
    #[inline]
    pub(crate) fn at(&self, port: u16, stage: AclStage) -> Bound {
        let all = self.binds.get(usize::from(port).wrapping_sub(1));
        all.map_or(Bound::NOTHING, |all| all[stage as usize])
    }

    /// A list by the driver's id.
    pub fn table(&self, id: u32) -> Option<&AclTable> {
        self.tables.get(id)
    }

    /// All lists, by slot and by the driver's id.
    pub fn tables(&self) -> &Slots<AclTable> {
        &self.tables
    }

    /// Bindings that differ from none: port, stage, what.
    pub fn binds(&self) -> impl Iterator<Item = (u16, AclStage, AclBind)> + '_ {
        self.binds.iter().enumerate().flat_map(|(i, all)| {
            AclStage::ALL
                .into_iter()
                .zip(all)
                .filter(|(_, b)| b.bind != AclBind::default())
                .map(move |(stage, b)| (i as u16 + 1, stage, b.bind))
        })
    }

    /// Creates a list. A list that is there keeps its rules.
    pub fn add_table(&mut self, id: u32, stage: AclStage) {
        if self.tables.get(id).is_none() {
            self.tables.put(
                id,
                AclTable {
                    id,
                    stage,
                    rules: Matcher::default(),
                },
            );
        }
    }

    /// Removes a list with its rules. False: it was not there.
    pub fn remove_table(&mut self, id: u32) -> bool {
        self.tables.remove(id).is_some()
    }

    /// What a rule in normal form matches. Nothing, if it names a range that is not there.
    pub fn matched(&self, body: &raw::tnd_acl_entry) -> Match {
        let mut what = key::rule(body);
        let named = [
            (&mut what.ranges.src, body.src_range),
            (&mut what.ranges.dst, body.dst_range),
        ];
        for (ports, id) in named.into_iter().filter(|(_, id)| *id != 0) {
            *ports = Some(self.range(id).map_or((1, 0), |r| r.ports));
        }
        what
    }

    /// Writes the rule of a priority in one step; false: no such list, or it names an object that is not there.
    pub fn put_rule(&mut self, body: raw::tnd_acl_entry, target: u32) -> bool {
        let what = self.matched(&body);
        let slot = |id: u32, slots: Option<u32>| match id {
            0 => Some(NONE),
            _ => slots,
        };
        let (Some(counter), Some(policer), Some(mirror)) = (
            slot(body.counter, self.counters.slot(body.counter)),
            slot(body.policer, self.policers.slot(body.policer)),
            slot(body.mirror.into(), self.mirrors.slot(body.mirror.into())),
        ) else {
            return false;
        };
        let act = Act {
            action: body.action,
            flags: body.flags,
            target,
            counter,
            policer,
            mirror,
            vid: body.vid,
            pcp: body.pcp,
            class: body.trap_class,
            dscp: body.dscp,
            group: body.group,
        };
        let Some(table) = self
            .tables
            .slot(body.table)
            .and_then(|at| self.tables.at_mut(at))
        else {
            return false;
        };
        table.rules.put(body.priority, what, AclRule { body, act });
        true
    }

    /// Removes the rule of a priority. False: it was not there.
    pub fn remove_rule(&mut self, table: u32, priority: u32) -> bool {
        self.tables
            .slot(table)
            .and_then(|at| self.tables.at_mut(at))
            .is_some_and(|t| t.rules.remove(priority).is_some())
    }

    /// A counter by the driver's id.
    pub fn counter(&self, id: u32) -> Option<&AclCounter> {
        self.counters.get(id)
    }

    /// All counters, by slot and by the driver's id.
    pub fn counters(&self) -> &Slots<AclCounter> {
        &self.counters
    }

    /// Creates a counter at zero.
    pub fn add_counter(&mut self, id: u32) -> u32 {
        self.counters.put(
            id,
            AclCounter {
                id,
                ..AclCounter::default()
            },
        )
    }

    /// Removes a counter. False: it was not there.
    pub fn remove_counter(&mut self, id: u32) -> bool {
        self.counters.remove(id).is_some()
    }

    /// A range by the driver's id.
    pub fn range(&self, id: u32) -> Option<&AclRange> {
        self.ranges.get(id)
    }

    /// All ranges, by slot and by the driver's id.
    pub fn ranges(&self) -> &Slots<AclRange> {
        &self.ranges
    }

    /// Creates a range. Rules that name it are written after it.
    pub fn add_range(&mut self, new: AclRange) {
        self.ranges.put(new.id, new);
    }

    /// Removes a range. False: it was not there.
    pub fn remove_range(&mut self, id: u32) -> bool {
        self.ranges.remove(id).is_some()
    }

    /// A policer by the driver's id.
    pub fn policer(&self, id: u32) -> Option<&Policer> {
        self.policers.get(id)
    }

    /// All policers, by slot and by the driver's id.
    pub fn policers(&self) -> &Slots<Policer> {
        &self.policers
    }

    /// Creates or changes a policer; its bucket starts full, its counts stay.
    pub fn set_policer(&mut self, id: u32, flags: u16, rate: u64, burst: u64) -> u32 {
        let unit = match flags & raw::TND_POLICER_PACKETS {
            0 => Unit::Bytes,
            _ => Unit::Packets,
        };
        let old = self.policers.get(id).map(|p| &p.meter);
        let meter = policer::Policer::new(unit, rate, burst, old);
        self.policers.put(id, Policer { id, flags, meter })
    }

    /// Removes a policer. False: it was not there.
    pub fn remove_policer(&mut self, id: u32) -> bool {
        self.policers.remove(id).is_some()
    }

    /// A mirror session by the driver's id.
    pub fn mirror(&self, id: u16) -> Option<&Mirror> {
        self.mirrors.get(id.into())
    }

    /// All mirror sessions, by slot and by the driver's id.
    pub fn mirrors(&self) -> &Slots<Mirror> {
        &self.mirrors
    }

    /// Creates or changes a mirror session; its count stays.
    pub fn set_mirror(&mut self, new: Mirror) -> u32 {
        let packets = self.mirrors.get(new.id.into()).map_or(0, |m| m.packets);
        self.mirrors.put(new.id.into(), Mirror { packets, ..new })
    }

    /// Removes a mirror session. False: it was not there.
    pub fn remove_mirror(&mut self, id: u16) -> bool {
        self.mirrors.remove(id.into()).is_some()
    }

    /// Would the policer in a slot let this pass?
    pub(crate) fn admits(&self, slot: u32, packets: u64, bytes: u64, now: u64) -> bool {
        let policer = self.policers.at(slot);
        policer.is_none_or(|p| p.meter.admits(packets, bytes, now))
    }

    /// Charges the policer in a slot for what passed, or counts what did not.
    pub(crate) fn charge(&mut self, slot: u32, packets: u64, bytes: u64, now: u64, passed: bool) {
        if let Some(p) = self.policers.at_mut(slot) {
            p.meter.charge(packets, bytes, now, passed);
        }
    }
}

impl State {
    /// Binds a list to a port at a stage, or changes the flags there; nothing can make it fail for space.
    pub fn set_acl_bind(
        &mut self,
        port: u16,
        stage: AclStage,
        bind: AclBind,
    ) -> Result<(), SetError> {
        let at = usize::from(port).wrapping_sub(1);
        let table = self.acl.tables.slot(bind.table).unwrap_or(NONE);
        let slot = self
            .acl
            .binds
            .get_mut(at)
            .and_then(|all| all.get_mut(stage as usize))
            .ok_or(SetError::NoPort(port))?;
        *slot = Bound { bind, slot: table };
        let out = |(_, stage, _): &(u16, AclStage, AclBind)| {
            matches!(stage, AclStage::Ingress | AclStage::Egress)
        };
        self.acl.out_bound = self.acl.binds().filter(out).count() as u32;
        let forms = |(_, stage, _): &(u16, AclStage, AclBind)| *stage == AclStage::FlowEgress;
        self.acl.forms_bound = self.acl.binds().filter(forms).count() as u32;
        if stage == AclStage::Port {
            self.port_mut(port)?
                .set_hot(HOT_ACL, bind != AclBind::default());
        }
        Ok(())
    }
}
