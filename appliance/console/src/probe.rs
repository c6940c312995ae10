// SPDX-License-Identifier: Apache-2.0
//! `ping` and `traceroute`: what goes on while somebody looks on, step by step, so that no step holds up another session
//! and `^C` is heard.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use tandem_swconfig::probe::{Heard, Prober, Question};
use tandem_swconfig::{Config, Kind};
use tandem_swgrammar::{Arg, Id, Parsed};

/// Marks of a line.
const MARKS: u32 = 70;
/// The farthest router.
const FARTHEST: u8 = 30;

/// What goes on.
pub(crate) struct Task {
    prober: Box<dyn Prober>,
    what: What,
    to: Ipv4Addr,
    size: u16,
    timeout: Duration,
    /// When the last question was asked, if it is not answered yet.
    asked: Option<Instant>,
    over: bool,
}

enum What {
    Ping {
        repeat: u32,
        sent: u32,
        heard: u32,
        /// Microseconds: the least, all of them, the most.
        times: (u128, u128, u128),
    },
    Trace {
        ttl: u8,
        probes: u32,
        /// Of this router.
        sent: u32,
        from: Option<Ipv4Addr>,
        there: bool,
    },
}

/// The numbers behind their words, whatever their order.
fn number(parsed: &Parsed, key: &str) -> Option<u32> {
    let at = behind(parsed, key)?;
    match at {
        Arg::Number(n) => Some(*n),
        _ => None,
    }
}

/// What was typed behind a word: each but the first, the command's own, has one behind it.
fn behind<'p>(parsed: &'p Parsed, key: &str) -> Option<&'p Arg> {
    let at = parsed.keys.iter().position(|k| *k == key)?;
    parsed.args.get(at)
}

/// Whom the questions are to come from.
pub(crate) fn source(parsed: &Parsed, config: &Config) -> Result<Option<Ipv4Addr>, String> {
    match behind(parsed, "source") {
        None => Ok(None),
        Some(Arg::Address(a)) => Ok(Some(*a)),
        Some(Arg::Interface(name)) => {
            let set = config.interfaces.get(name);
            let address = set.and_then(|s| s.ipv4).map(|n| n.address);
            let up = set.is_some_and(|s| !s.shutdown) || name.kind == Kind::Loopback;
            match address.filter(|_| up) {
                Some(address) => Ok(Some(address)),
                None => Err(format!(
                    "% Invalid source interface - IP not enabled or interface {name} is down"
                )),
            }
        }
        Some(_) => Err(crate::change::INTERNAL.into()),
    }
}

impl Task {
    /// What it begins with, and what it says first.
    pub(crate) fn new(
        parsed: &Parsed,
        source: Option<Ipv4Addr>,
        prober: Box<dyn Prober>,
    ) -> Result<(Task, String), String> {
        let Some(Arg::Address(to)) = parsed.args.first() else {
            return Err(crate::change::INTERNAL.into());
        };
        let to = *to;
        let size = number(parsed, "size").and_then(|n| u16::try_from(n).ok());
        let ping = parsed.id == Id::Ping;
        let usual = if ping { 2 } else { 3 };
        let seconds = number(parsed, "timeout").unwrap_or(usual);
        let size = size.unwrap_or(if ping { 100 } else { 60 });
        let repeat = number(parsed, "repeat").unwrap_or(5);
        let what = match ping {
            true => What::Ping {
                repeat,
                sent: 0,
                heard: 0,
                times: (u128::MAX, 0, 0),
            },
            false => What::Trace {
                ttl: 1,
                probes: number(parsed, "probe").unwrap_or(3),
                sent: 0,
                from: None,
                there: false,
            },
        };
        let mut text = String::from("Type escape sequence to abort.\n");
        if ping {
            text.push_str(&format!(
                "Sending {repeat}, {size}-byte ICMP Echos to {to}, timeout is {seconds} seconds:\n"
            ));
            if let Some(source) = source {
                text.push_str(&format!("Packet sent with a source address of {source} \n"));
            }
        } else {
            text.push_str(&format!("Tracing the route to {to}\n"));
        }
        let task = Task {
            prober,
            what,
            to,
            size,
            timeout: Duration::from_secs(seconds.into()),
            asked: None,
            over: false,
        };
        Ok((task, text))
    }

