//! Rows of lists of rules and of what rules refer to.

use serde_json::{Map, Value, json};
use tandem_abi::raw;
use tandem_pipeline::names::{acl_action, acl_stage};
use tandem_pipeline::trap::trap_class_name;

use super::table::{address, flags, mac, masked, swp};

pub fn table(o: &raw::tnd_acl_table, _: &[u8]) -> Value {
    json!({ "table": o.table, "stage": acl_stage(o.stage) })
}

pub fn bind(o: &raw::tnd_acl_bind, _: &[u8]) -> Value {
    json!({
        "port": o.port,
        "dev": swp(o.port),
        "stage": acl_stage(o.stage),
        "table": (o.table != 0).then_some(o.table),
        "flags": flags(o.flags.into(), &[(raw::TND_ACL_BIND_TRAP_ALL.into(), "trap_all")]),
    })
}

pub fn counter(o: &raw::tnd_acl_counter, _: &[u8]) -> Value {
    json!({ "counter": o.counter, "packets": o.packets, "bytes": o.bytes, "used_ns": o.used_ns })
}

pub fn range(o: &raw::tnd_acl_range, _: &[u8]) -> Value {
    let source = o.field == raw::TND_ACL_RANGE_SRC;
    json!({
        "range": o.range,
        "field": if source { "src_port" } else { "dst_port" },
        "min": o.min,
        "max": o.max,
    })
}

pub fn policer(o: &raw::tnd_policer, _: &[u8]) -> Value {
    let packets = o.flags & raw::TND_POLICER_PACKETS != 0;
    json!({
        "policer": o.policer,
        "unit": if packets { "packets" } else { "bytes" },
        "rate": o.rate,
        "burst": o.burst,
        "passed": o.passed,
        "dropped": o.dropped,
    })
}

pub fn mirror(o: &raw::tnd_mirror, _: &[u8]) -> Value {
    json!({
        "mirror": o.mirror,
        "port": o.port,
        "dev": if o.port == 0 { json!("cpu") } else { swp(o.port) },
        "truncate": o.truncate,
        "rate": o.rate.max(1),
        "packets": o.packets,
    })
}

pub fn rule(o: &raw::tnd_acl_entry, _: &[u8]) -> Value {
    let some = |id: u32| (id != 0).then_some(id);
    let target = match o.action {
        raw::TND_ACL_REDIRECT_PORT => swp(o.target as u16),
        raw::TND_ACL_REDIRECT_NEXTHOP => json!(o.target),
        raw::TND_ACL_REDIRECT_PORTS => masked(&o.ports).into(),
        _ => Value::Null,
    };
    let on = |flag| o.flags & flag != 0;
    json!({
        "table": o.table,
        "priority": o.priority,
        "match": matched(o),
        "action": acl_action(o.action),
        "target": target,
        "trap_class": on(raw::TND_ACL_TRAP_CLASS).then(|| trap_class_name(o.trap_class)),
        "set_vid": on(raw::TND_ACL_SET_VID).then_some(o.vid),
        "set_pcp": on(raw::TND_ACL_SET_PCP).then_some(o.pcp),
        "set_dscp": on(raw::TND_ACL_SET_DSCP).then_some(o.dscp),
        "group": some(o.group.into()),
        "counter": some(o.counter),
        "policer": some(o.policer),
        "mirror": some(o.mirror.into()),
    })
}

