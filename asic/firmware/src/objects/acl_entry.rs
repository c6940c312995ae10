//! TND_CLS_ACL_ENTRY: a rule. Its slots follow from the fields that it looks at; a range of ports is an object that it names,
//! or written out: then it takes a range checker, which rules with the same range share.

use super::{lag, port_set};
use crate::costs::{Cost, CostRow};
use crate::object::{DEPEND, Failure, INVALID, Object, UNSUPPORTED, body, count_down, count_up};
use crate::pools::{Need, PoolId};
use crate::{Firmware, References};
use std::collections::HashMap;
use tandem_abi::raw;
use tandem_pipeline::acl::key;
use tandem_pipeline::state::{AclRule, AclStage, PortMask, ports_of};
use tandem_tables::tcam::{Match, Width};
use zerocopy::IntoBytes;

pub(crate) const ETHERTYPE_IP4: u16 = 0x0800;
pub(crate) const ETHERTYPE_IP6: u16 = 0x86dd;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AclEntry(raw::tnd_acl_entry);

/// A range that is written out.
pub(crate) type Range = (u16, u16);

impl AclEntry {
    pub(crate) fn of_rule(r: &AclRule) -> Self {
        Self(r.body)
    }

    fn what(&self, fw: &Firmware) -> Match {
        fw.state.acl.matched(&self.0)
    }

    /// Distinct ranges that are written out.
    pub(crate) fn ranges(&self) -> Vec<Range> {
        let r = key::rule(&self.0).ranges;
        let mut all: Vec<Range> = r.src.into_iter().chain(r.dst).collect();
        all.dedup();
        all
    }

    fn slots(&self, fw: &Firmware) -> Need {
        let stage = fw.state.acl.table(self.0.table).map(|t| t.stage);
        let stage = stage.unwrap_or(AclStage::Port);
        fw.pools.rule_of(stage, &self.what(fw))
    }

    /// Counts what the rule names.
    fn refers(&self, fw: &mut Firmware, count: impl Fn(&mut References, (u16, u32))) {
        let e = &self.0;
        let nexthop = match e.action {
            raw::TND_ACL_REDIRECT_NEXTHOP => Some((raw::TND_CLS_NEXTHOP, e.target)),
            _ => None,
        };
        let named = [
            (raw::TND_CLS_ACL_COUNTER, e.counter),
            (raw::TND_CLS_ACL_RANGE, e.src_range),
            (raw::TND_CLS_ACL_RANGE, e.dst_range),
            (raw::TND_CLS_POLICER, e.policer),
            (raw::TND_CLS_MIRROR, e.mirror.into()),
        ];
        let named = named.into_iter().filter(|(_, id)| *id != 0);
        let port = match e.action {
            raw::TND_ACL_REDIRECT_PORT => u16::try_from(e.target).ok(),
            _ => None,
        };
        // of other actions the mask is empty
        let groups = lag::groups(fw, port.into_iter().chain(ports_of(&e.ports)));
        for what in named.chain(nexthop).chain(groups) {
            count(&mut fw.refs, what);
        }
    }
}

/// A lease knows no stage: room in each of the memories, and for two ranges written out that nobody else has. The stage that most
/// rules are for comes first, and most rules have no ranges.
fn worst(fw: &Firmware, width: Width) -> Vec<Cost> {
    let mut all: Vec<Need> = Vec::new();
    for stage in [
        AclStage::Ingress,
        AclStage::Port,
        AclStage::Egress,
        AclStage::Flow,
        AclStage::FlowClass,
        AclStage::FlowEgress,
    ] {
        let one = fw.pools.rule(stage, width);
        match all.iter_mut().find(|n| n.pool == one.pool) {
            Some(n) => n.slots = n.slots.max(one.slots),
            None if one.slots > 0 => all.push(one),
            None => {}
        }
    }
    let lines = all.iter().map(|n| Cost::of(n.pool, n.slots));
    lines.chain([Cost::up_to(PoolId::AclRange, 2, 0)]).collect()
}

