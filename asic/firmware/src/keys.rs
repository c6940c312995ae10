//! What the rows of flow ports can ask for and do, as a profile tells it: a chip whose keys have only some of a packet's fields. Of rows
//! that classify, which always write all that they can, the same but for the last two. Of
//! rows for the form in which frames leave a port `widths` and `group_bits` alone: their keys are everywhere the same.
//!
//! ```toml
//! [acl.tcam.flow]                 # of a memory that has stage "flow", "flow_class" or "flow_egress"; without it: every field, and one port
//! widths = { … }                  # where not those of the other stages
//! fields = { arp = ["src_mac"] }  # of rows with this EtherType (RARP has ARP's); `ipv4`, `ipv6` as well; not named: all
//! group_bits = true               # keys without the destination address know whether it is a group, or broadcast
//! port_protocols = [6, 17]        # rows on ports ask for one of these protocols; empty: for any or none
//! port_sets = true                # rows send to several ports
//! rewrites = false                # rows write VID and priority
//! ```

use crate::objects::acl_entry::{ETHERTYPE_IP4, ETHERTYPE_IP6};
use crate::profile::AclWidths;
use serde::{Deserialize, Serialize};
use tandem_abi::raw;
use tandem_tables::tcam::{Match, Width, word};
use zerocopy::IntoBytes;

/// A field of a key. Ingress port, tag and EtherType every row can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Field {
    SrcMac,
    DstMac,
    SrcIp,
    DstIp,
    Protocol,
    Tos,
    Ttl,
    Fragment,
    TcpFlags,
    /// Of TCP, UDP and SCTP; type and code of ICMP.
    Ports,
}

/// Fields of a row by its EtherType.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Fields {
    #[serde(default)]
    pub arp: Option<Vec<Field>>,
    #[serde(default)]
    pub ipv4: Option<Vec<Field>>,
    #[serde(default)]
    pub ipv6: Option<Vec<Field>>,
}

impl Fields {
    /// A field that rows of ARP can't ask for, whatever a profile says: the ABI has those of IP behind IP's EtherTypes alone.
    pub(crate) fn senseless(&self) -> Option<Field> {
        let mac = |f: &&Field| matches!(f, Field::SrcMac | Field::DstMac);
        self.arp.iter().flatten().find(|f| !mac(f)).copied()
    }
}

/// Keys and actions of a memory's rows at stage `flow`. See the module.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlowRows {
    /// Lines of one row, where not as at the other stages.
    pub widths: Option<AclWidths>,
    /// What rows of an EtherType can ask for.
    pub fields: Fields,
    /// *A group*, *broadcast*, or neither need no destination address.
    pub group_bits: bool,
    /// Protocols of rows on ports.
    pub port_protocols: Vec<u8>,
    /// To several ports.
    pub port_sets: bool,
    /// VID and priority.
    pub rewrites: bool,
}

impl Default for FlowRows {
    fn default() -> Self {
        Self {
            widths: None,
            fields: Fields::default(),
            group_bits: false,
            port_protocols: Vec::new(),
            port_sets: false,
            rewrites: true,
        }
    }
}

const ETHERTYPE_ARP: u16 = 0x0806;
/// In the VSC9953's key of ARP, with a bit of its own.
const ETHERTYPE_RARP: u16 = 0x8035;

/// The group bit alone.
const GROUP: u64 = 1 << 40;
/// Every bit of an address.
const ALL: u64 = (1 << 48) - 1;

/// Of a tag: what rows for the form of a frame can't ask for.
const TCI_CFI: u16 = 1 << 12;