/// Fields that count, by name; `value/mask` where not all bits do.
fn matched(o: &raw::tnd_acl_entry) -> Value {
    let (k, m) = (&o.key, &o.mask);
    let mut out = Map::new();
    let mut number = |name: &str, value: u64, mask: u64, all: u64, hex: bool| {
        let text = |n: u64| {
            if hex {
                format!("{n:#06x}")
            } else {
                n.to_string()
            }
        };
        if mask == all {
            out.insert(name.into(), json!(text(value)));
        } else if mask != 0 {
            out.insert(name.into(), json!(format!("{}/{mask:#x}", text(value))));
        }
    };
    let wide = u64::from(u16::MAX);
    number(
        "ethertype",
        k.ethertype.into(),
        m.ethertype.into(),
        wide,
        true,
    );
    number("tag", k.tag.into(), m.tag.into(), 255, false);
    number(
        "vid",
        u64::from(k.tci & 0xfff),
        u64::from(m.tci & 0xfff),
        0xfff,
        false,
    );
    number(
        "pcp",
        u64::from(k.tci >> 13),
        u64::from(m.tci >> 13),
        7,
        false,
    );
    number("port", k.port.into(), m.port.into(), wide, false);
    number("protocol", k.protocol.into(), m.protocol.into(), 255, false);
    number("tos", k.tos.into(), m.tos.into(), 255, false);
    number("ttl", k.ttl.into(), m.ttl.into(), 255, false);
    number(
        "tcp_flags",
        k.tcp_flags.into(),
        m.tcp_flags.into(),
        255,
        true,
    );
    number("group", k.group.into(), m.group.into(), 255, false);
    number("fragment", k.fragment.into(), m.fragment.into(), 255, false);
    number(
        "src_port",
        k.src_port.into(),
        m.src_port.into(),
        wide,
        false,
    );
    number(
        "dst_port",
        k.dst_port.into(),
        m.dst_port.into(),
        wide,
        false,
    );
    let ranges = [
        ("src_port", o.src_port_min, o.src_port_max),
        ("dst_port", o.dst_port_min, o.dst_port_max),
    ];
    for (name, low, high) in ranges.into_iter().filter(|r| r.2 != 0) {
        out.insert(name.into(), json!(format!("{low}-{high}")));
    }
    for (name, id) in [("src_range", o.src_range), ("dst_range", o.dst_range)] {
        if id != 0 {
            out.insert(name.into(), json!(id));
        }
    }
    for (name, value, mask) in [
        ("dst_mac", &k.dst_mac, &m.dst_mac),
        ("src_mac", &k.src_mac, &m.src_mac),
    ] {
        if *mask == [0xff; 6] {
            out.insert(name.into(), json!(mac(value)));
        } else if *mask != [0; 6] {
            out.insert(name.into(), json!(format!("{}/{}", mac(value), mac(mask))));
        }
    }
    let v6 = k.ethertype == 0x86dd;
    let (family, bits) = if v6 {
        (raw::TND_AF_INET6, 128)
    } else {
        (raw::TND_AF_INET, 32)
    };
    for (name, value, mask) in [
        ("dst_ip", &k.dst_ip, &m.dst_ip),
        ("src_ip", &k.src_ip, &m.src_ip),
    ] {
        let number = u128::from_be_bytes(*mask);
        let len = number.leading_ones();
        if number == 0 {
            continue;
        }
        let prefix = number.count_ones() == len;
        let value = address(family, value);
        let text = match len {
            _ if !prefix => format!("{value}/{}", address(family, mask)),
            len if len == bits => value,
            len => format!("{value}/{len}"),
        };
        out.insert(name.into(), json!(text));
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_reads_as_people_write_it() {
        let mut e = raw::tnd_acl_entry {
            table: 3,
            priority: 10,
            action: raw::TND_ACL_DROP,
            dst_port_min: 80,
            dst_port_max: 90,
            counter: 5,
            ..Default::default()
        };
        (e.key.ethertype, e.mask.ethertype) = (0x0800, u16::MAX);
        e.key.dst_ip[..4].copy_from_slice(&[10, 1, 0, 0]);
        e.mask.dst_ip[..2].fill(0xff);
        (e.key.tci, e.mask.tci) = (7, 0x0fff);
        let row = rule(&e, &[]);
        assert_eq!(
            row["match"],
            json!({"ethertype": "0x0800", "vid": "7", "dst_port": "80-90", "dst_ip": "10.1.0.0/16"})
        );
        assert_eq!(
            (&row["action"], &row["counter"]),
            (&json!("drop"), &json!(5))
        );
        assert_eq!(
            rule(&raw::tnd_acl_entry::default(), &[])["match"],
            json!({})
        );
    }
}