/// Fields beyond Ethernet need a frame that surely has them; and bits outside of the mask count for nothing.
fn normal_key(e: &mut raw::tnd_acl_entry) -> Result<(), Failure> {
    e.mask.reserved1 = [0; 3];
    let mask = e.mask;
    for (k, m) in e.key.as_mut_bytes().iter_mut().zip(mask.as_bytes()) {
        *k &= m;
    }
    let ethertype = (mask.ethertype == u16::MAX).then_some(e.key.ethertype);
    let addresses = if ethertype == Some(ETHERTYPE_IP4) {
        [&mask.dst_ip[4..], &mask.src_ip[4..]].concat()
    } else {
        Vec::new()
    };
    let ip = matches!(ethertype, Some(ETHERTYPE_IP4 | ETHERTYPE_IP6));
    let beyond = raw::tnd_acl_key {
        dst_mac: [0; 6],
        src_mac: [0; 6],
        ethertype: 0,
        tci: 0,
        port: 0,
        tag: 0,
        group: 0,
        ..mask
    };
    let ranged = [
        e.src_port_min,
        e.src_port_max,
        e.dst_port_min,
        e.dst_port_max,
    ] != [0; 4]
        || e.src_range != 0
        || e.dst_range != 0;
    let asks_ip = ranged || beyond != raw::tnd_acl_key::default();
    if asks_ip && !ip || addresses.iter().any(|b| *b != 0) {
        return Err(INVALID);
    }
    Ok(())
}

/// A range of all is none, a range of one is a key. A port has one of the three: a key, a range, a named range.
fn normal_range(
    min: &mut u16,
    max: &mut u16,
    key: &mut u16,
    mask: &mut u16,
    named: u32,
) -> Result<(), Failure> {
    if named != 0 && (*max != 0 || *mask != 0) {
        return Err(INVALID);
    }
    if (*min, *max) == (0, 0) {
        return Ok(());
    }
    if *min > *max || *mask != 0 {
        return Err(INVALID);
    }
    if min == max {
        (*key, *mask) = (*min, u16::MAX);
    }
    if min == max || (*min, *max) == (0, u16::MAX) {
        (*min, *max) = (0, 0);
    }
    Ok(())
}

