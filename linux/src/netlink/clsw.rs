//! Generic netlink family `clsw` (`kernel/include/uapi/clsw.h`): what the kernel driver offers beside the
//! usual interfaces.
//!
//! ```text
//!  Reservation   add(keys) … ─► commit ─► leased: routes of the list find room
//!                                  └────► ENOSPC, in the driver's words: nothing is taken
//!                drop (or the process's end) gives back what was not used
//!  Driver        objects(class) ─► what the driver wants of the chip, what is there, and why not
//!                resources()    ─► the chip's memories
//! ```

use ipnet::IpNet;
use netlink_sys::{Socket, protocols};

use super::consts::{NLM_F_ACK, NLM_F_DUMP, NLMSG_DONE, NLMSG_ERROR};
use super::socket::{Error, Result, extack, open, prepare, recv};
use super::wire::{Attrs, Msgs, Writer, text, u8_at, u16_at, u32_at};

const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// Bytes of `struct genlmsghdr`.
const GENL_HEADER: usize = 4;

const VERSION: u8 = 1;
const CMD_RESERVE_ADD: u8 = 1;
const CMD_RESERVE_COMMIT: u8 = 2;
const CMD_OBJECTS: u8 = 4;
const CMD_RESOURCES: u8 = 5;
const ATTR_DEVICE: u16 = 1;
const ATTR_ROUTES: u16 = 2;
const ATTR_NEXTHOPS: u16 = 3;
const ATTR_GROUPS: u16 = 4;
const ATTR_MEMBERS: u16 = 5;
const ATTR_CLASS: u16 = 6;
const ATTR_BODY: u16 = 7;
const ATTR_STATE: u16 = 8;
const ATTR_REASON: u16 = 9;
const ATTR_POOL: u16 = 10;
const ATTR_COST: u16 = 11;

/// Keys to a message: 24 bytes each, well below the 64 KiB of an attribute.
const KEYS: usize = 1024;

/// The driver, asked by generic netlink.
#[derive(Debug)]
pub struct Driver {
    socket: Socket,
    family: u16,
    seq: u32,
}

/// Capacity reserved for a list of routes, for as long as this lives.
#[derive(Debug)]
pub struct Reservation(Driver);

/// Where an object is: `enum clsw_object_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectState {
    /// To be written.
    Pending,
    /// In hardware as wanted.
    Hardware,
    /// An older body is in hardware.
    Updating,
    /// Not in hardware.
    Failed,
    /// About to go.
    Leaving,
    /// The chip did not answer.
    Unknown,
    /// In hardware as a trap.
    Trap,
}

impl ObjectState {
    fn from_number(n: u8) -> Self {
        match n {
            1 => Self::Hardware,
            2 => Self::Updating,
            3 => Self::Failed,
            4 => Self::Leaving,
            5 => Self::Unknown,
            6 => Self::Trap,
            _ => Self::Pending,
        }
    }
}

/// One object of the driver's store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverObject {
    /// `enum tnd_class`.
    pub class: u16,
    /// As `abi/tandem_objects.h` has it.
    pub body: Vec<u8>,
    /// Where it is.
    pub state: ObjectState,
    /// Why it is not in hardware, or traps.
    pub reason: Option<String>,
}

/// The chip's memories as the driver counts them; records of the ABI.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriverResources {
    /// `struct tnd_pool` each.
    pub pools: Vec<Vec<u8>>,
    /// `struct tnd_class_cost` each.
    pub classes: Vec<Vec<u8>>,
}

/// What a list needs beside its prefixes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Paths {
    /// Next hops that the list names.
    pub nexthops: u32,
    /// Next-hop groups (multipath routes).
    pub groups: u32,
    /// Members of these groups, together.
    pub members: u32,
}

