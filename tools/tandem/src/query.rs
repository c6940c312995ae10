//! `tandem status`, `explain`, `sync`, `audit` and `fault`: one question, one answer.

use crate::args::{ExplainKind, Fault, Port};
use crate::config::Config;
use crate::out::Out;
use crate::show::known_part;
use crate::table::{cell, left, render};
use crate::{Answer, Usage};
use crate::{config, lifecycle};
use anyhow::{Result, anyhow, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tandem_mgmt::client::query;
use tandem_mgmt::types::{AuditProgress, State};
use tandem_mgmt::{Client, ClientError, Daemon, Instance};

/// A daemon's status, `Null` when it does not run.
pub fn status_of(instance: &Instance, daemon: Daemon) -> Result<Value, ClientError> {
    match Client::to(instance, daemon)
        .with_timeout(Duration::from_secs(3))
        .get("/v1/status")
    {
        Ok(v) => Ok(v),
        Err(e) if e.is_not_running() => Ok(Value::Null),
        Err(e) => Err(e),
    }
}

fn span(seconds: f64) -> String {
    match seconds as u64 {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7200 => format!("{} min", s / 60),
        s @ 7200..172_800 => format!("{} h", s / 3600),
        s => format!("{} d", s / 86400),
    }
}

fn get<'a>(v: &'a Value, path: &str) -> &'a Value {
    path.split('.')
        .try_fold(v, |v, k| v.get(k))
        .unwrap_or(&Value::Null)
}

/// Why a daemon that runs did not say how it is.
fn unanswered(status: &Value) -> Option<&str> {
    get(status, "error").as_str()
}

fn status_text(name: &str, asicd: &Value, switchd: &Value, ofagentd: &Value) -> String {
    let mut s = format!("instance  {name}\n");
    // an OpenFlow switch has neither of the others
    let alone = !ofagentd.is_null();
    let head = |v: &Value| {
        format!(
            "pid {}, version {}, up {}",
            cell(get(v, "pid")),
            cell(get(v, "version")),
            span(get(v, "uptime_s").as_f64().unwrap_or(0.0))
        )
    };
    if asicd.is_null() {
        s += if alone { "" } else { "asicd     not running\n" };
    } else if let Some(e) = unanswered(asicd) {
        s += &format!("asicd     {}\n", e.trim_start_matches("asicd "));
    } else {
        s += &format!("asicd     {}\n", head(asicd));
        s += &format!(
            "          chip {}, {} ports, device {}, epoch {}\n",
            cell(get(asicd, "profile")),
            cell(get(asicd, "ports")),
            cell(get(asicd, "device")),
            cell(get(asicd, "epoch"))
        );
        if let d @ Value::Object(_) = get(asicd, "driver") {
            s += &format!(
                "          driven by {} (pid {})\n",
                cell(get(d, "name")),
                cell(get(d, "pid"))
            );
        }
    }
    // with engine chip it is swcfgd that stands there
    let control = get(switchd, "daemon").as_str().unwrap_or("switchd");
    if switchd.is_null() {
        s += if alone { "" } else { "switchd   not running\n" };
    } else if let Some(e) = unanswered(switchd) {
        s += &format!("switchd   {}\n", e.trim_start_matches("switchd "));
    } else {
        s += &format!("{control:10}{}\n", head(switchd));
        let y = get(switchd, "sync");
        s += &format!(
            "          {}, policy {}, {} in flight, {} pending, {} not in hardware, {} resyncs\n",
            cell(get(y, "phase")),
            cell(get(y, "policy")),
            cell(get(y, "in_flight")),
            cell(get(y, "pending")),
            cell(get(y, "failed")),
            cell(get(y, "resyncs"))
        );
    }
    for v in [asicd, switchd] {
        for w in get(v, "warnings").as_array().into_iter().flatten() {
            s += &format!("warning   {}\n", cell(w));
        }
    }
    if let Some(e) = unanswered(ofagentd) {
        s += &format!("ofagentd  {}\n", e.trim_start_matches("ofagentd "));
    } else if alone {
        let standalone = match get(ofagentd, "standalone") {
            Value::Bool(true) => ", an ordinary switch meanwhile",
            _ => "",
        };
        s += &format!("ofagentd  {}\n", head(ofagentd));
        s += &format!(
            "          datapath {}, OpenFlow {}, {} ports, {} flows, {} groups, {} meters\n",
            cell(get(ofagentd, "datapath_id")),
            cell(get(ofagentd, "version_spoken")),
            cell(get(ofagentd, "ports")),
            cell(get(ofagentd, "flows")),
            cell(get(ofagentd, "groups")),
            cell(get(ofagentd, "meters"))
        );
        s += &format!(
            "          {} controllers connected{standalone}\n",
            cell(get(ofagentd, "controllers"))
        );
    }
    s
}

