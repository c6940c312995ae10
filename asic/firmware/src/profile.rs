//! Chip profiles: sizes, sharing, geometry, latency, ports, trap policers (`profiles/*.toml`).
//!
//! Those in the repository are part of the binary; any other is read from a path by the daemon and parsed here.

use crate::keys::FlowRows;
use crate::pools::PoolId;
use serde::{Deserialize, Serialize};
use tandem_abi::raw;
use tandem_pipeline::names::acl_stage;
use tandem_pipeline::state::AclStage;
use tandem_tables::exact::{Geometry, Widths};
use tandem_tables::tcam::Width;

/// The built-in profiles: name and text.
const BUILTIN: [(&str, &str); 7] = [
    ("tiny", include_str!("../../../profiles/tiny.toml")),
    (
        "spectrum-sn2700",
        include_str!("../../../profiles/spectrum-sn2700.toml"),
    ),
    (
        "spectrum-sn2100",
        include_str!("../../../profiles/spectrum-sn2100.toml"),
    ),
    (
        "nxp-t1040",
        include_str!("../../../profiles/nxp-t1040.toml"),
    ),
    (
        "arista-7500e",
        include_str!("../../../profiles/arista-7500e.toml"),
    ),
    (
        "jericho2-large",
        include_str!("../../../profiles/jericho2-large.toml"),
    ),
    ("scale", include_str!("../../../profiles/scale.toml")),
];

/// A profile that can't be used. One line: what was wanted, what is there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No built-in profile of that name.
    #[error("no profile {0:?} (built in: {1}; or give the path of a .toml file)")]
    Unknown(String, String),
    /// Not TOML, or not these fields.
    #[error("profile {0}: {1}")]
    Syntax(String, String),
    /// A number that can't be.
    #[error("profile {0}: {1}")]
    Value(String, String),
}

/// Exact-match memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Exact {
    /// Banks, each with a hash function of its own.
    pub banks: u32,
    /// Buckets of one bank.
    pub buckets_per_bank: u32,
    /// Slots of one bucket, 4 or 8.
    pub slots_per_bucket: u32,
    /// Slots of the overflow stash.
    pub stash: u32,
    /// Most entries that one insert may move.
    pub max_moves: u32,
    /// Slots of one entry of each kind.
    pub widths: Widths,
}

impl Exact {
    /// For [`tandem_tables::exact::ExactMatch::new`].
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        Geometry {
            banks: self.banks,
            buckets_per_bank: self.buckets_per_bank,
            slots_per_bucket: self.slots_per_bucket,
            stash: self.stash,
            max_moves: self.max_moves,
        }
    }
}

/// LPM memory of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LpmSize {
    /// Pool slots.
    pub size: u32,
    /// Slots of one prefix.
    pub cost: u32,
}

/// Pools that only count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PoolSizes {
    /// Router interfaces.
    pub rif: u32,
    /// Virtual routers beside VRF 0.
    pub vrf: u32,
    /// Forwarding domains.
    pub vlan: u32,
    /// (port, VLAN) memberships.
    pub vlan_member: u32,
    /// Next hops.
    pub nexthop: u32,
    /// Next-hop groups.
    pub nhg: u32,
    /// Members of next-hop groups, all groups together.
    pub nhg_member: u32,
    /// Most members of one group, at most `TND_NHG_MAX_MEMBERS`.
    pub nhg_max_members: u32,
    /// Link aggregation groups.
    #[serde(default)]
    pub lag: u32,
    /// Members of these, all groups together.
    #[serde(default)]
    pub lag_member: u32,
    /// Multicast groups.
    #[serde(default)]
    pub mdb: u32,
}

/// TCAM lines of one rule by the width of its key; 0: this memory holds no such rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AclWidths {
    /// Ethernet, tag and ingress port.
    pub l2: u32,
    /// IPv4 and transport.
    pub ipv4: u32,
    /// IPv6 and transport.
    pub ipv6: u32,
    /// MAC addresses together with IP.
    pub full: u32,
}

impl AclWidths {
    /// Of one width.
    #[must_use]
    pub fn of(&self, width: Width) -> u32 {
        match width {
            Width::L2 => self.l2,
            Width::Ip4 => self.ipv4,
            Width::Ip6 => self.ipv6,
            Width::Full => self.full,
        }
    }
}

