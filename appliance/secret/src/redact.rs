// SPDX-License-Identifier: Apache-2.0
//! A line without the secret that may be in it.

/// What stands in a secret's place.
pub const HIDDEN: &str = "*****";

/// Words that begin so, and are others.
const OTHERS: [&str; 3] = ["secondary", "security", "passive"];

/// Commands that may have a secret: what they are called, how many words behind that are anybody's, and which ones beside
/// numbers may stand in front of the secret. Of the last ones there are many.
const COMMANDS: [(&str, usize, Option<&str>); 4] = [
    ("username", 1, Some("privilege")),
    ("enable", 0, Some("level")),
    ("neighbor", 1, None),
    (SNMP, 0, None),
];

/// Its first word is `community`, or is not.
const SNMP: &str = "snmp-server";

/// The line as a log may have it. It is no parser: a line that was mistyped has a secret as well, so a word that may have
/// been meant as `secret` or `password` hides all that follows it, and behind `username` and `enable` one that is none of
/// theirs is hidden itself.
#[must_use]
pub fn redacted(line: &str) -> String {
    let mut at = 0;
    let mut lead = true;
    let mut command: Option<(&str, usize, Option<&str>)> = None;
    let mut words = 0;
    for word in line.split_inclusive(char::is_whitespace) {
        let end = at + word.len();
        let bare = word.trim().to_ascii_lowercase();
        let hidden = |from: usize| format!("{}{HIDDEN}", line.get(..from).unwrap_or_default());
        if bare.is_empty() {
        } else if !lead {
            words += 1;
            let rest = line.get(end..).unwrap_or_default();
            let own = command.map(|(name, ..)| name);
            if means(&bare, own.filter(|name| *name != SNMP || words == 1)) {
                if !rest.trim().is_empty() {
                    return hidden(end);
                }
            } else if let Some((_, anybodys, Some(other))) = command
                && words > anybodys
                && !is_level(&bare)
                && !meant(&bare, other)
            {
                return hidden(at);
            }
        // words in front of the command's own
        } else if !["do", "no", "default"].contains(&bare.as_str()) {
            lead = false;
            command = COMMANDS.into_iter().find(|c| meant(&bare, c.0));
        }
        at = end;
    }
    line.into()
}

fn is_level(word: &str) -> bool {
    word.len() <= 2 && word.bytes().all(|b| b.is_ascii_digit())
}

/// Its begin, or mistyped.
fn meant(word: &str, whole: &str) -> bool {
    whole.starts_with(word) || near(word, whole)
}

/// May it have been meant as `secret`, `password`, or `community` of SNMP? Behind a command that has it, the first letter is
/// enough.
fn means(word: &str, command: Option<&str>) -> bool {
    ["secret", "password", "community"].iter().any(|whole| {
        let snmp = *whole == "community";
        let own = command.is_some_and(|name| (name == SNMP) == snmp);
        let short = whole.starts_with(word) && (own || word.len() >= 3);
        // `commands` is another word
        short || near(word, whole) && (!snmp || own || word.contains('u'))
    })
}

/// The same first three letters, and not much longer or shorter: mistyped.
fn near(word: &str, whole: &str) -> bool {
    let same = word.chars().zip(whole.chars()).take_while(|(a, b)| a == b);
    same.count() >= 3 && word.len().abs_diff(whole.len()) <= 2 && !OTHERS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn no_secret_is_left_however_it_was_typed() {
        for line in [
            "username bob secret 0 hunter2",
            "username bob secret hunter2 and more",
            "username bob privilege 15 secret 9 hunter2",
            "  username bob  sec  hunter2",
            "u bob s hunter2",
            "user bob secert hunter2",
            "usrname bob password hunter2",
            "enable secret hunter2",
            "enable s hunter2",
            "en sec level 5 0 hunter2",
            "ena secret 5 hunter2",
            "no enable secret hunter2",
            "default enable secret hunter2",
            "do username bob secret hunter2",
            "line vty 0 4 password hunter2",
            "USERNAME bob SECRET hunter2",
            "neighbor 10.0.0.1 password hunter2",
            "neighbor 10.0.0.1 pass hunter2",
            "neighbor 10.0.0.1 pa hunter2",
            "ne 10.0.0.1 p hunter2",
            "username bob scret hunter2",
            "username bob privilege 15 ecret 0 hunter2",
            "username bob hunter2",
            "no username bob hunter2",
            "enable hunter2",
            "enable level 5 hunter2",
            "snmp-server community hunter2 ro",
            "no snmp com hunter2",
            "snmp-server comunity hunter2 ro",
            "snmp-server commnity hunter2",
            "snmp-server co hunter2 ro",
            "no snmp-s c hunter2",
        ] {
            let shown = redacted(line);
            assert!(!shown.contains("hunter2"), "{line}: {shown}");
            assert!(shown.ends_with("*****"), "{line}: {shown}");
        }
    }

    #[test]
    fn what_has_none_is_as_it_was() {
        for line in [
            "show running-config",
            "ip address 10.0.0.2 255.255.255.0 secondary",
            "description security uplink",
            "service password-encryption",
            "username bob privilege 15",
            "u bob priv 15",
            "neighbor 10.0.0.1 remote-as 65000",
            "neighbor 10.0.0.1 shutdown",
            "network 10.0.0.0 255.0.0.0 area 0",
            "end",
            "exit",
            "enable secret",
            "snmp-server contact noc",
            "snmp-server location rack c 5 s 7",
            "% ospfd: Please remove all network commands first.",
            "snmp-server community",
            "enable 15",
            "no username bob",
            "configure terminal",
            "",
            "   ",
        ] {
            assert_eq!(redacted(line), line);
        }
    }
}
