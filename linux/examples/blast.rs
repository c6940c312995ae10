//! A flood for tests: frames out of an interface as fast as the kernel can send them, with XDP live frames.
//!
//! ```text
//!  this thread ──BPF_PROG_TEST_RUN──► redirect ──► eth0 ═ veth ═ p1 (GRO on: it needs a NAPI ring) ──► the switch
//! ```
//!
//! `blast DEV PEER_NETNS PEER_DEV DST_MAC SRC_IP DST_IP FLOWS SECONDS`, in the namespace of DEV. The flows go to FLOWS
//! addresses from DST_IP on, one after the other in bursts. Prints how many frames were sent and in how many seconds.
//!
//! `blast DEV PEER_NETNS PEER_DEV FRAME[,FRAME…] SECONDS` sends these frames, in hexadecimal digits, instead.

use std::error::Error;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tandem_linux::{ifreq::ControlSocket, netns, xdp_flood};

/// Frames of one flow in a row: each call makes a page pool and waits for its end, tens of milliseconds.
const BURST: u32 = 100_000;

/// RFC 1071, over an even number of bytes.
fn checksum(data: &[u8]) -> u16 {
    let mut sum: u32 = data
        .chunks_exact(2)
        .map(|p| u32::from(p[0]) << 8 | u32::from(p[1]))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// 60 bytes: Ethernet, IPv4, UDP without a checksum (0: RFC 768), zeroes.
fn frame(dst: [u8; 6], src: [u8; 6], from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    let mut f = Vec::with_capacity(60);
    f.extend(dst);
    f.extend(src);
    f.extend([0x08, 0x00]);
    let mut ip = [0u8; 20];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&46u16.to_be_bytes());
    ip[6] = 0x40;
    ip[8] = 64;
    ip[9] = 17;
    ip[12..16].copy_from_slice(&from.octets());
    ip[16..20].copy_from_slice(&to.octets());
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    f.extend(ip);
    f.extend(20000u16.to_be_bytes());
    f.extend(7000u16.to_be_bytes());
    f.extend(26u16.to_be_bytes());
    f.resize(60, 0);
    f
}

fn mac(text: &str) -> Result<[u8; 6], Box<dyn Error>> {
    let bytes: Vec<u8> = text
        .split(':')
        .map(|b| u8::from_str_radix(b, 16))
        .collect::<Result<_, _>>()?;
    bytes
        .try_into()
        .map_err(|_| format!("{text} is no MAC address").into())
}

fn bytes(hex: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let digit = |at: usize| {
        let two = hex.get(at..at + 2).ok_or("an odd number of digits")?;
        u8::from_str_radix(two, 16).map_err(|_| format!("{two} is no byte"))
    };
    Ok((0..hex.len())
        .step_by(2)
        .map(digit)
        .collect::<Result<_, _>>()?)
}

fn run() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ([dev, peer_ns, peer, _, seconds] | [dev, peer_ns, peer, _, _, _, _, seconds]) =
        words.as_slice()
    else {
        return Err(
            "usage: blast DEV PEER_NETNS PEER_DEV DST_MAC SRC_IP DST_IP FLOWS SECONDS, \
             or blast DEV PEER_NETNS PEER_DEV FRAME[,FRAME...] SECONDS"
                .into(),
        );
    };
    let seconds: f64 = seconds.parse()?;
    netns::run_in_named(Some(peer_ns), || ControlSocket::open()?.set_gro(peer, true))?;
    let control = ControlSocket::open()?;
    let frames: Vec<Vec<u8>> = match words.as_slice() {
        [_, _, _, dst_mac, src_ip, dst_ip, flows, _] => {
            let (dst, src, from) = (mac(dst_mac)?, control.mac(dev)?, src_ip.parse()?);
            let first = u32::from(dst_ip.parse::<Ipv4Addr>()?);
            (0..flows.parse::<u32>()?.clamp(1, 4096))
                .map(|i| frame(dst, src, from, Ipv4Addr::from(first.wrapping_add(i))))
                .collect()
        }
        [_, _, _, hex, _] => hex.split(',').map(bytes).collect::<Result<_, _>>()?,
        _ => Vec::new(),
    };
    let prog = xdp_flood::load_redirect(control.link(dev)?.ifindex)?;
    let (begin, length) = (Instant::now(), Duration::from_secs_f64(seconds));
    let mut sent = 0u64;
    for f in frames.iter().cycle() {
        if begin.elapsed() >= length {
            break;
        }
        xdp_flood::blast(prog.as_fd(), f, BURST)?;
        sent += u64::from(BURST);
    }
    println!("{sent} {:.3}", begin.elapsed().as_secs_f64());
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("blast: {e}");
            ExitCode::FAILURE
        }
    }
}