impl Object for AclEntry {
    const CLASS: u16 = raw::TND_CLS_ACL_ENTRY;
    const NAME: &'static str = "acl-entry";
    const COSTS: &'static [CostRow] = &[
        CostRow {
            family: 0,
            name: "acl-rule-l2",
            slots: |fw| worst(fw, Width::L2),
        },
        CostRow {
            family: raw::TND_AF_INET,
            name: "acl-rule-ipv4",
            slots: |fw| worst(fw, Width::Ip4),
        },
        CostRow {
            family: raw::TND_AF_INET6,
            name: "acl-rule-ipv6",
            slots: |fw| worst(fw, Width::Ip6),
        },
        CostRow {
            family: raw::TND_ACL_WIDTH_FULL,
            name: "acl-rule-full",
            slots: |fw| worst(fw, Width::Full),
        },
    ];
    const WIDE: bool = true;
    const SPARSE: bool = true;

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 12).map(Self)
    }
    fn normal(self, fw: &Firmware) -> Result<Self, Failure> {
        let mut e = self.0;
        e.struct_size = size_of::<raw::tnd_acl_entry>() as u16;
        e.reserved1 = [0; 3];
        normal_key(&mut e)?;
        normal_range(
            &mut e.src_port_min,
            &mut e.src_port_max,
            &mut e.key.src_port,
            &mut e.mask.src_port,
            e.src_range,
        )?;
        normal_range(
            &mut e.dst_port_min,
            &mut e.dst_port_max,
            &mut e.key.dst_port,
            &mut e.mask.dst_port,
            e.dst_range,
        )?;
        e.flags &= raw::TND_ACL_SET_VID
            | raw::TND_ACL_SET_PCP
            | raw::TND_ACL_TRAP_CLASS
            | raw::TND_ACL_SET_DSCP;
        if e.flags & raw::TND_ACL_SET_VID == 0 {
            e.vid = 0;
        } else if !(1..=raw::TND_ACL_VID_NONE).contains(&e.vid) {
            return Err(INVALID);
        }
        if e.flags & raw::TND_ACL_SET_DSCP == 0 {
            e.dscp = 0;
        } else if e.dscp > 63 {
            return Err(INVALID);
        }
        if e.flags & raw::TND_ACL_SET_PCP == 0 {
            e.pcp = 0;
        } else if e.pcp > 7 {
            return Err(INVALID);
        }
        if e.flags & raw::TND_ACL_TRAP_CLASS == 0 {
            e.trap_class = 0;
        } else if e.trap_class >= raw::TND_TC_COUNT {
            return Err(INVALID);
        }
        match e.action {
            raw::TND_ACL_REDIRECT_PORT => {
                let port = u16::try_from(e.target).ok();
                if !port.is_some_and(|p| fw.state.has_port(p)) {
                    return Err(INVALID);
                }
            }
            raw::TND_ACL_REDIRECT_NEXTHOP => {}
            raw::TND_ACL_REDIRECT_PORTS if port_set::known(fw, &e.ports) => e.target = 0,
            raw::TND_ACL_PERMIT | raw::TND_ACL_DROP | raw::TND_ACL_TRAP => e.target = 0,
            _ => return Err(INVALID),
        }
        if e.action != raw::TND_ACL_REDIRECT_PORTS {
            e.ports = PortMask::default();
        }
        Ok(Self(e))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        let table = fw.state.acl.table(self.0.table)?;
        let (_, rule) = table.rules.get(self.0.priority)?;
        Some(Self(rule.body))
    }
    fn depends(&self, fw: &Firmware) -> Result<(), Failure> {
        let e = &self.0;
        let acl = &fw.state.acl;
        for (id, field) in [
            (e.src_range, raw::TND_ACL_RANGE_SRC),
            (e.dst_range, raw::TND_ACL_RANGE_DST),
        ] {
            match acl.range(id) {
                Some(r) if r.field != field => return Err(INVALID),
                None if id != 0 => return Err(DEPEND),
                _ => {}
            }
        }
        let there = acl.table(e.table).is_some()
            && (e.counter == 0 || acl.counter(e.counter).is_some())
            && (e.policer == 0 || acl.policer(e.policer).is_some())
            && (e.mirror == 0 || acl.mirror(e.mirror).is_some())
            && (e.action != raw::TND_ACL_REDIRECT_NEXTHOP || fw.state.nexthop(e.target).is_some());
        if !there {
            return Err(DEPEND);
        }
        let stage = acl.table(e.table).map(|t| t.stage);
        if let Some(stage @ (AclStage::FlowClass | AclStage::FlowEgress)) = stage {
            let rows = fw.pools.rows(stage);
            let can = rows.is_some_and(|r| match stage {
                AclStage::FlowClass => r.classifies(e),
                _ => r.forms(e),
            });
            let can = can && self.slots(fw).slots != 0;
            return if can { Ok(()) } else { Err(UNSUPPORTED) };
        }
        if e.vid == raw::TND_ACL_VID_NONE {
            return Err(INVALID);
        }
        let asks = e.mask.group != 0;
        let classes = stage == Some(AclStage::Flow) && fw.profile().classifies_flows();
        if e.dscp != 0 || e.flags & raw::TND_ACL_SET_DSCP != 0 || e.group != 0 || asks && !classes {
            return Err(UNSUPPORTED);
        }
        let sets = e.flags & (raw::TND_ACL_SET_VID | raw::TND_ACL_SET_PCP) != 0;
        let moves = matches!(
            e.action,
            raw::TND_ACL_REDIRECT_PORT | raw::TND_ACL_REDIRECT_NEXTHOP
        );
        let several = e.action == raw::TND_ACL_REDIRECT_PORTS;
        let can = match stage.and_then(|stage| fw.pools.rows(stage)) {
            Some(rows) => rows.has(e),
            None => !several && (stage == Some(AclStage::Port) || !sets && !moves),
        };
        // the memory of this stage has no key so wide
        let too_wide = self.slots(fw).slots == 0;
        if too_wide || !can {
            return Err(UNSUPPORTED);
        }
        Ok(())
    }
    /// All or nothing: what the new rule needs beyond the old one is taken first.
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        let need = self.slots(fw);
        let had = old.map_or(Need { slots: 0, ..need }, |o| o.slots(fw));
        let more = need.slots.saturating_sub(had.slots);
        fw.take(need.pool, more)?;
        for (i, r) in self.ranges().iter().enumerate() {
            let new = !fw.ranges.contains_key(r);
            if new && let Err(f) = fw.take(PoolId::AclRange, 1) {
                for r in self.ranges().iter().take(i) {
                    if release(&mut fw.ranges, *r) {
                        fw.untake(PoolId::AclRange, 1);
                    }
                }
                fw.untake(need.pool, more);
                return Err(f);
            }
            count_up(&mut fw.ranges, *r);
        }
        let target = match self.0.action {
            raw::TND_ACL_REDIRECT_NEXTHOP => fw.state.nexthop_slot(self.0.target).unwrap_or(0),
            _ => self.0.target,
        };
        fw.state.acl.put_rule(self.0, target);
        self.refers(fw, count_up);
        if let Some(o) = old {
            o.refers(fw, count_down);
            o.drop_ranges(fw);
        }
        fw.give(need.pool, had.slots.saturating_sub(need.slots));
        Ok(())
    }
    fn in_use(&self, _: &Firmware) -> bool {
        false
    }
    fn remove(&self, fw: &mut Firmware) {
        let need = self.slots(fw);
        if fw.state.acl.remove_rule(self.0.table, self.0.priority) {
            fw.give(need.pool, need.slots);
            self.refers(fw, count_down);
            self.drop_ranges(fw);
        }
    }
    /// A rule that can't do what it should sends its frames to the CPU.
    fn trapped(&self, _: &Self) -> Option<Self> {
        Some(Self(raw::tnd_acl_entry {
            action: raw::TND_ACL_TRAP,
            target: 0,
            ports: PortMask::default(),
            flags: 0,
            vid: 0,
            pcp: 0,
            trap_class: 0,
            dscp: 0,
            group: 0,
            ..self.0
        }))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn needs(&self, fw: &Firmware) -> Vec<Need> {
        let new = |r: &&Range| !fw.ranges.contains_key(r);
        let ranges = self.ranges().iter().filter(new).count() as u32;
        vec![
            self.slots(fw),
            Need {
                pool: PoolId::AclRange,
                slots: ranges,
            },
        ]
    }
    fn position(&self, fw: &Firmware) -> Option<u64> {
        let list = fw.state.acl.tables().slot(self.0.table)?;
        Some(u64::from(list) << 32 | u64::from(self.0.priority))
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        // the list's slot, and the priority
        let (list, first) = ((from >> 32) as u32, from as u32);
        let lists = fw.state.acl.tables();
        (list..lists.slots()).flat_map(move |at| {
            let first = if at == list { first } else { 0 };
            let rules = lists.at(at).map(|table| table.rules.iter(first));
            let rules = rules.into_iter().flatten();
            let rules = rules.map(|(priority, _, rule)| (priority, Some(Self::of_rule(rule))));
            // a list without any is looked at as well
            let all = rules.chain([(u32::MAX, None)]);
            let all = all.inspect(|_| fw.state.work.add(1));
            all.map(move |(priority, rule)| (u64::from(at) << 32 | u64::from(priority), rule))
        })
    }
}

impl AclEntry {
    /// The rule is gone: a range that nobody else has frees its checker.
    fn drop_ranges(&self, fw: &mut Firmware) {
        for r in self.ranges() {
            if release(&mut fw.ranges, r) {
                fw.give(PoolId::AclRange, 1);
            }
        }
    }
}

/// One user less. True: it was the last.
fn release(ranges: &mut HashMap<Range, u32>, r: Range) -> bool {
    count_down(ranges, r);
    !ranges.contains_key(&r)
}
