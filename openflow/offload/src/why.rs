// SPDX-License-Identifier: Apache-2.0
//! Why a flow is where it is, in words.
use crate::decide::meeting;
use crate::index::Side;
use crate::{
    Act, Beyond, Entry, Id, MacKey, Offload, Only, Stand, Tagging, Vlan, Wanted, expand, pairs,
    tables,
};
use std::fmt;
use std::ops::ControlFlow;
use tandem_openflow::Field;

/// Why a flow that the MAC table could answer is in the ACL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMac {
    /// Its match or answer is not one of the MAC table's.
    Other,
    /// It has an idle timeout, and the ACL, which can do all of it, sees by itself whether it is used.
    Idle,
    /// Its packets are to be counted, and the MAC table counts nothing.
    Counted,
    /// This flow of lower order meets it, and the ACL decides first.
    Overlap(Id),
    /// There was no room in the MAC table.
    Full,
    /// No mask is free for its ports.
    PortSets,
}

/// Why a flow that classification could write for is no pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPair {
    /// Of its packets it is not known whether they have a tag.
    Tag,
    /// They have one, where one comes.
    HasTag,
    /// They have none, where it is written or goes.
    NoTag,
    /// What is to be in the tag no tag can have, or none is left to have it.
    Written,
    /// It is not known that they are IP's.
    NotIp,
    /// Some ports get the tag that they came with, and not all came with the same.
    OwnTag,
    /// By some ports they leave with another DSCP.
    Forms,
    /// What classifies has no place for these.
    Match(Vec<Field>),
    /// This flow in front meets it, and sends something or asks for the tag: its packets would be written to as well.
    Front(Id),
    /// No room in what classifies.
    #[allow(missing_docs)]
    Full { needs: u32, free: u32, size: u32 },
    /// All groups have a flow.
    Groups(u32),
    /// There is room since, and it was not its turn yet.
    Waits,
}

/// How many of a flow's packets the chip answers, as far as its rows for the flow say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All.
    Whole,
    /// Some; the others are the software's.
    Part,
    /// None: all are the software's.
    Nothing,
}

impl Share {
    /// Of a flow that is several rules. Without any it has no packet that the chip answers.
    pub fn of(rules: impl IntoIterator<Item = Share>) -> Share {
        let mut rules = rules.into_iter();
        let first = rules.next().unwrap_or(Share::Nothing);
        match rules.all(|s| s == first) {
            true => first,
            false => Share::Part,
        }
    }
}

/// Why a flow is where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// In the MAC table.
    #[allow(missing_docs)]
    Mac {
        key: MacKey,
        turned: u32,
        /// It traps, so that it is seen whether packets come.
        asked: bool,
    },
    /// In the MAC table, to trap: its answer is beyond the chip, or the controller.
    #[allow(missing_docs)]
    MacTrap { key: MacKey, beyond: Option<Beyond> },
    /// In the ACL: so many lines.
    #[allow(missing_docs)]
    Acl {
        table: &'static str,
        lines: u32,
        not_mac: NotMac,
        turned: u32,
    },
    /// In the ACL, to trap: its answer is beyond the chip, or the controller.
    #[allow(missing_docs)]
    Trap {
        table: &'static str,
        lines: u32,
        beyond: Option<Beyond>,
    },
    /// In the ACL, in part or as a whole by rows that ask for less and trap; these fields it has no place for. Or by
    /// exact rows alone, and the rest is the software's without a row.
    #[allow(missing_docs)]
    Widened {
        table: &'static str,
        lines: u32,
        missing: Vec<Field>,
        partly: bool,
        trapped: bool,
        turned: u32,
    },
    /// As a pair: rows that classify, and one of the ACL for their group.
    #[allow(missing_docs)]
    Pair {
        class: &'static str,
        table: &'static str,
        group: u8,
        lines: u32,
        turned: u32,
        /// Where its ports have what its packets leave with, and how many.
        forms: Option<(&'static str, u32)>,
    },
    /// As that says, and no pair though what classifies could write for it.
    #[allow(missing_docs)]
    NoPair {
        class: &'static str,
        not: NotPair,
        why: Box<Why>,
    },
    /// What is done with a miss.
    #[allow(missing_docs)]
    Miss { turned: u32 },
    /// Needs no entry: nothing behind it answers its packets.
    Software {
        /// What of it no row can ask for.
        missing: Vec<Field>,
        /// What the chip can't do.
        beyond: Option<Beyond>,
    },
    /// This flow has all of its packets.
    Shadowed(Id),
    /// No room.
    #[allow(missing_docs)]
    Full {
        table: &'static str,
        needs: u32,
        free: u32,
        size: u32,
        /// What the software would have to do less if it came in, in packets a second as far as is known, and what those have
        /// that would leave for it: it comes in with more than twice that.
        traffic: u64,
        leaving: Option<u64>,
        /// It was tried, and would have answered nothing, or others less.
        missed: bool,
    },
    /// Its rows would trap more traffic than those entries behind it have that trap instead.
    #[allow(missing_docs)]
    Costly {
        missing: Vec<Field>,
        beyond: Option<Beyond>,
    },
    /// Its rows would push flows out of the MAC table that the ACL does not do as well.
    #[allow(missing_docs)]
    Pushes { flows: u32, traffic: u64 },
    /// No row of the ACL meets its frames.
    NoRow,
}

