//! `tandem trace` and `tandem capture`: packets, on paper and live.

use crate::args::{Capture, Trace};
use crate::frame::{self, Proto, Spec};
use crate::out::Out;
use crate::show::{known_part, rows};
use crate::table::cell;
use crate::{Answer, Usage};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{IsTerminal, Read, Write};
use tandem_mgmt::client::query;
use tandem_mgmt::{Client, Daemon, Instance, hex};
use unicode_width::UnicodeWidthStr;

/// The MAC that a port's host would send routed packets to: the port's own, or that of its bridge's interface.
fn router_mac(instance: &Instance, port: &str) -> Result<[u8; 6]> {
    let ports = rows(
        &Client::to(instance, Daemon::Switchd),
        "/v1/ports",
        &[],
        None,
    )?;
    let row = ports
        .iter()
        .find(|r| r.get("name").and_then(Value::as_str) == Some(port))
        .with_context(|| format!("no port {port} (tandem show ports lists them)"))?;
    let bridge = row.get("bridge").and_then(Value::as_str).unwrap_or("");
    let file = if bridge.is_empty() {
        String::new()
    } else {
        format!("/sys/class/net/{bridge}/address")
    };
    // the bridge's address is the kernel's to say; sysfs may show another namespace, hence the port's as fallback
    match std::fs::read_to_string(file)
        .ok()
        .and_then(|t| frame::mac(t.trim()).ok())
    {
        Some(m) => Ok(m),
        None => match row.get("mac").and_then(Value::as_str) {
            None | Some("") => {
                bail!("{port} has no netdev now, and so no address: give one by --dmac")
            }
            Some(mac) => frame::mac(mac),
        },
    }
}

fn make_frame(instance: &Instance, t: &Trace) -> Result<Vec<u8>> {
    let usage = |e: anyhow::Error| anyhow::Error::new(Usage(format!("{e:#}")));
    if let Some(hex) = &t.hex {
        return frame::from_hex(hex).map_err(usage);
    }
    if let Some(path) = &t.pcap {
        let data = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
        return frame::from_pcap(&data).with_context(|| path.display().to_string());
    }
    let (proto, pair) = if let Some(p) = &t.icmp {
        (Proto::Icmp, p)
    } else if let Some(p) = &t.udp {
        (Proto::Udp, p)
    } else if let Some(p) = &t.tcp {
        (Proto::Tcp, p)
    } else {
        bail!(Usage("no frame given".into()));
    };
    let (Some(src), Some(dst)) = (pair.first(), pair.get(1)) else {
        bail!(Usage("give SRC and DST".into()))
    };
    let dmac = match &t.dmac {
        Some(text) => frame::mac(text).map_err(usage)?,
        None => router_mac(instance, &t.port)?,
    };
    let spec = Spec {
        dmac,
        smac: frame::mac(&t.smac).map_err(usage)?,
        vlan: t.vlan,
        ttl: t.ttl,
        size: t.size,
    };
    frame::build(&spec, proto, src, dst).map_err(usage)
}

/// `tandem trace`
pub fn trace(instance: &Instance, t: &Trace, out: Out) -> Result<Answer> {
    let bytes = make_frame(instance, t)?;
    let body = json!({"port": t.port, "frame": hex::encode(&bytes)});
    let v: Value = Client::to(instance, Daemon::Asicd).post("/v1/trace", &body)?;
    out.print(&v, || {
        let steps: Vec<(String, String)> = v
            .get("items")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|s| {
                let get = |k: &str| s.get(k).map(cell).unwrap_or_default();
                (get("stage"), get("text"))
            })
            .collect();
        let width = steps
            .iter()
            .map(|(s, _)| s.width())
            .max()
            .unwrap_or(0)
            .max(7);
        let mut text: String = steps
            .iter()
            .map(|(s, t)| format!("{s:width$}  {t}\n"))
            .collect();
        if let Some(verdict) = v
            .get("verdict")
            .and_then(Value::as_str)
            .filter(|s| !s.is_empty())
        {
            text += &format!("{:width$}  {verdict}\n", "verdict");
        }
        text
    })?;
    Ok(Answer::Yes)
}

/// `tandem capture`: pcap until the count is reached, the daemon ends, or somebody interrupts.
pub fn capture(instance: &Instance, c: &Capture) -> Result<Answer> {
    if c.write.is_none() && std::io::stdout().is_terminal() {
        bail!(Usage(
            "a capture is not for a terminal: give -w FILE, or pipe it into tcpdump -n -r -".into()
        ));
    }
    known_part(instance, &c.port)?;
    let count = c.count.map(|n| n.to_string()).unwrap_or_default();
    let path = query(
        "/v1/capture",
        &[
            ("port", &c.port),
            ("filter", &c.filter.join(" ")),
            ("count", &count),
        ],
    );
    let mut body = Client::to(instance, Daemon::Asicd).stream(&path)?;
    let mut to: Box<dyn Write> = match &c.write {
        Some(file) => Box::new(
            std::fs::File::create(file).with_context(|| format!("write {}", file.display()))?,
        ),
        None => Box::new(std::io::stdout().lock()),
    };
    let mut buffer = vec![0; 65_536];
    loop {
        match body.read(&mut buffer)? {
            0 => return Ok(Answer::Yes),
            n => {
                to.write_all(buffer.get(..n).unwrap_or_default())?;
                to.flush()?;
            }
        }
    }
}