/// `tandem status`: exit 0 when asicd and switchd run, or ofagentd, and asicd if there is one.
pub fn status(instance: &Instance, out: Out) -> Result<Answer> {
    let all = [Daemon::Asicd, Daemon::Switchd, Daemon::Ofagentd];
    let [asicd, switchd, ofagentd] = match all.map(|d| status_of(instance, d)) {
        // what keeps all from answering is the user's business, not theirs
        [Err(e @ ClientError::Denied { .. }), Err(_), Err(_)] => return Err(e.into()),
        // a daemon that hangs must not hide the other
        asked => asked.map(|a| a.unwrap_or_else(|e| json!({"error": e.to_string()}))),
    };
    let name = instance.name();
    // its socket is the console's, where nobody is asked how he is
    let console = instance.running(Daemon::Swcfgd).ok().flatten();
    let wanted = Config::own(instance).is_ok_and(|c| c.has_console());
    let value = json!({"instance": name, "asicd": asicd, "switchd": switchd, "ofagentd": ofagentd, "console": console});
    out.print(&value, || {
        let text = status_text(name, &asicd, &switchd, &ofagentd);
        text + &console_text(name, console, wanted)
    })?;
    Ok(if is_well(&asicd, &switchd, &ofagentd) {
        Answer::Yes
    } else {
        Answer::No
    })
}

/// Engine kernel's console, beside switchd: its line, if there is to be one.
fn console_text(name: &str, pid: Option<u32>, wanted: bool) -> String {
    match pid {
        Some(pid) => format!("swcfgd    pid {pid}, the console: swcli --name {name}\n"),
        None if wanted => "swcfgd    not running\n".into(),
        None => String::new(),
    }
}

fn is_well(asicd: &Value, switchd: &Value, ofagentd: &Value) -> bool {
    let well = |v: &Value| !v.is_null() && unanswered(v).is_none();
    let openflow = switchd.is_null() && well(ofagentd) && (asicd.is_null() || well(asicd));
    openflow || well(asicd) && well(switchd)
}

fn explain_text(v: &Value) -> String {
    let mut s = String::new();
    let mut line = |head: &str, value: String| s += &format!("{head:14}{value}\n");
    let kind = cell(get(v, "kind"));
    line(&kind, cell(get(v, "key")));
    if get(v, "object").as_str().is_some_and(|o| !o.is_empty()) {
        line("object", cell(get(v, "object")));
    }
    line("in hardware", cell(get(v, "in_hardware")));
    let since = get(v, "since_s")
        .as_f64()
        .map_or(String::new(), |t| format!(", for {}", span(t)));
    line("state", cell(get(v, "state")) + &since);
    if !get(v, "reason").is_null() {
        line("reason", cell(get(v, "reason")));
    }
    let cost: Vec<String> = get(v, "cost")
        .as_array()
        .into_iter()
        .flatten()
        .map(|c| format!("{} of {}", cell(get(c, "slots")), cell(get(c, "pool"))))
        .collect();
    if !cost.is_empty() {
        line("cost", cost.join(", "));
    }
    if !get(v, "slow_path_packets").is_null() {
        line(
            "slow path",
            format!("{} packets", cell(get(v, "slow_path_packets"))),
        );
    }
    for (i, d) in get(v, "details")
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        line(if i == 0 { "details" } else { "" }, cell(d));
    }
    s
}