impl Why {
    /// With other numbers for the flows that it names.
    #[must_use]
    pub fn named(mut self, name: impl Fn(Id) -> Id) -> Why {
        if let Why::NoPair { class, not, why } = self {
            let not = match not {
                NotPair::Front(by) => NotPair::Front(name(by)),
                other => other,
            };
            let why = Box::new(why.named(name));
            return Why::NoPair { class, not, why };
        }
        if let Why::Shadowed(by)
        | Why::Acl {
            not_mac: NotMac::Overlap(by),
            ..
        } = &mut self
        {
            *by = name(*by);
        }
        self
    }
}

impl Offload {
    /// Why a flow is where it is.
    pub fn why(&self, id: Id) -> Option<Why> {
        let e = self.flows.get(&id)?;
        let why = self.why_there(id, e)?;
        let class = self.chip.class.as_ref();
        Some(
            match class.and_then(|c| Some((c.rows.name, self.not_pair(e)?))) {
                Some((class, not)) => Why::NoPair {
                    class,
                    not,
                    why: Box::new(why),
                },
                None => why,
            },
        )
    }

    fn not_pair(&self, e: &Entry) -> Option<NotPair> {
        let class = &self.chip.class.as_ref()?.rows;
        let Act::Out { rewrite, .. } = e.act else {
            return None;
        };
        let second = e.second.as_deref();
        let needed = (second.is_some() || !tables::writes(self.chip.acl.rewrites, rewrite))
            && e.only != Some(Only::Mac);
        if !needed || matches!(e.state.stand, Stand::Pair | Stand::Dead(_)) {
            return None;
        }
        if !e.writes {
            let fields = &e.flow.fields;
            let unfit = match second {
                Some(second) => second.unfit(fields),
                None => pairs::unfit(fields, rewrite),
            };
            if let Some(not) = unfit {
                return Some(not);
            }
            let rows = expand::expand(class, &e.flow.fields);
            let wide = rows.iter().find(|r| !r.exact)?;
            let lost = e.flow.fields.iter().filter(|o| !wide.fields.contains(o));
            return Some(NotPair::Match(lost.map(|o| o.field).collect()));
        }
        if let Some(by) = self.meets_in_front(e) {
            return Some(NotPair::Front(by));
        }
        let (needs, size) = (e.class_lines(), self.class_size());
        let free = size.saturating_sub(self.class_used);
        if needs > free {
            return Some(NotPair::Full { needs, free, size });
        }
        let forms = second.is_some();
        if self.groups_left(forms) <= 0 {
            let all = self.numbers(forms).len() as u32;
            let most = if forms { self.forms_size } else { all };
            return Some(NotPair::Groups(all.min(most)));
        }
        // what is full otherwise the other reason says
        let room = self.acl_used < self.chip.acl.size;
        (room && !self.pairs(e)).then_some(NotPair::Waits)
    }

