// SPDX-License-Identifier: Apache-2.0
//! What becomes of a packet, in the words of a chip, and what of OpenFlow's instructions can be said in them.
use tandem_openflow::{Action, Field, Instructions, port};

/// Ports of the chip, 0 to 255.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortMask([u64; 4]);

impl PortMask {
    /// One port.
    pub fn one(port: u8) -> PortMask {
        let mut m = PortMask::default();
        m.insert(port);
        m
    }

    /// With this port as well.
    pub fn insert(&mut self, port: u8) {
        if let Some(w) = self.0.get_mut(usize::from(port >> 6)) {
            *w |= 1 << (port & 63);
        }
    }

    /// Is it among them?
    pub fn has(self, port: u8) -> bool {
        self.0
            .get(usize::from(port >> 6))
            .is_some_and(|w| w >> (port & 63) & 1 == 1)
    }

    /// How many.
    pub fn count(self) -> u32 {
        self.0.iter().map(|w| w.count_ones()).sum()
    }

    /// In order.
    pub fn ports(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |p| self.has(*p))
    }

    /// Has it any of them?
    pub fn meets(self, other: PortMask) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }

    /// With these as well.
    pub fn join(&mut self, other: PortMask) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a |= b;
        }
    }
}

/// What becomes of a packet's tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tagging {
    /// It stays, or none comes.
    #[default]
    Stays,
    /// One comes, of 802.1Q: the packet came without.
    Comes,
    /// The packet's only one goes.
    Goes,
}

/// Fields that are written on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct Rewrite {
    pub tag: Tagging,
    /// Of the tag that the frame leaves with.
    pub vid: Option<u16>,
    pub pcp: Option<u8>,
    pub dscp: Option<u8>,
}

/// Ports that packets leave in another form than by the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct Second {
    pub ports: PortMask,
    pub rewrite: Rewrite,
}

/// The tag that a packet leaves a port with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Leaves {
    /// Its VLAN id; `None`: without a tag.
    pub vid: Option<u16>,
    /// Its priority; `None`: that of the tag that it came with, 0 if there was none.
    pub pcp: Option<u8>,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    /// Nowhere.
    Drop,
    /// Out of these ports, but never of the one it came in by.
    #[allow(missing_docs)]
    Out { ports: PortMask, rewrite: Rewrite },
    /// To the CPU as it came in: the software pipeline answers.
    Cpu,
}

impl Act {
    /// Out of one port as it is.
    pub fn port(port: u8) -> Act {
        Act::Out {
            ports: PortMask::one(port),
            rewrite: Rewrite::default(),
        }
    }

    /// Is it an answer of the chip's own?
    pub fn real(self) -> bool {
        self != Act::Cpu
    }
}

/// Why no chip does what a flow says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Beyond {
    /// A meter: the rate is one for all that goes through it, so all of that is the software's.
    Meter,
    /// To a later table.
    Goto,
    /// Metadata, the action set emptied.
    Instruction,
    /// A group that chooses a bucket for each packet, or more buckets than are composed. Alone, any: what is alive is not
    /// known here.
    Group,
    /// An action that changes the packet in another way than the VLAN id, priority and DSCP.
    Rewrite,
    /// A copy to the controller beside the ports, several forms of one packet, a packet twice to one port.
    Copies,
    /// A reserved port other than the controller, or a port that is not the chip's.
    Port,
    /// A tag that comes or goes.
    Tag,
    /// A later table asks for what an earlier one has written, and that can't be asked of the packet that comes in.
    Written,
    /// More chains of flows than are composed.
    Chains,
    /// True of frames whose source is known alone, and no entry of the MAC table can say that.
    Source,
    /// Of a VLAN id by which the chip knows packets that leave in two forms.
    Kept,
}

/// What a flow wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// An answer.
    Act(Act),
    /// Something that the software alone can do: the chip's answer is the CPU.
    Beyond(Beyond),
}

impl Wanted {
    /// What the chip is to do.
    pub fn act(self) -> Act {
        match self {
            Wanted::Act(a) => a,
            Wanted::Beyond(_) => Act::Cpu,
        }
    }

    /// Of instructions; `ports` has the ports of an OpenFlow port: one, or of `FLOOD` and `ALL` several.
    pub fn of(wanted: &Instructions, ports: impl Fn(u32) -> Option<PortMask>) -> Wanted {
        let said = |i: &Instructions| {
            if i.meter.is_some() {
                return Err(Beyond::Meter);
            }
            if i.goto.is_some() {
                return Err(Beyond::Goto);
            }
            if i.clear || i.metadata.is_some() {
                return Err(Beyond::Instruction);
            }
            let mut sum = Sum::default();
            for a in i.apply.iter().flatten() {
                sum.action(a, &ports)?;
            }
            let written = i.write.as_deref().unwrap_or_default();
            // The action set has an order of its own: what is written goes before what is sent (§5.10)
            let sends = |a: &&Action| matches!(a, Action::Output { .. });
            for a in written.iter().filter(|a| !sends(a)) {
                sum.action(a, &ports)?;
            }
            // and of outputs the last one counts
            if let Some(a) = written.iter().rfind(sends) {
                sum.action(a, &ports)?;
            }
            sum.end()
        };
        match said(wanted) {
            Ok(act) => Wanted::Act(act),
            Err(beyond) => Wanted::Beyond(beyond),
        }
    }
}

#[derive(Default)]
struct Sum {
    ports: PortMask,
    rewrite: Rewrite,
    controller: bool,
    sent: bool,
}

impl Sum {
    fn action(
        &mut self,
        a: &Action,
        ports: &impl Fn(u32) -> Option<PortMask>,
    ) -> Result<(), Beyond> {
        match *a {
            Action::Output { port, .. } if port == port::CONTROLLER => {
                self.controller = true;
            }
            Action::Output { port, .. } => {
                let to = ports(port).ok_or(Beyond::Port)?;
                if self.ports.meets(to) {
                    return Err(Beyond::Copies);
                }
                self.ports.join(to);
                self.sent = true;
            }
            Action::Group(_) => return Err(Beyond::Group),
            _ if self.sent => return Err(Beyond::Copies),
            Action::SetField { field, value } => match field {
                Field::VlanVid => self.rewrite.vid = Some(value as u16 & 0xfff),
                Field::VlanPcp => self.rewrite.pcp = Some(value as u8),
                Field::IpDscp => self.rewrite.dscp = Some(value as u8),
                _ => return Err(Beyond::Rewrite),
            },
            _ => return Err(Beyond::Rewrite),
        }
        Ok(())
    }

    fn end(self) -> Result<Act, Beyond> {
        match (self.controller, self.sent) {
            (true, true) => Err(Beyond::Copies),
            (true, false) => Ok(Act::Cpu),
            (false, true) => Ok(Act::Out {
                ports: self.ports,
                rewrite: self.rewrite,
            }),
            (false, false) => Ok(Act::Drop),
        }
    }
}