/// One TCAM for rules.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AclTcam {
    /// Name of its pool, at most 31 bytes.
    pub name: String,
    /// Lines; 0 with `shares_lpm6`.
    #[serde(default)]
    pub size: u32,
    /// Rules lie among the IPv6 prefixes, in lines of that memory (seed 000 §2.7, figure 12).
    #[serde(default)]
    pub shares_lpm6: bool,
    /// Stages whose rules are here: `port`, `ingress`, `egress`, `flow`, `flow_class`, `flow_egress`.
    pub stages: Vec<String>,
    /// Lines of one rule.
    pub widths: AclWidths,
    /// What is different at the stages of flow ports.
    #[serde(default)]
    pub flow: FlowRows,
}

/// What a chip has for lists of rules. A profile without it has none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Acl {
    /// Lists.
    pub tables: u32,
    /// Counters.
    pub counters: u32,
    /// Range checkers for transport ports.
    pub ranges: u32,
    /// Policers.
    pub policers: u32,
    /// Mirror sessions.
    pub mirrors: u32,
    /// One to three memories; each stage is in one of them.
    pub tcam: Vec<AclTcam>,
}

impl Acl {
    /// Lines of a memory, by position.
    #[must_use]
    pub fn tcam_size(&self, at: usize) -> u32 {
        self.tcam
            .get(at)
            .filter(|t| !t.shares_lpm6)
            .map_or(0, |t| t.size)
    }

    /// The memory of a stage's rules, and its position. A stage without one has a memory that
    /// holds no rule.
    #[must_use]
    pub fn of_stage(&self, stage: AclStage) -> (usize, AclTcam) {
        let name = acl_stage(stage.to_abi());
        let all = self.tcam.iter().enumerate();
        all.filter(|(_, t)| t.stages.iter().any(|s| s == name))
            .map(|(at, t)| (at, t.clone()))
            .next()
            .unwrap_or((2, AclTcam::default()))
    }

    /// The profile's own name for a pool.
    #[must_use]
    pub fn name_of(&self, id: PoolId) -> Option<&str> {
        let at = match id {
            PoolId::Tcam => 0,
            PoolId::Tcam2 => 1,
            PoolId::Tcam3 => 2,
            _ => return None,
        };
        let named = self.tcam.get(at).filter(|t| !t.shares_lpm6);
        named.map(|t| t.name.as_str())
    }
}

/// What one access costs; used only if the latency model is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// A write, in ns.
    pub write_ns: u64,
    /// A query, in ns.
    pub query_ns: u64,
}

/// What a port's cage takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cage {
    /// Copper.
    Rj45,
    /// One lane.
    Sfp,
    /// Four lanes.
    Qsfp,
}

impl Cage {
    /// The ABI's number.
    #[must_use]
    pub fn to_abi(self) -> u16 {
        match self {
            Cage::Rj45 => raw::TND_CAGE_RJ45,
            Cage::Sfp => raw::TND_CAGE_SFP,
            Cage::Qsfp => raw::TND_CAGE_QSFP,
        }
    }
}

/// A run of equal front-panel ports.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PortRun {
    /// How many.
    pub count: u16,
    /// Kind of cage.
    pub cage: Cage,
    /// Lanes of each.
    pub lanes: u16,
    /// Into how many ports each can split: 1, 2, 4.
    pub breakout: Vec<u16>,
    /// Speed of the unsplit port.
    pub speed_mbps: u32,
}

/// What the system EEPROM says (seed 000 §6.4).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PlatformInfo {
    /// Vendor name.
    pub vendor: String,
    /// Product name.
    pub product: String,
    /// Part number.
    pub part_number: String,
    /// Serial number.
    pub serial: String,
    /// First MAC address, `aa:bb:cc:dd:ee:ff`.
    pub base_mac: String,
    /// MAC addresses from `base_mac` on.
    pub mac_count: u16,
}

/// How flows choose among the members of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FlowHashing {
    /// Both directions of a flow have one hash. IPv6 flow labels are left out of it then: each direction has its own.
    #[serde(default)]
    pub symmetric: bool,
}

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// Packets per second, 0 = no limit.
    pub rate_pps: u32,
    /// Packets at once.
    pub burst: u32,
}

