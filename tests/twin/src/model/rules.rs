//! Policy rules (net/core/fib_rules.c).

use super::messages::{DELRULE, EXCL, INET, INET6, MULTI, Message, NEWRULE, Request};
use super::{Cause, EEXIST, EINVAL, ENOENT, LOCAL, MAIN, Net, mask4};

/// `FR_ACT_TO_TBL`
pub const LOOK_UP: u8 = 1;
const DEFAULT: u32 = 253;
/// Preferences of the rules of the main and of the default table.
const MAIN_PREF: u32 = 32766;
const DEFAULT_PREF: u32 = 32767;

/// `struct fib_rule`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub pref: u32,
    pub table: u32,
    pub action: u8,
    /// 0: any.
    pub iif: u32,
    iif_name: String,
    source: u32,
    source_len: u8,
    protocol: u8,
}

/// Is it one that every namespace has?
pub fn is_default(r: &Request<'_>) -> bool {
    [0, MAIN_PREF, DEFAULT_PREF].contains(&r.number(6))
}

impl Rule {
    fn own(pref: u32, table: u32) -> Self {
        Self {
            pref,
            table,
            action: LOOK_UP,
            iif: 0,
            iif_name: String::new(),
            source: 0,
            source_len: 0,
            protocol: 2,
        }
    }

    /// Those of every namespace (`fib_default_rules_init`, `fib6_rules_net_init`).
    pub fn defaults() -> [Vec<Self>; 2] {
        let six = vec![Self::own(0, LOCAL), Self::own(MAIN_PREF, MAIN)];
        let mut four = six.clone();
        four.push(Self::own(DEFAULT_PREF, DEFAULT));
        [four, six]
    }

    /// `fib4_rule_match`
    pub fn matches4(&self, source: u32) -> bool {
        (source ^ self.source) & mask4(self.source_len) == 0
    }

    /// `fib_nl_fill_rule`
    fn message(&self, kind: u16, six: bool, flags: u16, from: (u32, u32)) -> Vec<u8> {
        let table = u8::try_from(self.table).unwrap_or(252);
        let family = if six { INET6 } else { INET };
        let fixed = [
            family,
            0,
            self.source_len,
            0,
            table,
            0,
            0,
            self.action,
            0,
            0,
            0,
            0,
        ];
        let mut m = Message::new(kind, flags, from.0, from.1, &fixed);
        m.number(15, self.table);
        m.number(14, u32::MAX);
        m.bytes(21, &[self.protocol]);
        if self.iif != 0 {
            m.text(3, &self.iif_name);
        }
        if self.pref != 0 {
            m.number(6, self.pref);
        }
        if self.source_len != 0 {
            m.v4(2, self.source);
        }
        m.done()
    }
}

impl Net {
    /// `fib_nl_newrule`: behind all of the same preference.
    pub fn rule_new(&mut self, r: &Request<'_>) -> Result<(), i32> {
        let source_len = r.byte(2);
        let source = match r.attr(2) {
            Some(v) => super::messages::v4(v),
            None if source_len != 0 => return Err(EINVAL),
            None => 0,
        };
        let name = r.attr(3).map(|v| String::from_utf8_lossy(v));
        let name = name.map_or(String::new(), |n| n.trim_end_matches('\0').to_owned());
        let dev = self.devs.iter().find(|d| d.name == name);
        let table = match r.number(15) {
            0 => u32::from(r.byte(4)),
            table => table,
        };
        let rule = Rule {
            pref: r.number(6),
            table,
            action: r.byte(7),
            iif: dev.map_or(0, |d| d.index),
            iif_name: name,
            source,
            source_len,
            protocol: 0,
        };
        let rules = &mut self.rules[0];
        // `rule_exists`, `fib4_rule_compare`: a source that is not named is any
        let same = |o: &Rule| match rule.source_len {
            0 => {
                let (source, source_len) = (rule.source, rule.source_len);
                rule == Rule {
                    source,
                    source_len,
                    ..o.clone()
                }
            }
            _ => rule == *o,
        };
        if r.flags & EXCL != 0 && rules.iter().any(same) {
            return Err(EEXIST);
        }
        let at = rules.partition_point(|o| o.pref <= rule.pref);
        rules.insert(at, rule.clone());
        self.tell_rule(NEWRULE, &rule);
        Ok(())
    }

    /// `fib_nl_delrule`: the first that is as far as was said.
    pub fn rule_del(&mut self, r: &Request<'_>) -> Result<(), i32> {
        let pref = r.number(6);
        let rules = &mut self.rules[0];
        let at = rules.iter().position(|o| o.pref == pref).ok_or(ENOENT)?;
        let rule = rules.remove(at);
        self.tell_rule(DELRULE, &rule);
        Ok(())
    }

    fn tell_rule(&mut self, kind: u16, rule: &Rule) {
        let bytes = rule.message(kind, false, 0, self.cause(Cause::Asked));
        self.tell(bytes);
    }

    pub fn dump_rules(&self, six: bool) -> Vec<Vec<u8>> {
        (self.rules[usize::from(six)].iter())
            .map(|r| r.message(NEWRULE, six, MULTI, (0, 0)))
            .collect()
    }
}