    fn why_there(&self, id: Id, e: &Entry) -> Option<Why> {
        let table = self.chip.acl.name;
        let missing = || -> Vec<Field> {
            let Some(wide) = e.rows.iter().find(|r| !r.exact) else {
                return Vec::new();
            };
            let fields = e.flow.fields.iter();
            let lost = fields.filter(|o| !wide.fields.contains(o));
            lost.map(|o| o.field).collect()
        };
        let beyond = match (e.flow.wanted, e.act) {
            (Wanted::Beyond(b), _) => Some(b),
            _ if e.second.is_some() => Some(Beyond::Copies),
            (_, Act::Out { rewrite, .. }) if rewrite.tag != Tagging::Stays => Some(Beyond::Tag),
            (_, act) if act != self.row_act(e) && e.only != Some(Only::Mac) => {
                Some(Beyond::Rewrite)
            }
            _ => None,
        };
        Some(match e.state.stand {
            Stand::Dead(by) => Why::Shadowed(by),
            Stand::Mac if !e.mac_act().real() => Why::MacTrap {
                key: e.mac?,
                beyond,
            },
            Stand::Mac => Why::Mac {
                key: e.mac?,
                turned: e.holes,
                asked: e.asked,
            },
            Stand::Miss => Why::Miss { turned: e.holes },
            Stand::Idle => Why::Software {
                missing: missing(),
                beyond,
            },
            Stand::Full => Why::Full {
                table,
                needs: e.lines(Stand::Acl { wide: true }),
                free: self.chip.acl.size.saturating_sub(self.acl_used),
                size: self.chip.acl.size,
                traffic: self.worth(id).unwrap_or(0),
                leaving: self.leaving(e.lines(Stand::Acl { wide: true })),
                missed: self.missed.contains(&id),
            },
            Stand::Costly => Why::Costly {
                missing: missing(),
                beyond: beyond.or((e.act != self.row_act(e)).then_some(Beyond::Rewrite)),
            },
            Stand::Pair => Why::Pair {
                class: self.chip.class.as_ref().map_or("", |c| c.rows.name),
                table,
                group: e.group,
                lines: e.class_lines(),
                turned: e.holes,
                forms: e.second.as_ref().map(|f| {
                    let name = self.chip.egress.as_ref().map_or("", |t| t.name);
                    (name, f.all().count())
                }),
            },
            Stand::Pushes => Why::Pushes {
                flows: e.pushed.0,
                traffic: u64::try_from(e.pushed.1).unwrap_or(u64::MAX),
            },
            Stand::NoRow => Why::NoRow,
            Stand::Acl { wide } if e.wide() => Why::Widened {
                table,
                lines: e.lines(e.state.stand),
                missing: missing(),
                partly: self.share(id) == Some(Share::Part),
                trapped: wide,
                // What never answers is not turned
                turned: if e.state.real { e.holes } else { 0 },
            },
            Stand::Acl { .. } if self.row_act(e) == Act::Cpu => Why::Trap {
                table,
                lines: e.lines(e.state.stand),
                beyond: beyond.or((e.act != Act::Cpu).then_some(Beyond::Rewrite)),
            },
            Stand::Acl { .. } => Why::Acl {
                table,
                lines: e.lines(e.state.stand),
                not_mac: self.not_mac(e),
                turned: e.holes,
            },
        })
    }

    /// How many of a flow's packets the chip answers. `None`: it has none, as another in front has them all.
    pub fn share(&self, id: Id) -> Option<Share> {
        let e = self.flows.get(&id)?;
        if let Stand::Dead(_) = e.state.stand {
            return None;
        }
        let asked = e.asked && e.state.stand == Stand::Mac;
        Some(match e.state.real && e.holes == 0 && !asked {
            false => Share::Nothing,
            true if e.state.hole || !e.rows_exact(e.state.stand) => Share::Part,
            true => Share::Whole,
        })
    }

