// SPDX-License-Identifier: Apache-2.0
//! What daemons read, and when they are told.

use std::net::Ipv4Addr;

use tandem_swconfig::services::NtpServer;
use tandem_swconfig::{Interface, Kind, Name, Net};

use super::*;

fn config() -> Config {
    let mut config = Config::default();
    for number in 1..=3 {
        let name = Name {
            kind: Kind::Vlan,
            number,
        };
        let mut set = Interface::new(&name);
        set.shutdown = number == 2;
        set.ipv4 = (number != 3).then(|| Net {
            address: Ipv4Addr::new(10, 0, number as u8, 1),
            prefix: 24,
        });
        set.helpers = [Ipv4Addr::new(10, 9, 0, 1), Ipv4Addr::new(10, 9, 0, 2)].into();
        config.interfaces.insert(name, set);
    }
    let services = &mut config.services;
    services
        .ntp
        .insert(Ipv4Addr::new(10, 9, 0, 3), NtpServer::default());
    let prefer = NtpServer {
        iburst: true,
        prefer: true,
    };
    services.ntp.insert(Ipv4Addr::new(10, 9, 0, 4), prefer);
    services.snmp.communities.insert("public".into());
    services.domain = Some("example.org".into());
    services.snmp.location = Some("Rack 7, left".into());
    config
}

#[test]
fn what_is_set_is_what_they_read() {
    let texts = texts(&config(), &[]);
    // one that is shut, or has no address, asks nobody
    assert_eq!(
        texts["dhcp-relay"],
        "port=0\nno-hosts\nno-resolv\nno-ping\ndhcp-relay=10.0.1.1,10.9.0.1\ndhcp-relay=10.0.1.1,10.9.0.2\n"
    );
    assert_eq!(
        texts["ntp"],
        "server 10.9.0.3\nserver 10.9.0.4 iburst prefer\n"
    );
    assert!(texts["snmpd"].contains("\nsysName Switch.example.org\n"));
    assert!(texts["snmpd"].starts_with("agentaddress udp:161\n"));
    assert!(
        texts["snmpd"].ends_with("sysLocation Rack 7, left\nsysContact -\nrocommunity public\n")
    );
    assert!(
        super::texts(&Config::default(), &[])
            .values()
            .all(String::is_empty)
    );
}

fn flags(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder.join("services/changed")).unwrap();
    let mut names: Vec<String> = all
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for name in &names {
        fs::remove_file(folder.join("services/changed").join(name)).unwrap();
    }
    names
}

#[test]
fn whose_text_has_changed_is_told() {
    let folder = std::env::temp_dir().join(format!("tandem-services-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let services = Services::new(&folder, ports()).unwrap();
    services.set(&Config::default()).unwrap();
    assert_eq!(flags(&folder), [""; 0]);
    services.set(&config()).unwrap();
    assert_eq!(flags(&folder), ["dhcp-relay", "ntp", "snmpd"]);
    // another swcfgd finds it as it is to be
    let services = Services::new(&folder, ports()).unwrap();
    let mut other = config();
    services.set(&other).unwrap();
    assert_eq!(flags(&folder), [""; 0]);
    other.services.ntp.clear();
    services.set(&other).unwrap();
    assert_eq!(flags(&folder), ["ntp"]);
    assert!(!folder.join("services/ntp").exists());
    // what can't be written is refused, and what was is there again
    let before = fs::read_to_string(folder.join("services/dhcp-relay")).unwrap();
    fs::create_dir(folder.join("services/.snmpd.new")).unwrap();
    let mut more = Config::default();
    more.services.snmp.communities.insert("other".into());
    let why = services.set(&more).unwrap_err();
    assert!(
        why.starts_with("What daemons read can't be written: "),
        "{why}"
    );
    assert_eq!(
        fs::read_to_string(folder.join("services/dhcp-relay")).unwrap(),
        before
    );
    fs::remove_dir_all(folder).unwrap();
}

fn ports() -> Vec<lldp::Port> {
    let name = |number| Name {
        kind: Kind::Gigabit,
        number,
    };
    vec![("port1".into(), name(1)), ("port2".into(), name(2))]
}

#[test]
fn lldpd_is_told_of_ports_and_says_who_is_there() {
    let mut config = Config::default();
    assert_eq!(lldp::text(&config, &ports()), "");
    config.services.lldp = true;
    let text = lldp::text(&config, &ports());
    assert!(text.contains("\nconfigure system interface pattern port1,port2\n"));
    assert!(text.contains("\nconfigure ports port2 lldp portidsubtype local Gi1/0/2\n"));
    let said = r#"{"lldp":[{"interface":[
        {"name":"port2","chassis":[{"id":[{"type":"mac","value":"00:11:22:33:44:55"}],"name":[{"value":"b\nx"}],
         "mgmt-ip":[{"value":"10.0.0.1"},{"value":"no address"}],
         "capability":[{"type":"Bridge","enabled":true},{"type":"Wlan","enabled":false}]}],
         "port":[{"id":[{"type":"ifname","value":"Gi1/0/4"}],"ttl":[{"value":"120"}]}]},
        {"name":"eth9","chassis":[{}],"port":[{}]}, 5]}]}"#;
    let all = lldp::neighbours(said, &ports()).unwrap();
    let [one] = all.as_slice() else {
        panic!("a device that is none of ours: {all:?}")
    };
    assert_eq!(
        (one.port.as_str(), one.chassis.as_str()),
        ("Gi1/0/2", "0011.2233.4455")
    );
    assert_eq!(
        (one.name.as_deref(), one.port_id.as_str(), one.hold),
        (Some("b x"), "Gi1/0/4", 120)
    );
    assert_eq!(one.addresses, ["10.0.0.1"]);
    assert_eq!(
        one.capabilities,
        [("Bridge".into(), true), ("Wlan".into(), false)]
    );
    assert!(lldp::neighbours("{}", &ports()).unwrap().is_empty());
    assert!(lldp::neighbours("{", &ports()).is_err());
}
