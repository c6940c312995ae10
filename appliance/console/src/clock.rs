// SPDX-License-Identifier: Apache-2.0
//! Date and time, as `show clock` and the log have them.

use std::time::{SystemTime, UNIX_EPOCH};

use tandem_swconfig::services::{Stamp, Zone};

const WEEK: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [(&str, u64); 12] = [
    ("Jan", 31),
    ("Feb", 28),
    ("Mar", 31),
    ("Apr", 30),
    ("May", 31),
    ("Jun", 30),
    ("Jul", 31),
    ("Aug", 31),
    ("Sep", 30),
    ("Oct", 31),
    ("Nov", 30),
    ("Dec", 31),
];

/// A moment, as people of a zone say it.
pub(crate) struct Moment {
    zone: String,
    year: u64,
    month: &'static str,
    day: u64,
    week: &'static str,
    of_day: u64,
    millis: u32,
}

impl Moment {
    /// Now.
    pub(crate) fn now(zone: Option<&Zone>) -> Moment {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default();
        Moment::of(now.as_secs(), now.subsec_millis(), zone)
    }

    /// Of seconds since 1970.
    pub(crate) fn of(seconds: u64, millis: u32, zone: Option<&Zone>) -> Moment {
        let east = zone.map_or(0, |z| i64::from(z.minutes) * 60);
        let local = seconds.saturating_add_signed(east);
        let all = local / 86400;
        let leap = |year: u64| {
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
        };
        let (mut year, mut days) = (1970, all);
        while days >= 365 + u64::from(leap(year)) {
            days -= 365 + u64::from(leap(year));
            year += 1;
        }
        let mut month = "Dec";
        for (i, (name, long)) in MONTHS.iter().enumerate() {
            let long = long + u64::from(i == 1 && leap(year));
            month = name;
            if days < long {
                break;
            }
            days -= long;
        }
        Moment {
            zone: zone.map_or_else(|| "UTC".into(), |z| z.name.clone()),
            year,
            month,
            day: days + 1,
            week: WEEK.get((all % 7) as usize).unwrap_or(&""),
            of_day: local % 86400,
            millis,
        }
    }

    fn time(&self) -> String {
        let (hours, minutes, seconds) =
            (self.of_day / 3600, self.of_day / 60 % 60, self.of_day % 60);
        format!("{hours:02}:{minutes:02}:{seconds:02}.{:03}", self.millis)
    }

    /// `10:02:03.123 UTC Fri Nov 27 2026`
    pub(crate) fn clock(&self) -> String {
        format!(
            "{} {} {} {} {} {}",
            self.time(),
            self.zone,
            self.week,
            self.month,
            self.day,
            self.year
        )
    }

    /// `Nov 27 10:02:03.123`, as it is set.
    pub(crate) fn stamp(&self, how: Stamp) -> String {
        let year = match how.year {
            true => format!(" {}", self.year),
            false => String::new(),
        };
        let zone = match how.zone {
            true => format!(" {}", self.zone),
            false => String::new(),
        };
        let mut time = self.time();
        if !how.millis {
            time.truncate("10:02:03".len());
        }
        format!("{} {:>2}{year} {time}{zone}", self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(seconds: u64, millis: u32) -> String {
        Moment::of(seconds, millis, None).clock()
    }

    #[test]
    fn the_clock() {
        for (seconds, millis, shown) in [
            (0, 7, "00:00:00.007 UTC Thu Jan 1 1970"),
            (951_827_696, 0, "12:34:56.000 UTC Tue Feb 29 2000"),
            (1_795_791_723, 999, "15:02:03.999 UTC Fri Nov 27 2026"),
            (4_107_542_399, 0, "23:59:59.000 UTC Sun Feb 28 2100"),
            (1_798_761_599, 0, "23:59:59.000 UTC Thu Dec 31 2026"),
        ] {
            assert_eq!(clock(seconds, millis), shown);
        }
    }

    #[test]
    fn of_a_zone() {
        let zone = |minutes| Zone {
            name: "X".into(),
            minutes,
        };
        let at = |minutes| Moment::of(1_798_761_599, 0, Some(&zone(minutes)));
        assert_eq!(at(60).clock(), "00:59:59.000 X Fri Jan 1 2027");
        assert_eq!(at(-330).clock(), "18:29:59.000 X Thu Dec 31 2026");
        let stamp = |millis, zone, year| {
            let how = Stamp {
                millis,
                zone,
                year,
                ..Stamp::default()
            };
            at(60).stamp(how)
        };
        assert_eq!(stamp(true, false, false), "Jan  1 00:59:59.000");
        assert_eq!(stamp(false, true, true), "Jan  1 2027 00:59:59 X");
    }
}
