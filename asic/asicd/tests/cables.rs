//! All kinds of cables on one asicd: netdev with jumbo frames, TAP, pcap; and routing between them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Bench, eventually, must, root, sh};
use serde_json::Value;
use tandem_abi::{Command, raw};

/// ```text
///   h1 (netdev) ─ swp1 ┐        ┌ swp3 ─ tap tt in ns h2, 10.7.0.3
///                      ├ asicd ─┤
///   h2 (netdev) ─ swp2 ┘        ├ swp4 ─ capture in, its link goes down at its end
///                               └ swp5 ─ capture out, its link stays up
/// ```
#[test]
fn tap_and_capture_take_part_in_the_bridge() {
    if !root() {
        return;
    }
    let mut bench = Bench::cold(2, &[]);
    bench.pair(1);
    bench.pair(2);
    let files = std::env::temp_dir().join(format!("{}-pcap", bench.name));
    std::fs::create_dir_all(&files).unwrap();
    let (input, output) = (files.join("in.pcap"), files.join("out.pcap"));
    // Two broadcasts, 300 ms apart; and two of which the second one is not played: the link is up for as long as it takes
    let endless = files.join("endless.pcap");
    for (path, station, apart_ns) in [
        (&input, 0x44, 300_000_000),
        (&endless, 0x45, 86_400_000_000_000),
    ] {
        let mut capture = tandem_ports::pcap::file_header().to_vec();
        for n in 0..2u64 {
            let mut frame = vec![0xff; 6];
            frame.extend([2, 0, 0, 0, 0, station, 0x12, 0x34]);
            frame.extend([n as u8; 46]);
            let header = tandem_ports::pcap::record_header(n * apart_ns, frame.len());
            capture.extend(header);
            capture.extend(frame);
        }
        std::fs::write(path, capture).unwrap();
    }
    bench.add_port(&format!("swp3=tap:tt@{}", bench.host(2)));
    bench.add_port(&format!(
        "swp4=pcap:{},{},timed",
        input.display(),
        files.join("unread.pcap").display()
    ));
    bench.add_port(&format!(
        "swp5=pcap:{},{},timed",
        endless.display(),
        output.display()
    ));
    let mut bench = bench.start();
    must(&format!(
        "ip -n {0} addr add 10.7.0.3/24 dev tt && ip -n {0} link set tt up && \
         ip -n {0} addr del 10.7.0.2/24 dev h2",
        bench.host(2)
    ));
    let mut driver = bench.driver(true);
    driver.vlan(1);
    // h1 last: all others have what it asks for
    for port in (1..=5).rev() {
        driver.member_any(port, 1);
        driver.port_up(port, 0);
    }
    eventually("the TAP answers", || bench.ping(1, 3, "-c 1"));
    must(&bench.echoes(1, 20, "0.01", "-s 1400 10.7.0.3"));

    // The capture was played in its own time, then its link went down
    eventually("the end of the capture", || {
        let rows: Value = bench.api().get("/v1/ports").unwrap();
        rows["items"][3]["link"] == false
    });
    let fdb: Value = bench.api().get("/v1/table/fdb").unwrap();
    let learned = fdb["items"]
        .as_array()
        .unwrap()
        .iter()
        .any(|r| r["mac"] == "02:00:00:00:00:44" && r["dev"] == "swp4");
    assert!(learned, "{fdb}");
    assert!(bench.stop());
    let written = std::fs::read(&output).unwrap();
    let mut reader = tandem_ports::pcap::Reader::new(&written[..]).unwrap();
    let mut buf = vec![0; 70_000];
    let mut arp = 0;
    while let Some((_, len)) = reader.next(&mut buf).unwrap() {
        assert!(len <= 1518);
        arp += usize::from(buf[12..14] == [8, 6]);
    }
    assert!(arp > 0, "flooded frames were written");
    std::fs::remove_dir_all(files).unwrap();
}