/// The last policer of each trap class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TrapPolicers {
    /// `TND_TC_LINK`
    pub link: Policer,
    /// `TND_TC_CONTROL`
    pub control: Policer,
    /// `TND_TC_DISCOVERY`; a profile without it: as `link`
    #[serde(default)]
    pub discovery: Option<Policer>,
    /// `TND_TC_UNRESOLVED`
    pub unresolved: Policer,
    /// `TND_TC_DATA`
    pub data: Policer,
    /// `TND_TC_FLOW`; a profile without it: as `data`
    #[serde(default)]
    pub flow: Option<Policer>,
}

/// A chip. See the module.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name, at most 31 bytes.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// Exact-match memory.
    pub exact: Exact,
    /// IPv4 LPM.
    pub lpm4: LpmSize,
    /// IPv6 LPM.
    pub lpm6: LpmSize,
    /// Counted pools.
    pub pools: PoolSizes,
    /// Lists of rules.
    #[serde(default)]
    pub acl: Acl,
    /// Between ingress and egress.
    #[serde(default)]
    pub queues: crate::queues::Queues,
    /// Choice among the members of groups.
    #[serde(default)]
    pub hash: FlowHashing,
    /// Access times.
    pub latency: Latency,
    /// Front-panel ports, in order.
    pub ports: Vec<PortRun>,
    /// The board.
    pub platform: PlatformInfo,
    /// Last policers of the trap classes.
    pub traps: TrapPolicers,
}