/// Does a daemon of this instance run? Else the chip may be the kernel driver's. One that does not answer runs, too.
pub fn any_daemon(instance: &Instance) -> bool {
    [Daemon::Switchd, Daemon::Asicd]
        .into_iter()
        .any(|d| !matches!(status_of(instance, d), Ok(Value::Null)))
}

/// `tandem explain`: exit 1 when there is no such thing.
pub fn explain(instance: &Instance, kind: ExplainKind, key: &str, out: Out) -> Result<Answer> {
    let name = crate::args::name(&kind);
    if key.trim().is_empty() {
        let wanted = match kind {
            ExplainKind::Route => "a prefix or an address",
            ExplainKind::Mac => "a MAC address",
            ExplainKind::Neighbour => "an address",
            ExplainKind::Group => "an IP or MAC address",
        };
        return Err(Usage(format!("explain {name} of nothing: give {wanted}")).into());
    }
    let mut chip = match any_daemon(instance) {
        true => None,
        false => crate::driver::open(),
    };
    let v: Value = match &mut chip {
        Some(chip) => chip.explain(kind, key)?,
        None => Client::to(instance, Daemon::Switchd)
            .get(&query(&format!("/v1/explain/{name}"), &[("key", key)]))?,
    };
    out.print(&v, || explain_text(&v))?;
    Ok(if get(&v, "state") == &json!(State::Absent) {
        Answer::No
    } else {
        Answer::Yes
    })
}

/// Seconds from the command line as a duration.
pub fn seconds(s: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(s)
        .ok()
        .filter(|d| d.as_secs() <= 86_400)
        .ok_or_else(|| Usage(format!("{s} is no time from 0 to 86400 seconds")).into())
}

/// `tandem sync`
pub fn sync(instance: &Instance, timeout: f64, out: Out) -> Result<Answer> {
    let limit = seconds(timeout)?;
    let v: Value = Client::to(instance, Daemon::Switchd)
        .with_timeout(limit + Duration::from_secs(5))
        .post("/v1/sync", &json!({"timeout_ms": limit.as_millis() as u64}))?;
    out.print(&v, String::new)?;
    Ok(Answer::Yes)
}

/// An audit that does not go on for so long has failed; one that does may take so long.
const AUDIT_STANDS: Duration = Duration::from_secs(60);
const AUDIT_MAX: Duration = Duration::from_secs(86_400);

/// `tandem audit`: exit 1 when there are differences.
pub fn audit(instance: &Instance, wait: f64, out: Out) -> Result<Answer> {
    let limit = seconds(wait)?;
    let switchd = Client::to(instance, Daemon::Switchd);
    let asks = switchd.clone().with_timeout(AUDIT_MAX);
    let asked = std::thread::spawn(move || {
        asks.post::<Value>("/v1/audit", &json!({"wait_s": limit.as_secs_f64()}))
    });
    let mut looked = Instant::now();
    let mut watch = Watch {
        seen: None,
        end: looked + limit + AUDIT_STANDS,
    };
    while !asked.is_finished() {
        std::thread::sleep(Duration::from_millis(10));
        if looked.elapsed() >= Duration::from_secs(1) {
            watch.look(switchd.get("/v1/audit").ok(), Instant::now())?;
            looked = Instant::now();
        }
    }
    let v = asked
        .join()
        .map_err(|_| anyhow!("the audit's thread died"))??;
    let items = get(&v, "items").as_array().cloned().unwrap_or_default();
    out.print(&v, || audit_text(&v, &items))?;
    Ok(if items.is_empty() {
        Answer::Yes
    } else {
        Answer::No
    })
}