    /// Flows in front that nothing keeps from it, because of which its entries trap: so many of them, and how many there
    /// are. Of one flow, as it looks through many.
    pub fn turned_by(&self, id: Id, most: usize) -> (Vec<Id>, u32) {
        let Some(e) = self.flows.get(&id).filter(|e| e.holes > 0 && e.state.real) else {
            return (Vec::new(), 0);
        };
        let (value, mask) = e.answers();
        let mut first = Vec::new();
        let _ = self
            .holes
            .meets(&self.order, &value, &mask, e.place, Side::Front, |g| {
                first.push(g);
                match first.len() < most {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
        (first, e.holes)
    }

    /// Flows behind it whose entries trap because nothing keeps its packets from them. The same.
    pub fn turns(&self, id: Id, most: usize) -> (Vec<Id>, u32) {
        let Some(e) = self.flows.get(&id).filter(|e| e.state.hole) else {
            return (Vec::new(), 0);
        };
        let (mut first, mut n) = (Vec::new(), 0);
        meeting(&self.real, self, e, Side::Behind, |g| {
            n += 1;
            if first.len() < most {
                first.push(g);
            }
        });
        (first, n)
    }

    /// What it takes where it stands: lines of the ACL, entries of the MAC table.
    pub fn cost(&self, id: Id) -> (u32, u32) {
        let of = |e: &Entry| match e.state.stand {
            Stand::Mac => (0, 1),
            stand => (e.lines(stand), 0),
        };
        self.flows.get(&id).map_or((0, 0), |e| of(e))
    }

    /// Lines that it takes of what classifies.
    pub fn class_cost(&self, id: Id) -> u32 {
        let e = self.flows.get(&id);
        e.filter(|e| e.state.stand == Stand::Pair)
            .map_or(0, |e| e.class_lines())
    }

    fn not_mac(&self, e: &Entry) -> NotMac {
        let same = |idle, counted| Entry {
            flow: crate::Flow {
                idle,
                counted,
                ..e.flow.clone()
            },
            ..e.clone()
        };
        if !self.mac_can(&same(false, false)) {
            NotMac::Other
        } else if e.flow.idle {
            NotMac::Idle
        } else if e.flow.counted {
            NotMac::Counted
        } else if let Some(by) = self.obstacle(e) {
            NotMac::Overlap(by)
        } else if e.mac_denied {
            NotMac::Full
        } else {
            NotMac::PortSets
        }
    }
}

impl Why {
    /// What would have to be otherwise for the chip to answer. `None`: it does already.
    pub fn needs(&self) -> Option<String> {
        let other = |beyond: &Option<Beyond>, missing: &[Field]| match (beyond, missing) {
            (Some(b), _) => b.instead().to_owned(),
            (None, []) => "nothing: its packets are for the CPU".to_owned(),
            (None, m) => format!("a match without {}", names(m)),
        };
        Some(match self {
            Why::Miss { turned: 0 }
            | Why::Mac {
                turned: 0,
                asked: false,
                ..
            }
            | Why::Pair { turned: 0, .. }
            | Why::Acl { turned: 0, .. } => return None,
            Why::NoPair { not, .. } => not.needs(),
            Why::Mac { turned: 0, .. } => "a packet of it".to_owned(),
            Why::Miss { .. } | Why::Mac { .. } | Why::Pair { .. } | Why::Acl { .. } => {
                "that the flows in front that turn it get into the chip, or go".to_owned()
            }
            Why::MacTrap { beyond, .. } | Why::Trap { beyond, .. } => other(beyond, &[]),
            Why::Widened { missing, .. } => other(&None, missing),
            Why::Software { missing, beyond } | Why::Costly { missing, beyond } => {
                other(beyond, missing)
            }
            Why::Shadowed(by) => format!("that flow {by} in front goes, or matches less"),
            Why::Full {
                needs,
                free,
                traffic,
                leaving,
                missed,
                ..
            } => match (needs.saturating_sub(*free), leaving) {
                (0, _) => "its turn: it is tried again when something changes".to_owned(),
                (n, None) => format!("{n} more lines that are free"),
                (n, Some(_)) if *missed => format!(
                    "{n} more lines that are free: it is worth {traffic} packets/s, but those that leave for it would make it \
                     trap, or it would make others trap"
                ),
                (_, Some(others)) if *traffic > others.saturating_mul(2) => {
                    "its turn: it is tried when traffic is measured next".to_owned()
                }
                (n, Some(others)) => format!(
                    "{n} more lines that are free, or more than {} packets/s, twice what would leave for it (it is worth {traffic})",
                    others.saturating_mul(2)
                ),
            },
            Why::Pushes { flows, traffic } => format!(
                "that the {flows} flows go that its row would push out of the MAC table, or more than {traffic} packets/s"
            ),
            Why::NoRow => "another match: no row of the chip meets these frames".to_owned(),
        })
    }
}

impl NotPair {
    fn needs(&self) -> String {
        match self {
            NotPair::Tag => "a match that says whether there is a tag".to_owned(),
            NotPair::HasTag => "a match of packets without a tag".to_owned(),
            NotPair::NoTag => "a match of packets with a tag".to_owned(),
            NotPair::Written => "a VLAN id of 1 to 4094 in a tag that stays or comes".to_owned(),
            NotPair::NotIp => "a match on IPv4 or IPv6".to_owned(),
            NotPair::OwnTag => "a match on one VLAN id of 1 to 4094".to_owned(),
            NotPair::Forms => "one DSCP for all ports".to_owned(),
            NotPair::Match(fields) => format!("a match without {}", names(fields)),
            NotPair::Front(by) => {
                format!(
                    "that flow {by} in front goes, matches less, or neither sends nor asks for the tag"
                )
            }
            NotPair::Full { needs, free, .. } => {
                format!("{} more lines that are free", needs.saturating_sub(*free))
            }
            NotPair::Groups(_) => "that one of these flows goes".to_owned(),
            NotPair::Waits => "that it is looked at again: when a flow comes or goes".to_owned(),
        }
    }
}

impl fmt::Display for NotPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotPair::Tag => f.write_str("its match does not say whether there is a tag"),
            NotPair::HasTag => f.write_str("its packets have a tag already"),
            NotPair::NoTag => f.write_str("its packets have no tag"),
            NotPair::Written => f.write_str("there is no such tag"),
            NotPair::NotIp => f.write_str("its match does not say that it is IP"),
            NotPair::OwnTag => f.write_str(
                "some ports get the tag that packets came with, and its match does not say which",
            ),
            NotPair::Forms => f.write_str("ports get other DSCPs"),
            NotPair::Match(fields) => write!(f, "that has no place for {}", names(fields)),
            NotPair::Front(by) => {
                write!(
                    f,
                    "flow {by} in front meets it, and sends or asks for the tag"
                )
            }
            NotPair::Full { needs, free, size } => {
                write!(
                    f,
                    "that is full: needs {needs} lines, free {free} of {size}"
                )
            }
            NotPair::Groups(0) => f.write_str("the chip has no lines for it"),
            NotPair::Groups(n) => write!(f, "all {n} groups have a flow"),
            NotPair::Waits => f.write_str("there is room by now, and it waits for its turn"),
        }
    }
}