#[test]
fn jumbo_and_double_tagged_frames_pass() {
    if !root() {
        return;
    }
    let mut bench = Bench::new(2, &[]);
    let mut driver = bench.driver(true);
    driver.vlan(1);
    for port in [1, 2] {
        driver.member_any(port, 1);
        driver.ok(&Command::update(&raw::tnd_port {
            port,
            flags: raw::TND_PORT_UP
                | raw::TND_PORT_LEARNING
                | raw::TND_PORT_FLOOD_UC
                | raw::TND_PORT_FLOOD_BC,
            mtu: 9000,
            stp_state: raw::TND_STP_FORWARDING,
            ..Default::default()
        }));
        must(&format!(
            "ip -n {} link set h{port} mtu 9000",
            bench.host(port as u8)
        ));
    }
    assert!(bench.reaches(1, 2, "-c 2 -i 0.1 -M do -s 8900"));
    // Two tags before a full payload: 1522 bytes
    let raw_socket = |n: u8| {
        tandem_linux::netns::run_in_named(Some(&bench.host(n)), || {
            let index = tandem_linux::ifreq::ControlSocket::open()?
                .link(&format!("h{n}"))?
                .ifindex;
            tandem_linux::packet_socket::open(index, 1500)
        })
        .unwrap()
    };
    let (mut rx, _) = raw_socket(2);
    let (_, mut tx) = raw_socket(1);
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 0x55]);
    frame.extend([0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 0x12, 0x34]);
    frame.extend([0x5a; 1500]);
    tx.queue(&[0; 10], &frame);
    tx.flush();
    let mut scratch = vec![0; 70_000];
    eventually("a full double-tagged frame", || {
        let mut seen = false;
        rx.receive(64, &mut scratch, 64, &mut |f| {
            seen |= f.tag == Some((0x88a8, 5)) && f.mem[f.start + 12..f.end] == frame[16..];
        });
        seen
    });
    // The port's MTU is the switch's own limit, not the netdev's
    driver.port_up(2, 0);
    assert!(!bench.ping(1, 2, "-c 1 -M do -s 8900"));
    let mtu = must(&format!("ip -n {} -o link show p1", bench.ns("sw")));
    assert!(mtu.contains("mtu 9216"), "{mtu}");
    assert!(bench.stop());
    let mtu = must(&format!("ip -n {} -o link show p1", bench.ns("sw")));
    assert!(mtu.contains("mtu 1500"), "{mtu}");
}

/// ```text
///   h1 10.7.0.1 ─ swp1 ─ asicd ─ swp2 ─ h2 10.8.0.2
/// ```
#[test]
fn routed_streams_with_default_offloads() {
    if !root() {
        return;
    }
    let bench = Bench::new(2, &[]);
    let mut driver = bench.driver(true);
    let (h1, h2) = (bench.host(1), bench.host(2));
    let mac = |ns: &str, dev: &str| -> [u8; 6] {
        let text = must(&format!(
            "ip netns exec {ns} cat /sys/class/net/{dev}/address"
        ));
        let bytes: Vec<u8> = text
            .trim()
            .split(':')
            .map(|b| u8::from_str_radix(b, 16).unwrap())
            .collect();
        bytes.try_into().unwrap()
    };
    must(&format!(
        "ip -n {h2} addr flush dev h2 && ip -n {h2} addr add 10.8.0.2/24 dev h2 && \
         ip -n {h1} route add 10.8.0.0/24 via 10.7.0.254 && \
         ip -n {h2} route add 10.7.0.0/24 via 10.8.0.254 && \
         ip -n {h1} neigh add 10.7.0.254 lladdr 02:00:00:00:00:01 dev h1 && \
         ip -n {h2} neigh add 10.8.0.254 lladdr 02:00:00:00:00:02 dev h2"
    ));
    for port in [1u16, 2] {
        driver.port_up(port, 0);
        driver.ok(&Command::create(&raw::tnd_rif {
            rif: port,
            kind: raw::TND_RIF_PORT,
            port,
            mac: [2, 0, 0, 0, 0, port as u8],
            flags: raw::TND_RIF_V4,
            mtu: 1500,
            ..Default::default()
        }));
        let mut addr = [0; 16];
        addr[..4].copy_from_slice(&[10, 6 + port as u8, 0, port as u8]);
        driver.ok(&Command::create(&raw::tnd_neigh {
            rif: port,
            family: raw::TND_AF_INET,
            action: raw::TND_ACT_FORWARD,
            mac: mac(&bench.host(port as u8), &format!("h{port}")),
            addr,
            ..Default::default()
        }));
    }
    let ping = must(&bench.echoes(1, 3, "0.1", "10.8.0.2"));
    assert_eq!(ping.matches("ttl=63").count(), 3, "{ping}");
    let server = std::process::Command::new("ip")
        .args(["netns", "exec", &h2, "timeout", "120", "python3", "-c"])
        .arg("import socket\ns=socket.create_server(('10.8.0.2',7000))\nc,_=s.accept()\nn=0\nwhile True:\n d=c.recv(1<<16)\n if not d: break\n n+=len(d)\nprint(n)")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    eventually("a server", || {
        sh(&format!("ip netns exec {h2} ss -lnt | grep -q 7000"))
    });
    must(&format!(
        "ip netns exec {h1} timeout 120 python3 -c \"import socket\nc=socket.create_connection(('10.8.0.2',7000))\nfor i in range(256): c.sendall(bytes(65536))\nc.close()\""
    ));
    let out = server.wait_with_output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&out.stdout).trim(),
        (256 * 65536).to_string()
    );
    let traps: Value = bench.api().get("/v1/traps").unwrap();
    let classes = traps["classes"].as_array().unwrap();
    let data = classes.iter().find(|c| c["class"] == "data").unwrap();
    assert_eq!(data["packets"], 0, "the stream stayed in the chip: {traps}");
}
