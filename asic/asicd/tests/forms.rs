//! In which form frames of flow ports leave each port: an access port and a trunk by lists at stage FLOW_EGRESS alone, what the
//! API tells of them, and what a traced frame becomes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Bench, Driver, must, root};
use serde_json::{Value, json};
use tandem_abi::{Command, raw};

const UNTAGGED: u16 = raw::TND_FLOWS_FID;
const VID: u16 = 20;

/// The address of a host's interface.
fn mac(bench: &Bench, n: u8) -> [u8; 6] {
    let text = must(&format!(
        "ip netns exec {} cat /sys/class/net/h{n}/address",
        bench.host(n)
    ));
    tandem_firmware::platform::parse_mac(text.trim()).unwrap()
}

/// Hosts 1 and 3 without a tag, host 2 in VLAN 20: each is known in the domain of those who send to it.
fn flows(bench: &Bench, driver: &mut Driver) {
    for n in 1..=3 {
        driver.port_up(n, raw::TND_PORT_FLOWS | raw::TND_PORT_FLOWS_DROP);
    }
    driver.ok(&Command::create(&raw::tnd_port_set {
        set: 5,
        ports: tandem_pipeline::state::mask_of([1, 2, 3]),
        ..Default::default()
    }));
    for fid in [UNTAGGED, VID] {
        driver.ok(&Command::create(&raw::tnd_vlan {
            fid,
            flags: raw::TND_VLAN_FLOWS,
            ..Default::default()
        }));
        let all = (1..=3).map(|n| (mac(bench, n), u16::from(n), 0));
        for (mac, port, set) in all.chain([([0xff; 6], 0, 5)]) {
            driver.ok(&Command::create(&raw::tnd_fdb {
                fid,
                mac,
                port,
                set,
                flags: raw::TND_FDB_STATIC,
                ..Default::default()
            }));
        }
    }
}

/// A list of what leaves a port: what has this tag, or none, leaves with this VLAN id.
fn form(driver: &mut Driver, port: u16, has: Option<u16>, leaves: u16) {
    let table = u32::from(port);
    driver.ok(&Command::create(&raw::tnd_acl_table {
        stage: raw::TND_ACL_FLOW_EGRESS,
        table,
        ..Default::default()
    }));
    let mut rule = raw::tnd_acl_entry {
        table,
        priority: 1,
        action: raw::TND_ACL_PERMIT,
        flags: raw::TND_ACL_SET_VID,
        vid: leaves,
        ..Default::default()
    };
    match has {
        Some(vid) => (rule.key.tci, rule.mask.tci) = (vid, 0xfff),
        None => rule.mask.tag = u8::MAX,
    }
    driver.ok(&Command::create(&rule));
    driver.ok(&Command::update(&raw::tnd_acl_bind {
        port,
        stage: raw::TND_ACL_FLOW_EGRESS,
        table,
        ..Default::default()
    }));
}

#[test]
fn an_access_port_and_a_trunk() {
    if !root() {
        return;
    }
    let bench = Bench::new(3, &["--profile", "nxp-t1040"]);
    let mut driver = bench.driver(true);
    let (offered, accepted) = tandem_abi::handshake::features(driver.side.region());
    for features in [offered, accepted] {
        assert_ne!(features & raw::TND_FEAT_FLOW_EGRESS, 0);
    }
    flows(&bench, &mut driver);
    form(&mut driver, 2, None, VID);
    for port in [1, 3] {
        form(&mut driver, port, Some(VID), raw::TND_ACL_VID_NONE);
    }
    // How it reads
    let api = bench.api();
    let rows = |what: &str| -> Value { api.get::<Value>(what).unwrap()["items"].clone() };
    let lists = rows("/v1/table/acls");
    let list = json!({"table": 2, "stage": "flow_egress"});
    assert!(lists.as_array().unwrap().contains(&list), "{lists}");
    let bound = &rows("/v1/table/acl-binds")[1];
    assert_eq!(
        (&bound["dev"], &bound["stage"], &bound["table"]),
        (&json!("swp2"), &json!("flow_egress"), &json!(2))
    );
    let rules = rows("/v1/table/acl-rules");
    let rule = rules.as_array().unwrap().iter().find(|r| r["table"] == 1);
    assert_eq!(
        (&rule.unwrap()["match"], &rule.unwrap()["set_vid"]),
        (&json!({"vid": "20"}), &json!(4095))
    );
    let pools = rows("/v1/resources");
    let pools = pools.as_array().unwrap();
    let lines = pools.iter().find(|t| t["name"] == "es0-tcam").unwrap();
    assert_eq!((&lines["used"], &lines["size"]), (&json!(3), &json!(1024)));
    let bytes = [&[0xff; 6][..], &mac(&bench, 1), &[8, 6], &[0; 46]].concat();
    let frame: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    let body = json!({"port": "swp1", "frame": frame});
    let traced = api.post::<Value>("/v1/trace", &body).unwrap();
    assert_eq!(traced["egress"], json!(["swp3", "swp2"]));
    let said = traced["items"].as_array().unwrap();
    let said = said.iter().find(|s| s["stage"] == "flow_egress");
    assert_eq!(said.unwrap()["text"], "list 2, rule 1: VLAN 20, priority 0");
}