/// Whether an audit goes on.
struct Watch {
    seen: Option<AuditProgress>,
    /// It has failed if it does not until then.
    end: Instant,
}

impl Watch {
    fn look(&mut self, at: Option<AuditProgress>, now: Instant) -> Result<()> {
        if at.is_some() && at != self.seen {
            self.end = self.end.max(now + AUDIT_STANDS);
            self.seen = at;
        }
        let doing = self
            .seen
            .as_ref()
            .map_or("does not say how far it is", |at| &at.doing);
        ensure!(
            now <= self.end,
            "switchd: the audit has not gone on for {} s: it {doing}; `tandem status` says more",
            AUDIT_STANDS.as_secs()
        );
        Ok(())
    }
}

fn audit_text(v: &Value, items: &[Value]) -> String {
    let compared: Vec<String> = get(v, "compared")
        .as_object()
        .into_iter()
        .flatten()
        .map(|(k, n)| format!("{} {k}", cell(n)))
        .collect();
    let mut s = String::new();
    if !items.is_empty() {
        let columns = [
            left("KIND", "kind"),
            left("KEY", "key"),
            left("BETWEEN", "between"),
            left("WANTED", "wanted"),
            left("FOUND", "found"),
        ];
        s += &render(&columns, items);
    }
    let words = match items.len() {
        0 => "no differences".to_owned(),
        1 => "1 difference".to_owned(),
        n => format!("{n} differences"),
    };
    let compared = if compared.is_empty() {
        String::new()
    } else {
        format!(" (compared: {})", compared.join(", "))
    };
    s += &format!("{words}{compared}\n");
    for w in get(v, "warnings").as_array().into_iter().flatten() {
        s += &format!("warning: {}\n", cell(w));
    }
    s
}

/// `tandem fault`
pub fn fault(instance: &Instance, fault: &Fault, out: Out) -> Result<Answer> {
    let mut body = match fault {
        Fault::Fail { nth, count, cls } => {
            json!({"kind": "fail", "nth": nth, "count": count, "cls": cls})
        }
        Fault::Table { table } => json!({"kind": "table", "table": table}),
        Fault::Delay { ms } => json!({"kind": "delay", "ms": ms}),
        Fault::Drop { nth } => json!({"kind": "drop", "nth": nth}),
        Fault::Duplicate { nth } => json!({"kind": "duplicate", "nth": nth}),
        Fault::Flap { port, count, ms } => {
            json!({"kind": "flap", "port": port, "count": count, "ms": ms})
        }
        Fault::Corrupt { ring } => json!({"kind": "corrupt", "ring": ring}),
        Fault::List => return faults(instance, out),
        Fault::Flip { table, key } => json!({"kind": "flip", "table": table, "key": key}),
        Fault::StrayTag { vid } => json!({"kind": "stray_tag", "vid": vid}),
        Fault::Reset => json!({"kind": "reset"}),
        Fault::Clear => json!({"kind": "clear"}),
    };
    if let Value::Object(o) = &mut body {
        o.retain(|_, v| !v.is_null());
    }
    let v: Value = Client::to(instance, Daemon::Asicd).post("/v1/fault", &body)?;
    out.print(&v, || cell(get(&v, "applied")))?;
    Ok(Answer::Yes)
}

/// `tandem fault list`
fn faults(instance: &Instance, out: Out) -> Result<Answer> {
    let v: Value = Client::to(instance, Daemon::Asicd).get("/v1/fault")?;
    out.print(&v, || match get(&v, "items").as_array() {
        Some(items) if !items.is_empty() => {
            let line = |i: &Value| match get(i, "matched") {
                Value::Null => format!("{}\n", cell(get(i, "fault"))),
                n => format!(
                    "{} ({} such commands so far)\n",
                    cell(get(i, "fault")),
                    cell(n)
                ),
            };
            items.iter().map(line).collect()
        }
        _ => "no faults are armed".into(),
    })?;
    Ok(Answer::Yes)
}