impl Beyond {
    fn instead(self) -> &'static str {
        match self {
            Beyond::Meter => "that it goes through no meter",
            Beyond::Goto => "that it goes on to no other table",
            Beyond::Instruction => "that it leaves metadata and the action set alone",
            Beyond::Group => "a group whose packets all take the same buckets",
            Beyond::Rewrite => "no action but output, or one that the table does",
            Beyond::Copies => "one form of the packet, and no copy to the controller",
            Beyond::Port => "ports of the chip alone",
            Beyond::Tag => "that no tag is pushed or popped",
            Beyond::Written => "that no later table asks for what was written",
            Beyond::Chains => "fewer chains of flows, or a larger --chains",
            Beyond::Source => "a match that the MAC table can be asked for",
            Beyond::Kept => "a VLAN id below 4064, or that no flow sends two forms",
        }
    }
}

impl fmt::Display for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let b = self.address.to_be_bytes();
        let [_, _, b0, b1, b2, b3, b4, b5] = b;
        write!(f, "{b0:02x}:{b1:02x}:{b2:02x}:{b3:02x}:{b4:02x}:{b5:02x}")?;
        match self.vlan {
            Vlan::Any => Ok(()),
            Vlan::Untagged => write!(f, " untagged"),
            Vlan::Tag(v) => write!(f, " VLAN {v}"),
        }
    }
}

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Beyond::Meter => "a meter's rate is one for all that goes through it",
            Beyond::Goto => "it goes on to another table",
            Beyond::Instruction => "it changes metadata or the action set",
            Beyond::Group => {
                "it goes through a group that chooses a bucket for each packet, or through too many"
            }
            Beyond::Rewrite => "the table does not do its action",
            Beyond::Copies => "it sends several forms of the packet, or a copy to the controller",
            Beyond::Port => "it goes to a port that is not the chip's",
            Beyond::Tag => "it pushes or pops a tag",
            Beyond::Written => "a later table asks for what it has written",
            Beyond::Chains => "it has more chains than are composed",
            Beyond::Source => "it is for known sources alone, which no entry can tell here",
            Beyond::Kept => "the chip knows packets that leave in two forms by this VLAN id",
        })
    }
}

impl fmt::Display for NotMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotMac::Other => Ok(()),
            NotMac::Idle => f.write_str(", because rows see whether it is idle"),
            NotMac::Counted => f.write_str(", because the MAC table counts nothing"),
            NotMac::Overlap(id) => {
                write!(f, ", because flow {id} behind it overlaps it")
            }
            NotMac::Full => f.write_str(", because the MAC table is full"),
            NotMac::PortSets => f.write_str(", because no port set is free"),
        }
    }
}