fn number(mac: [u8; 6]) -> u64 {
    mac.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// Does a match on a destination ask for no more than *a group*, *no group* or *broadcast*?
fn group_bits(value: u64, mask: u64) -> bool {
    mask == GROUP || (value, mask) == (ALL, ALL)
}

impl FlowRows {
    /// How wide a row's key is here.
    pub(crate) fn width(&self, what: &Match) -> Width {
        let mut what = *what;
        // The group that it was classified into has a place in every key
        what.mask[word::SRC_MAC] &= ALL;
        if self.group_bits && group_bits(what.value[word::DST_MAC], what.mask[word::DST_MAC]) {
            (what.value[word::DST_MAC], what.mask[word::DST_MAC]) = (0, 0);
        }
        what.width()
    }

    /// Can the keys ask for what a row in normal form asks for, and its action do what it does?
    pub(crate) fn has(&self, e: &raw::tnd_acl_entry) -> bool {
        let sets = e.flags & (raw::TND_ACL_SET_VID | raw::TND_ACL_SET_PCP) != 0;
        let several = e.action == raw::TND_ACL_REDIRECT_PORTS;
        self.has_fields(e)
            && self.has_ports(e)
            && (self.rewrites || !sets)
            && (self.port_sets || !several)
            && e.action != raw::TND_ACL_REDIRECT_NEXTHOP
    }

    /// The same of a row that classifies.
    pub(crate) fn classifies(&self, e: &raw::tnd_acl_entry) -> bool {
        let may = matches!(e.action, raw::TND_ACL_PERMIT | raw::TND_ACL_TRAP);
        let names = (e.counter, e.policer, e.mirror) != (0, 0, 0);
        self.has_fields(e) && self.has_ports(e) && may && !names && e.mask.group == 0
    }

    /// The same of a row for the form in which frames leave a port: it asks for the port that they came in by, the VLAN id and the
    /// priority that they have on their way, or for none, and whether they are to a group. ES0 of the VSC9953 has, beside
    /// these, the drop precedence, which no frame here has (Linux, seville_vsc9953.c, `vsc9953_vcap_es0_keys`).
    pub(crate) fn forms(&self, e: &raw::tnd_acl_entry) -> bool {
        let may = matches!(e.action, raw::TND_ACL_PERMIT | raw::TND_ACL_TRAP);
        let names = (e.counter, e.policer, e.mirror) != (0, 0, 0);
        let writes = e.flags & raw::TND_ACL_SET_DSCP == 0 && e.group == 0;
        let (mask, tag) = (e.mask, (e.key.tag, e.mask.tag));
        let dst = number(mask.dst_mac);
        let group = dst == 0 || self.group_bits && group_bits(number(e.key.dst_mac), dst);
        let asks = raw::tnd_acl_key {
            port: 0,
            tci: mask.tci & TCI_CFI,
            tag: 0,
            dst_mac: [0; 6],
            ..mask
        };
        let none = matches!(tag, (_, 0) | (raw::TND_ACL_UNTAGGED, u8::MAX));
        may && !names && writes && group && none && !on_ports(e) && asks == Default::default()
    }

    fn has_fields(&self, e: &raw::tnd_acl_entry) -> bool {
        let fields = match e.key.ethertype {
            _ if e.mask.ethertype != u16::MAX => return true,
            ETHERTYPE_ARP | ETHERTYPE_RARP => &self.fields.arp,
            ETHERTYPE_IP4 => &self.fields.ipv4,
            ETHERTYPE_IP6 => &self.fields.ipv6,
            _ => return true,
        };
        let Some(fields) = fields else { return true };
        let mut allowed = raw::tnd_acl_key {
            ethertype: u16::MAX,
            tci: u16::MAX,
            port: u16::MAX,
            tag: u8::MAX,
            group: u8::MAX,
            ..Default::default()
        };
        for field in fields {
            match field {
                Field::SrcMac => allowed.src_mac = [u8::MAX; 6],
                Field::DstMac => allowed.dst_mac = [u8::MAX; 6],
                Field::SrcIp => allowed.src_ip = [u8::MAX; 16],
                Field::DstIp => allowed.dst_ip = [u8::MAX; 16],
                Field::Protocol => allowed.protocol = u8::MAX,
                Field::Tos => allowed.tos = u8::MAX,
                Field::Ttl => allowed.ttl = u8::MAX,
                Field::Fragment => allowed.fragment = u8::MAX,
                Field::TcpFlags => allowed.tcp_flags = u8::MAX,
                Field::Ports => (allowed.src_port, allowed.dst_port) = (u16::MAX, u16::MAX),
            }
        }
        let mut mask = e.mask;
        if self.group_bits && group_bits(number(e.key.dst_mac), number(mask.dst_mac)) {
            mask.dst_mac = [0; 6];
        }
        let ports = fields.contains(&Field::Ports) || !on_ports(e);
        let within = |(m, a): (&u8, &u8)| m & !a == 0;
        ports && mask.as_bytes().iter().zip(allowed.as_bytes()).all(within)
    }

    fn has_ports(&self, e: &raw::tnd_acl_entry) -> bool {
        let named = e.mask.protocol == u8::MAX && self.port_protocols.contains(&e.key.protocol);
        named || self.port_protocols.is_empty() || !on_ports(e)
    }
}

/// Does the row look at ports, by key or by range?
fn on_ports(e: &raw::tnd_acl_entry) -> bool {
    let keys = [
        e.mask.src_port,
        e.mask.dst_port,
        e.src_port_max,
        e.dst_port_max,
    ];
    keys != [0; 4] || (e.src_range, e.dst_range) != (0, 0)
}