impl Driver {
    /// `None`: this kernel has no driver of the family.
    ///
    /// # Errors
    /// When the socket can't be had, or the kernel's answer is odd.
    pub fn open() -> Result<Option<Self>> {
        let socket = open(protocols::NETLINK_GENERIC)?;
        prepare(&socket);
        let mut this = Self {
            socket,
            family: GENL_ID_CTRL,
            seq: 0,
        };
        let mut id = 0;
        let asked = this.ask(
            "find the clsw family",
            CTRL_CMD_GETFAMILY,
            |w| w.attr(CTRL_ATTR_FAMILY_NAME, b"clsw\0"),
            |attrs| id = attrs.get(CTRL_ATTR_FAMILY_ID).map_or(0, |v| u16_at(v, 0)),
        );
        match asked {
            Ok(()) if id != 0 => {
                this.family = id;
                Ok(Some(this))
            }
            Ok(()) => Err(Error::protocol("find the clsw family", "it has no number")),
            Err(e) if e.is_gone() => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn ask(
        &mut self,
        request: &'static str,
        cmd: u8,
        write: impl FnOnce(&mut Writer),
        answer: impl FnMut(Attrs<'_>),
    ) -> Result<()> {
        self.exchange(request, NLM_F_ACK, cmd, write, answer)
    }

    fn exchange(
        &mut self,
        request: &'static str,
        flags: u16,
        cmd: u8,
        write: impl FnOnce(&mut Writer),
        mut answer: impl FnMut(Attrs<'_>),
    ) -> Result<()> {
        self.seq = self.seq.wrapping_add(1).max(1);
        let mut w = Writer::new();
        w.begin(self.family, flags, self.seq, &[cmd, VERSION, 0, 0]);
        write(&mut w);
        self.socket
            .send(w.bytes(), 0)
            .map_err(|e| Error::io(request, &e))?;
        let mut buf = vec![0; 64 * 1024];
        loop {
            let n = recv(&self.socket, &mut buf, request)?;
            for msg in Msgs::new(buf.get(..n).unwrap_or(&[])).filter(|m| m.seq == self.seq) {
                // the end of a dump carries an error in the same place
                if !matches!(msg.kind, NLMSG_ERROR | NLMSG_DONE) {
                    answer(Attrs::after(msg.payload, GENL_HEADER));
                    continue;
                }
                let errno = (u32_at(msg.payload, 0) as i32).unsigned_abs() as i32;
                if errno == 0 {
                    return Ok(());
                }
                return Err(Error {
                    request,
                    errno,
                    extack: extack(&msg),
                });
            }
        }
    }

    /// All objects of a class (`enum tnd_class`), in no order.
    ///
    /// # Errors
    /// `ENODEV` where there is no chip, or several and `device` (`bus/name`) names none.
    pub fn objects(&mut self, device: Option<&str>, class: u16) -> Result<Vec<DriverObject>> {
        let mut all = Vec::new();
        self.exchange(
            "list objects",
            NLM_F_DUMP,
            CMD_OBJECTS,
            |w| {
                named(w, device);
                w.attr(ATTR_CLASS, &class.to_ne_bytes());
            },
            |a| {
                all.push(DriverObject {
                    class: a.get(ATTR_CLASS).map_or(0, |v| u16_at(v, 0)),
                    body: a.get(ATTR_BODY).unwrap_or_default().to_vec(),
                    state: ObjectState::from_number(a.get(ATTR_STATE).map_or(0, |v| u8_at(v, 0))),
                    reason: a.get(ATTR_REASON).map(text).filter(|t| !t.is_empty()),
                });
            },
        )?;
        Ok(all)
    }

    /// The chip's memories, and what fits into them.
    ///
    /// # Errors
    /// As [`objects`](Self::objects).
    pub fn resources(&mut self, device: Option<&str>) -> Result<DriverResources> {
        let mut all = DriverResources::default();
        self.exchange(
            "list resources",
            NLM_F_DUMP,
            CMD_RESOURCES,
            |w| named(w, device),
            |a| {
                all.pools.extend(a.get(ATTR_POOL).map(<[u8]>::to_vec));
                all.classes.extend(a.get(ATTR_COST).map(<[u8]>::to_vec));
            },
        )?;
        Ok(all)
    }
}

/// Which chip is meant.
fn named(w: &mut Writer, device: Option<&str>) {
    if let Some(device) = device {
        w.attr(ATTR_DEVICE, format!("{device}\0").as_bytes());
    }
}

impl Reservation {
    /// `None`: this kernel has no driver of the family.
    ///
    /// # Errors
    /// As [`Driver::open`].
    pub fn open() -> Result<Option<Self>> {
        Ok(Driver::open()?.map(Self))
    }

    /// Adds prefixes of routing table `table` to the list.
    ///
    /// # Errors
    /// What the kernel says: `EBUSY` after [`commit`](Self::commit), `E2BIG` beyond a million.
    pub fn add(&mut self, routes: impl IntoIterator<Item = (u32, IpNet)>) -> Result<()> {
        let mut keys = Vec::with_capacity(KEYS * 24);
        for (table, dst) in routes {
            keys.extend_from_slice(&key(table, dst));
            if keys.len() >= KEYS * 24 {
                self.add_keys(&keys)?;
                keys.clear();
            }
        }
        if keys.is_empty() {
            return Ok(());
        }
        self.add_keys(&keys)
    }

    fn add_keys(&mut self, keys: &[u8]) -> Result<()> {
        self.0.ask(
            "list routes",
            CMD_RESERVE_ADD,
            |w| w.attr(ATTR_ROUTES, keys),
            |_| {},
        )
    }

    /// Leases capacity for the whole list, or for nothing of it. `device`: `bus/name` of the chip, where
    /// there are several.
    ///
    /// # Errors
    /// `ENOSPC` with the table, what was needed and what is free.
    pub fn commit(&mut self, device: Option<&str>, paths: Paths) -> Result<()> {
        self.0.ask(
            "reserve",
            CMD_RESERVE_COMMIT,
            |w| {
                named(w, device);
                w.attr_u32(ATTR_NEXTHOPS, paths.nexthops);
                w.attr_u32(ATTR_GROUPS, paths.groups);
                w.attr_u32(ATTR_MEMBERS, paths.members);
            },
            |_| {},
        )
    }
}

/// `struct clsw_route_key`.
fn key(table: u32, dst: IpNet) -> [u8; 24] {
    let mut key = [0; 24];
    let (head, addr) = key.split_at_mut(8);
    let dst = dst.trunc();
    let family = match dst {
        IpNet::V4(_) => libc::AF_INET,
        IpNet::V6(_) => libc::AF_INET6,
    };
    head[..4].copy_from_slice(&table.to_ne_bytes());
    head[4] = family as u8;
    head[5] = dst.prefix_len();
    match dst {
        IpNet::V4(net) => addr[..4].copy_from_slice(&net.network().octets()),
        IpNet::V6(net) => addr.copy_from_slice(&net.network().octets()),
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_laid_out_as_the_header_has_it() {
        let k = key(254, "10.1.2.3/24".parse().unwrap());
        assert_eq!(u32_at(&k, 0), 254);
        assert_eq!((k[4], k[5]), (2, 24));
        assert_eq!(
            &k[6..],
            [0, 0, 10, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        let k = key(100, "2001:db8::1/32".parse().unwrap());
        assert_eq!((k[4], k[5]), (10, 32));
        assert_eq!(&k[8..14], [0x20, 1, 0xd, 0xb8, 0, 0]);
    }

    #[test]
    fn a_kernel_without_the_driver_is_told_from_a_failure() {
        // with the driver there is one; what must not be is an error
        assert!(Reservation::open().is_ok());
    }
}