/// What a flow's answer is that no chip gives.
fn answers(f: &mut fmt::Formatter<'_>, beyond: Option<Beyond>) -> fmt::Result {
    match beyond {
        Some(b) => write!(f, "software: {b}"),
        None => f.write_str("software: it goes to the controller"),
    }
}

fn names(fields: &[Field]) -> String {
    let names: Vec<&str> = fields.iter().map(|f| f.name()).collect();
    names.join(", ")
}

/// Where they stand among the others nobody is told: that would be a walk through all of those in front, for each flow.
fn lines(f: &mut fmt::Formatter<'_>, table: &str, lines: u32) -> fmt::Result {
    match lines {
        0 | 1 => write!(f, "in {table}"),
        n => write!(f, "in {table}, {n} lines"),
    }
}

fn turned(f: &mut fmt::Formatter<'_>, by: u32) -> fmt::Result {
    match by {
        0 => Ok(()),
        1 => write!(
            f,
            "; traps, because 1 flow in front that overlaps it is in software"
        ),
        n => write!(
            f,
            "; traps, because {n} flows in front that overlap it are in software"
        ),
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Mac {
                key,
                turned: by,
                asked,
            } => {
                write!(f, "in the MAC table, {key}")?;
                if *asked {
                    f.write_str(
                        "; traps until a packet comes, as nothing there tells whether it is idle",
                    )?;
                }
                turned(f, *by)
            }
            Why::MacTrap { key, beyond } => {
                answers(f, *beyond)?;
                write!(f, "; trapped at its place, in the MAC table, {key}")
            }
            Why::Acl {
                table,
                lines: l,
                not_mac,
                turned: by,
            } => {
                lines(f, table, *l)?;
                write!(f, "{not_mac}")?;
                turned(f, *by)
            }
            Why::Trap {
                table,
                lines: l,
                beyond,
            } => {
                answers(f, *beyond)?;
                f.write_str("; trapped at its place, ")?;
                lines(f, table, *l)
            }
            Why::Widened {
                table,
                lines: l,
                missing,
                partly,
                trapped,
                turned: by,
            } => {
                if *partly {
                    write!(f, "partly software: ")?;
                } else {
                    write!(f, "software: ")?;
                }
                write!(f, "{table} has no place for {}; ", names(missing))?;
                match trapped {
                    true => f.write_str("what it can ask for is trapped at its place, ")?,
                    false => f.write_str("frames of other kinds are answered ")?,
                }
                lines(f, table, *l)?;
                turned(f, *by)
            }
            Why::Pair {
                class,
                table,
                group,
                lines: l,
                turned: by,
                forms,
            } => {
                write!(f, "in {class}, ")?;
                if *l > 1 {
                    write!(f, "{l} lines, ")?;
                }
                write!(f, "which writes, and {table}, for its group {group}")?;
                match forms {
                    Some((egress, n)) => {
                        write!(f, "; what each port gets, in {egress}, {n} lines")
                    }
                    None => Ok(()),
                }?;
                turned(f, *by)
            }
            Why::NoPair { class, not, why } => {
                write!(f, "{why}; {class} would write it, but {not}")
            }
            Why::Miss { turned: by } => {
                f.write_str("what is done with frames that no table knows")?;
                turned(f, *by)
            }
            Why::Software { missing, beyond } => {
                f.write_str("software: ")?;
                match beyond {
                    Some(b) => write!(f, "{b}; ")?,
                    None if !missing.is_empty() => {
                        write!(f, "no row has a place for {}; ", names(missing))?;
                    }
                    None => f.write_str("it goes to the CPU; ")?,
                }
                f.write_str("needs no entry, nothing behind it answers its packets")
            }
            Why::Shadowed(by) => write!(f, "nowhere: flow {by} in front has all of its packets"),
            Why::Full {
                table,
                needs,
                free,
                size,
                ..
            } => write!(
                f,
                "software: {table} full: needs {needs} lines, free {free} of {size}"
            ),
            Why::Costly { missing, beyond } => {
                match missing.is_empty() {
                    true => answers(f, *beyond)?,
                    false => write!(f, "software: no row has a place for {}", names(missing))?,
                }
                f.write_str(
                    "; rows that trap would take more traffic than the entries behind it that trap instead",
                )
            }
            Why::Pushes { flows, traffic } => write!(
                f,
                "software: its row would be in the way of flows of the MAC table that the ACL can't do: \
                 {flows}, {traffic} packets/s"
            ),
            Why::NoRow => f.write_str("software: no row meets its frames"),
        }
    }
}