    /// Has it come to its end?
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Goes on, and takes no longer than about this: what it says of it.
    pub(crate) fn step(&mut self, within: Duration) -> String {
        if self.over {
            return String::new();
        }
        let mut text = String::new();
        let Some(asked) = self.asked else {
            let ttl = match &self.what {
                What::Ping { .. } => 255,
                What::Trace { ttl, sent, .. } => {
                    if *sent == 0 {
                        text.push_str(&format!("{ttl:>3} "));
                    }
                    *ttl
                }
            };
            let question = Question {
                to: self.to,
                size: self.size,
                ttl,
            };
            match self.prober.ask(&question) {
                Ok(()) => self.asked = Some(Instant::now()),
                // there is no way: nothing will come back
                Err(_) => text.push_str(&self.answered(None, Duration::ZERO)),
            }
            return text;
        };
        let left = self.timeout.saturating_sub(asked.elapsed());
        let heard = self.prober.hear(left.min(within));
        if heard.is_some() || asked.elapsed() >= self.timeout {
            text.push_str(&self.answered(heard, asked.elapsed()));
        }
        text
    }

    /// The last question has come to this.
    fn answered(&mut self, heard: Option<Heard>, took: Duration) -> String {
        self.asked = None;
        let mut text = String::new();
        match &mut self.what {
            What::Ping {
                repeat,
                sent,
                heard: count,
                times: (least, all, most),
            } => {
                *sent += 1;
                let us = took.as_micros();
                text.push(match heard {
                    Some(Heard::Answer(_)) => {
                        *count += 1;
                        (*least, *all, *most) = ((*least).min(us), *all + us, (*most).max(us));
                        '!'
                    }
                    Some(Heard::Unreachable(_)) => 'U',
                    Some(Heard::Expired(_)) => '&',
                    None => '.',
                });
                if *sent >= *repeat {
                    text.push_str(&self.end());
                } else if (*sent).is_multiple_of(MARKS) {
                    text.push('\n');
                }
            }
            What::Trace {
                ttl,
                probes,
                sent,
                from,
                there,
            } => {
                *sent += 1;
                let who = heard.map(|h| match h {
                    Heard::Answer(a) | Heard::Expired(a) | Heard::Unreachable(a) => a,
                });
                if who.is_some() && who != *from {
                    text.push_str(&who.map(|w| format!("{w} ")).unwrap_or_default());
                    *from = who;
                }
                text.push_str(&match heard {
                    None => " * ".into(),
                    Some(Heard::Unreachable(_)) => "!H ".into(),
                    Some(_) => format!("{} msec ", took.as_millis()),
                });
                *there |= matches!(heard, Some(Heard::Answer(_) | Heard::Unreachable(_)));
                if *sent >= *probes {
                    text.push('\n');
                    (*sent, *from) = (0, None);
                    self.over = *there || *ttl >= FARTHEST;
                    *ttl = ttl.saturating_add(1);
                }
            }
        }
        text
    }

    /// It ends here: what there is to say of it.
    pub(crate) fn end(&mut self) -> String {
        if std::mem::replace(&mut self.over, true) {
            return String::new();
        }
        let What::Ping {
            sent, heard, times, ..
        } = &self.what
        else {
            return "\n".into();
        };
        let (sent, heard) = (*sent, *heard);
        let all = u64::from(heard) * 100;
        let rate = all.checked_div(sent.into()).unwrap_or(0);
        let mut text = format!("\nSuccess rate is {rate} percent ({heard}/{sent})");
        if heard > 0 {
            let ms = |us: u128| us.div_ceil(1000);
            let average = times.1 / u128::from(heard);
            text.push_str(&format!(
                ", round-trip min/avg/max = {}/{}/{} ms",
                ms(times.0),
                ms(average),
                ms(times.2)
            ));
        }
        text.push('\n');
        text
    }
}