impl Profile {
    /// Names of the built-in profiles.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        BUILTIN.iter().map(|(n, _)| *n).collect()
    }

    /// A built-in profile.
    ///
    /// # Errors
    /// [`ProfileError::Unknown`] lists those there are.
    pub fn builtin(name: &str) -> Result<Self, ProfileError> {
        match BUILTIN.iter().find(|(n, _)| *n == name) {
            Some((_, text)) => Self::parse(text, name),
            None => Err(ProfileError::Unknown(
                name.to_owned(),
                Self::names().join(", "),
            )),
        }
    }

    /// A profile from the text of a file; `origin` is named in errors.
    ///
    /// # Errors
    /// [`ProfileError`] names the field and what it must be.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ProfileError> {
        let p: Self = toml::from_str(text).map_err(|e| {
            ProfileError::Syntax(
                origin.to_owned(),
                e.to_string().replace('\n', " ").trim().to_owned(),
            )
        })?;
        p.check(origin)?;
        Ok(p)
    }

    fn check(&self, origin: &str) -> Result<(), ProfileError> {
        let bad = |s: String| Err(ProfileError::Value(origin.to_owned(), s));
        if self.name.is_empty() || self.name.len() >= raw::TND_NAME_SIZE {
            return bad(format!(
                "name has {} bytes, must have 1..31",
                self.name.len()
            ));
        }
        if self.port_count() == 0 || self.port_count() > 1024 {
            return bad(format!("{} ports, must be 1..1024", self.port_count()));
        }
        for r in &self.ports {
            if r.breakout.is_empty() || r.breakout.iter().any(|b| !matches!(b, 1 | 2 | 4)) {
                return bad(format!("breakout {:?}, must list 1, 2 or 4", r.breakout));
            }
        }
        if self.lpm4.cost == 0 || self.lpm6.cost == 0 {
            return bad("cost of a prefix is 0, must be at least 1".to_owned());
        }
        let p = &self.pools;
        if p.nhg_max_members == 0 || p.nhg_max_members as usize > raw::TND_NHG_MAX_MEMBERS {
            return bad(format!(
                "nhg_max_members is {}, must be 1..{}",
                p.nhg_max_members,
                raw::TND_NHG_MAX_MEMBERS
            ));
        }
        let limits = [
            ("lpm4.size", self.lpm4.size, 1 << 23),
            ("lpm6.size", self.lpm6.size, 1 << 23),
            (
                "pools.rif",
                p.rif,
                u32::from(tandem_pipeline::entry::MAX_RIF),
            ),
            ("pools.vrf", p.vrf, 4096),
            ("pools.vlan", p.vlan, 4095),
            ("pools.vlan_member", p.vlan_member, 1 << 22),
            ("pools.nexthop", p.nexthop, 1 << 20),
            ("pools.nhg", p.nhg, 1 << 20),
            ("pools.nhg_member", p.nhg_member, 1 << 22),
            ("pools.lag", p.lag, 1024),
            ("pools.lag_member", p.lag_member, 1 << 16),
            ("pools.mdb", p.mdb, 1 << 18),
        ];
        for (name, v, max) in limits {
            if v > max {
                return bad(format!("{name} is {v}, at most {max}"));
            }
        }
        let queues = self.queues.config(self.port_count()).map(|_| ());
        if let Err(e) = self.check_acl().and(queues) {
            return bad(e);
        }
        if let Err(e) = tandem_tables::exact::check(self.exact.geometry(), self.exact.widths) {
            return bad(e.to_string());
        }
        if crate::platform::parse_mac(&self.platform.base_mac).is_none() {
            return bad(format!(
                "base_mac {:?} is not aa:bb:cc:dd:ee:ff",
                self.platform.base_mac
            ));
        }
        if self.platform.mac_count < self.port_count() {
            return bad(format!(
                "mac_count is {} for {} ports",
                self.platform.mac_count,
                self.port_count()
            ));
        }
        Ok(())
    }

    fn check_acl(&self) -> Result<(), String> {
        let a = &self.acl;
        if a.tcam.len() > 3 {
            return Err(format!("{} acl.tcam, at most 3", a.tcam.len()));
        }
        let mut seen: Vec<&str> = Vec::new();
        for t in &a.tcam {
            if t.name.is_empty() || t.name.len() >= raw::TND_NAME_SIZE {
                return Err(format!(
                    "acl.tcam name has {} bytes, must have 1..31",
                    t.name.len()
                ));
            }
            if t.shares_lpm6 && t.size > 0 {
                return Err(format!(
                    "acl.tcam {}: shares_lpm6 has no size of its own",
                    t.name
                ));
            }
            for s in &t.stages {
                let known = AclStage::ALL.iter().any(|k| acl_stage(k.to_abi()) == s);
                if !known || seen.contains(&s.as_str()) {
                    return Err(format!(
                        "acl.tcam {}: stage {s:?}, must be port, ingress, egress, flow, flow_class or flow_egress, each once",
                        t.name
                    ));
                }
                seen.push(s);
            }
            let of_flows = [
                raw::TND_ACL_FLOW,
                raw::TND_ACL_FLOW_CLASS,
                raw::TND_ACL_FLOW_EGRESS,
            ]
            .map(acl_stage);
            let flows = t.stages.iter().any(|s| of_flows.contains(&s.as_str()));
            if !flows && t.flow != FlowRows::default() {
                return Err(format!(
                    "acl.tcam {}: rows of flow ports, and no stage \"flow\"",
                    t.name
                ));
            }
            if let Some(field) = t.flow.fields.senseless() {
                return Err(format!(
                    "acl.tcam {}: {field:?} of ARP, which has no field but src_mac and dst_mac",
                    t.name
                ));
            }
        }
        let limits = [
            ("acl.tables", a.tables, 1 << 16),
            ("acl.counters", a.counters, 1 << 20),
            ("acl.ranges", a.ranges, 1 << 16),
            ("acl.policers", a.policers, 1 << 20),
            ("acl.mirrors", a.mirrors, 1 << 10),
        ];
        let sizes = a.tcam.iter().map(|t| ("acl.tcam.size", t.size, 1 << 20));
        match limits.into_iter().chain(sizes).find(|(_, v, max)| v > max) {
            Some((name, v, max)) => Err(format!("{name} is {v}, at most {max}")),
            None => Ok(()),
        }
    }

    /// `TND_FEAT_*` that the chip has beside those of every chip.
    #[must_use]
    pub fn features(&self) -> u64 {
        let class = match self.classifies_flows() {
            true => raw::TND_FEAT_FLOW_CLASS,
            false => 0,
        };
        let egress = match self.forms_flows() {
            true => raw::TND_FEAT_FLOW_EGRESS,
            false => 0,
        };
        let common = raw::TND_FEAT_FLOWS | raw::TND_FEAT_FLOW_MEMBERS | raw::TND_FEAT_FLOW_FIDS;
        match self.has_stage(AclStage::Flow) {
            true => common | class | egress,
            false => 0,
        }
    }

    fn has_stage(&self, stage: AclStage) -> bool {
        let (_, memory) = self.acl.of_stage(stage);
        !memory.stages.is_empty()
    }

    /// Can lists classify frames of flow ports?
    #[must_use]
    pub fn classifies_flows(&self) -> bool {
        self.has_stage(AclStage::Flow) && self.has_stage(AclStage::FlowClass)
    }

    /// Can lists say in which form frames of flow ports leave each port?
    #[must_use]
    pub fn forms_flows(&self) -> bool {
        self.has_stage(AclStage::Flow) && self.has_stage(AclStage::FlowEgress)
    }

    /// Front-panel ports.
    #[must_use]
    pub fn port_count(&self) -> u16 {
        self.ports
            .iter()
            .fold(0u16, |n, r| n.saturating_add(r.count))
    }

    /// Last policer of a class (`TND_TC_*`).
    #[must_use]
    pub fn class_policer(&self, class: u16) -> Policer {
        match class {
            raw::TND_TC_LINK => self.traps.link,
            raw::TND_TC_CONTROL => self.traps.control,
            raw::TND_TC_DISCOVERY => self.traps.discovery.unwrap_or(self.traps.link),
            raw::TND_TC_FLOW => self.traps.flow.unwrap_or(self.traps.data),
            raw::TND_TC_UNRESOLVED => self.traps.unresolved,
            _ => self.traps.data,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_profiles_parse_and_bear_their_names() {
        for name in Profile::names() {
            let p = Profile::builtin(name).unwrap();
            assert_eq!(p.name, name);
        }
        assert_eq!(
            Profile::builtin("tiny").unwrap().exact.geometry().size(),
            32
        );
        assert_eq!(
            Profile::builtin("spectrum-sn2700")
                .unwrap()
                .exact
                .geometry()
                .size(),
            87040
        );
        assert_eq!(
            Profile::builtin("arista-7500e")
                .unwrap()
                .exact
                .geometry()
                .size(),
            262_144
        );
        assert!(Profile::builtin("jericho2-large").unwrap().lpm4.size >= 1_200_000);
    }

    #[test]
    fn errors_are_one_line_that_says_what_to_do() {
        let e = Profile::builtin("nope").unwrap_err().to_string();
        assert!(
            e.starts_with("no profile \"nope\" (built in: tiny, "),
            "{e}"
        );
        let text = BUILTIN[0].1.replace("cost = 1", "cost = 0");
        let e = Profile::parse(&text, "x.toml").unwrap_err().to_string();
        assert_eq!(
            e,
            "profile x.toml: cost of a prefix is 0, must be at least 1"
        );
        let e = Profile::parse("name = 3", "x.toml")
            .unwrap_err()
            .to_string();
        assert!(!e.contains('\n'), "{e}");
        let text = BUILTIN[0]
            .1
            .replace("slots_per_bucket = 4", "slots_per_bucket = 5");
        let e = Profile::parse(&text, "x.toml").unwrap_err().to_string();
        assert_eq!(
            e,
            "profile x.toml: exact-match geometry: slots_per_bucket is 5, must be 4 or 8"
        );
        // what would be of no account
        let rows = |from: &str, to: &str| {
            let text = of("nxp-t1040").replace(from, to);
            Profile::parse(&text, "x.toml").unwrap_err().to_string()
        };
        assert_eq!(
            rows(r#"["ingress", "flow"]"#, r#"["ingress"]"#),
            "profile x.toml: acl.tcam is2-tcam: rows of flow ports, and no stage \"flow\""
        );
        assert_eq!(
            rows(r#"arp = ["src_mac"]"#, r#"arp = ["src_mac", "src_ip"]"#),
            "profile x.toml: acl.tcam is2-tcam: SrcIp of ARP, which has no field but src_mac and dst_mac"
        );
    }

    fn of(name: &str) -> &'static str {
        BUILTIN.iter().find(|b| b.0 == name).unwrap().1
    }

    #[test]
    fn flow_ports_without_a_policer_have_that_of_data() {
        let text = of("nxp-t1040");
        let at = text.find("[traps.flow]").unwrap();
        let end = text[at + 1..]
            .find("\n[")
            .map_or(text.len(), |n| at + 1 + n);
        let text = [&text[..at], &text[end..]].concat();
        let p = Profile::parse(&text, "x.toml").unwrap();
        assert_eq!(p.traps.flow, None);
        let [flow, data] = [raw::TND_TC_FLOW, raw::TND_TC_DATA].map(|c| p.class_policer(c));
        assert_eq!(flow, data);
    }
}