/// One answer of as many as there were kinds: the same keys.
fn storms_answer(answers: &[(String, Option<String>)]) -> Value {
    let applied: Vec<&str> = answers.iter().map(|(a, _)| a.as_str()).collect();
    let mut v = json!({"applied": applied.join("; ")});
    // the same for every kind of a port
    if let (Value::Object(o), Some(until)) = (&mut v, answers.iter().find_map(|(_, u)| u.as_ref()))
    {
        o.insert("until".into(), json!(until));
    }
    v
}

/// `tandem port`
pub fn port(instance: &Instance, port: &Port, out: Out) -> Result<Answer> {
    match port {
        Port::Limit { port, mbps } => {
            known_part(instance, port)?;
            let body = json!({"port": port, "limit_mbps": mbps});
            let v: Value = Client::to(instance, Daemon::Asicd).post("/v1/queues", &body)?;
            out.print(&v, || cell(get(&v, "applied")))?;
        }
        Port::Storm {
            port,
            broadcast,
            multicast,
            unknown_unicast,
        } => {
            let kinds = [
                ("broadcast", broadcast),
                ("multicast", multicast),
                ("unknown_unicast", unknown_unicast),
            ];
            let mut answers = Vec::new();
            for (kind, rate) in kinds {
                let Some(rate) = *rate else { continue };
                let body = json!({"port": port, "kind": kind, "packets": rate});
                let answer =
                    Client::to(instance, Daemon::Switchd).post::<Value>("/v1/storm", &body);
                let v = match answer {
                    // a limit that is kept for a port which is split now, or a part of one that is not any more
                    Err(_) if rate == 0 && config::has_storm(instance, port, kind)? => {
                        json!({"applied": format!("{port}: {kind} without limit, when it is there again")})
                    }
                    other => other?,
                };
                let until = config::keep_storm(instance, port, kind, rate)?;
                answers.push((cell(get(&v, "applied")), until));
            }
            let v = storms_answer(&answers);
            out.print(&v, || {
                let until = get(&v, "until").as_str();
                let applied = answers.iter().map(|(a, _)| a.as_str());
                applied.chain(until).collect::<Vec<_>>().join("\n")
            })?;
        }
        Port::Split { port, parts } => return lifecycle::split(instance, port, Some(*parts), out),
        Port::Unsplit { port } => return lifecycle::split(instance, port, None, out),
    }
    Ok(Answer::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explain_says_why_in_a_few_lines() {
        let text = explain_text(&json!({
            "kind": "route", "key": "13.0.0.0/24", "object": "13.0.0.0/24 via 10.0.0.2 dev swp3", "in_hardware": false,
            "state": "trap", "reason": "IPv4 LPM full (needs 1, free 0 of 64)", "since_s": 300.0,
            "cost": [{"pool": "ipv4-lpm", "slots": 1}], "slow_path_packets": 12, "details": ["a", "b"]
        }));
        assert!(text.contains("reason        IPv4 LPM full (needs 1, free 0 of 64)"));
        assert!(text.contains("trap, for 5 min"));
        assert!(text.contains("1 of ipv4-lpm"));
        assert!(text.lines().all(|l| !l.ends_with(' ')));
    }

    #[test]
    fn an_audit_is_waited_for_as_long_as_it_goes_on() {
        let start = Instant::now();
        let after = |n: u32| start + AUDIT_STANDS * n;
        let at = |steps| {
            let doing = "reads the chip".into();
            Some(AuditProgress { steps, doing })
        };
        let mut watch = Watch {
            seen: None,
            end: after(2),
        };
        // an older switchd does not say it
        watch.look(None, after(2)).unwrap();
        assert!(watch.look(None, after(2) + Duration::from_secs(1)).is_err());
        for n in 3..100 {
            watch.look(at(u64::from(n)), after(n)).unwrap();
        }
        watch.look(at(99), after(100)).unwrap();
        let end = after(100) + Duration::from_secs(1);
        let why = watch.look(at(99), end).unwrap_err().to_string();
        assert!(
            why.contains("has not gone on for 60 s: it reads the chip"),
            "{why}"
        );
    }

    #[test]
    fn audit_counts_its_differences() {
        assert_eq!(
            audit_text(&json!({"compared": {"routes": 5}}), &[]),
            "no differences (compared: 5 routes)\n"
        );
        let one = json!({"kind": "route", "key": "::/0", "between": "store-asic", "wanted": "trap", "found": "forward"});
        let text = audit_text(&json!({}), &[one]);
        assert!(text.contains("store-asic") && text.ends_with("1 difference\n"));
    }

    #[test]
    fn several_storm_limits_are_one_answer() {
        let one = [("a".to_owned(), None)];
        assert_eq!(storms_answer(&one), json!({"applied": "a"}));
        let until = Some("restart".to_owned());
        let two = [("a".to_owned(), until.clone()), ("b".to_owned(), until)];
        assert_eq!(
            storms_answer(&two),
            json!({"applied": "a; b", "until": "restart"})
        );
    }

    #[test]
    fn nothing_is_not_explained() {
        let i = Instance::in_dir(std::path::Path::new("/nowhere"), "t").unwrap();
        let out = Out {
            json: false,
            pretty: false,
        };
        let Err(e) = explain(&i, ExplainKind::Route, " ", out) else {
            panic!("an empty key was explained");
        };
        assert!(e.is::<Usage>() && e.to_string().contains("a prefix"), "{e}");
    }

    #[test]
    fn times_are_checked() {
        assert!(seconds(-1.0).is_err());
        assert!(seconds(f64::NAN).is_err());
        assert!(seconds(1e9).is_err());
        assert_eq!(seconds(1.5).unwrap(), Duration::from_millis(1500));
    }

    #[test]
    fn status_of_nothing() {
        let text = status_text("x", &Value::Null, &Value::Null, &Value::Null);
        assert!(text.contains("asicd     not running") && text.contains("switchd   not running"));
        let hangs = json!({"error": "asicd did not answer within 3 s"});
        let text = status_text(
            "x",
            &hangs,
            &json!({"pid": 7, "sync": {"phase": "steady"}}),
            &Value::Null,
        );
        assert!(
            text.contains("asicd     did not answer within 3 s\n"),
            "{text}"
        );
        assert!(text.contains("switchd   pid 7"), "{text}");
        let chip = json!({"pid": 7, "daemon": "swcfgd", "sync": {"phase": "steady"}});
        let text = status_text("x", &hangs, &chip, &Value::Null);
        assert!(text.contains("swcfgd    pid 7"), "{text}");
        let openflow =
            json!({"pid": 8, "datapath_id": "0001", "version_spoken": "1.3", "controllers": 1});
        let text = status_text("x", &Value::Null, &Value::Null, &openflow);
        assert!(
            text.contains("ofagentd  pid 8") && text.contains("OpenFlow 1.3"),
            "{text}"
        );
        assert!(!text.contains("not running"), "{text}");
    }

    #[test]
    fn the_console_beside_switchd_is_there_or_missed() {
        assert!(console_text("x", Some(9), false).contains("swcfgd    pid 9"));
        assert!(console_text("x", None, true).contains("not running"));
        assert_eq!(console_text("x", None, false), "");
    }

    #[test]
    fn which_daemons_are_enough() {
        let (up, hangs, none) = (json!({"pid": 7}), json!({"error": "late"}), Value::Null);
        for (asicd, switchd, ofagentd, well) in [
            (&up, &up, &none, true),
            (&none, &none, &up, true),
            (&up, &none, &up, true),
            (&hangs, &none, &up, false),
            (&up, &none, &hangs, false),
            (&up, &none, &none, false),
            (&none, &up, &none, false),
            (&none, &none, &none, false),
        ] {
            let is = is_well(asicd, switchd, ofagentd);
            assert_eq!(is, well, "{asicd} {switchd} {ofagentd}");
        }
    }
}
