// SPDX-License-Identifier: Apache-2.0
//! Secrets of the appliance: what a configuration keeps of one, whether somebody has typed it, and what no log may have.
//!
//! ```text
//!   secret 0 WORD ──► Secret::of_plain ── argon2id, a salt of its own ──┐
//!   secret 5|8|9 HASH ──► Secret::kept ── only what can be verified ────┴──► Secret ──► Secret::is(typed)
//!   Username, Password ──► Gate::may ──► is it? ──► Gate::failed
//!   a line ──► redacted ──► logs, history
//! ```
#![deny(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

use std::fmt;
use std::sync::{Mutex, PoisonError};

use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use subtle::ConstantTimeEq as _;

mod gate;
mod md5crypt;
mod redact;

pub use gate::{Gate, Way};
pub use redact::redacted;

/// Characters of a secret that is typed.
pub const PLAIN_MOST: usize = 127;
/// KiB of memory and passes of argon2id for secrets that are made here.
const COST: (u32, u32) = (19_456, 2);
/// The most that a secret of somewhere else may cost: KiB, passes, lanes.
const COST_MOST: (u32, u32, u32) = (65_536, 8, 4);
/// The alphabet of IOS's types 8 and 9, in the order of RFC 4648; of type 5 in its own order.
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// One at a time: so many sessions that log in at once take no more memory than one.
static ONE: Mutex<()> = Mutex::new(());

/// How a secret is written in front of what is kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `5`: md5-crypt.
    Md5,
    /// `8`: PBKDF2 with SHA-256.
    Pbkdf2,
    /// `9`: scrypt as IOS has it, or argon2id.
    Nine,
}

impl Kind {
    /// What is typed.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Kind::Md5 => "5",
            Kind::Pbkdf2 => "8",
            Kind::Nine => "9",
        }
    }
}

/// What is kept of a secret. It is not shown by `{:?}`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    kind: Kind,
    text: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.kind.word())
    }
}

/// As a configuration has it: `9 $argon2id$…`
impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.text)
    }
}

impl Secret {
    /// Of what was typed, with a salt of its own.
    ///
    /// # Errors
    /// Empty, too long, or the system has no random numbers.
    pub fn of_plain(plain: &str) -> Result<Secret, String> {
        if plain.is_empty() || plain.len() > PLAIN_MOST {
            return Err(format!("% A secret has 1 to {PLAIN_MOST} characters"));
        }
        let mut salt = [0; 16];
        let had = rustix::rand::getrandom(&mut salt[..], rustix::rand::GetRandomFlags::empty());
        if had != Ok(salt.len()) {
            return Err("% No random numbers for a salt".into());
        }
        let no = |e: &dyn fmt::Display| format!("% The secret can't be kept: {e}");
        let salt = SaltString::encode_b64(&salt).map_err(|e| no(&e))?;
        let params = Params::new(COST.0, COST.1, 1, None).map_err(|e| no(&e))?;
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password(plain.as_bytes(), &salt)
            .map_err(|e| no(&e))?;
        Ok(Secret {
            kind: Kind::Nine,
            text: hash.to_string(),
        })
    }

    /// As [`fmt::Display`] writes it.
    #[must_use]
    pub fn read(text: &str) -> Option<Secret> {
        let (kind, rest) = text.split_once(' ')?;
        let kind = [Kind::Md5, Kind::Pbkdf2, Kind::Nine]
            .into_iter()
            .find(|k| k.word() == kind)?;
        Secret::kept(kind, rest)
    }

    /// What was kept somewhere: `None` if nothing typed could ever be held against it.
    #[must_use]
    pub fn kept(kind: Kind, text: &str) -> Option<Secret> {
        let right = match kind {
            Kind::Md5 => md5crypt::parts(text).is_some(),
            Kind::Pbkdf2 => ios(text, "8").is_some(),
            Kind::Nine => ios(text, "9").is_some() || argon(text).is_some(),
        };
        right.then(|| Secret {
            kind,
            text: text.into(),
        })
    }

    /// Has somebody typed it? How long this takes says nothing of how much of it was right.
    #[must_use]
    pub fn is(&self, typed: &str) -> bool {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let typed = typed.as_bytes();
        if self.kind == Kind::Md5 {
            return md5crypt::is(&self.text, typed);
        }
        if let Some(hash) = argon(&self.text) {
            return Argon2::default().verify_password(typed, &hash).is_ok();
        }
        let mut made = [0; 32];
        let want = match self.kind {
            Kind::Pbkdf2 => ios(&self.text, "8").inspect(|(salt, _)| {
                pbkdf2::pbkdf2_hmac::<sha2::Sha256>(typed, salt.as_bytes(), 20_000, &mut made);
            }),
            _ => ios(&self.text, "9").filter(|(salt, _)| {
                scrypt::Params::new(14, 1, 1, 32)
                    .is_ok_and(|p| scrypt::scrypt(typed, salt.as_bytes(), &p, &mut made).is_ok())
            }),
        };
        want.is_some_and(|(_, want)| bool::from(encode(&made).as_bytes().ct_eq(want.as_bytes())))
    }
}

/// Salt and hash of `$8$SALT$HASH`.
fn ios<'t>(text: &'t str, kind: &str) -> Option<(&'t str, &'t str)> {
    let mut parts = text.split('$');
    let all = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    let [before, of, salt, hash] = all;
    let plain = |t: &str| t.bytes().all(|b| ALPHABET.contains(&b));
    let right = before.is_empty()
        && of == kind
        && salt.len() == 14
        && hash.len() == 43
        && plain(salt)
        && plain(hash)
        && parts.next().is_none();
    right.then_some((salt, hash))
}

/// A hash of argon2id whose cost is bounded.
fn argon(text: &str) -> Option<PasswordHash<'_>> {
    let hash = PasswordHash::new(text).ok()?;
    let params = Params::try_from(&hash).ok()?;
    let cheap = params.m_cost() <= COST_MOST.0
        && params.t_cost() <= COST_MOST.1
        && params.p_cost() <= COST_MOST.2;
    let whole = hash.hash.is_some_and(|h| h.len() >= 16) && hash.salt.is_some();
    (hash.algorithm.as_str() == "argon2id" && hash.version == Some(0x13) && cheap && whole)
        .then_some(hash)
}

/// As RFC 4648 has it, without `=`, in the other alphabet.
fn encode(bytes: &[u8; 32]) -> String {
    let mut out = String::new();
    let digit = |v: u32| {
        ALPHABET
            .get((v & 63) as usize)
            .map_or('.', |b| char::from(*b))
    };
    for three in bytes.chunks(3) {
        let at = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        out.extend((0..=three.len()).map(|i| digit(bits >> (18 - 6 * i))));
    }
    out
}

/// The MD5 of octets, as `verify /md5` shows it: no secret's.
#[must_use]
pub fn md5(of: &[u8]) -> String {
    md5crypt::digest(&[of])
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(kind: Kind, text: &str) -> Secret {
        Secret::kept(kind, text).unwrap()
    }

    /// What others have made of a word that everybody knows.
    #[test]
    fn secrets_of_other_switches_are_verified() {
        for (kind, text) in [
            (Kind::Md5, "$1$28772684$iEwNOgGugqO9.bIz5sk8k/"),
            (
                Kind::Pbkdf2,
                "$8$TnGX/fE4KGHOVU$pEhnEvxrvaynpi8j4f.EMHr6M.FzU8xnZnBr/tJdFWk",
            ),
            (
                Kind::Nine,
                "$9$2MJBozw/9R3UsU$2lFhcKvpghcyw8deP25GOfyZaagyUOGBymkryvOdfo6",
            ),
        ] {
            let secret = kept(kind, text);
            assert!(secret.is("hashcat"), "{text}");
            for wrong in ["", "hashcaT", "hashcat ", "hashca"] {
                assert!(!secret.is(wrong), "{text}: {wrong:?}");
            }
            assert_eq!(secret.to_string(), format!("{} {text}", kind.word()));
            assert_eq!(Secret::read(&secret.to_string()), Some(secret));
        }
    }

    /// By `openssl passwd -1` and Python's hashlib: words of other lengths, and none at all.
    #[test]
    fn secrets_of_other_programs_are_verified() {
        let long = "a much longer secret than sixteen octets, with spaces";
        for (kind, text, word) in [
            (Kind::Md5, "$1$abc$uAXS.Zj1ZDNcW9iX1TVH2/", "a"),
            (Kind::Md5, "$1$12345678$9FNZc88u9RzFE8dslDTDR/", long),
            (Kind::Md5, "$1$x.Y/$2vcGJVhk5z3MEsnwNES7K/", ""),
            (
                Kind::Pbkdf2,
                "$8$abcdefghijklmn$56sSosOGeXXZYCr1W.d5CYPUjnLF.P.hVtm9dDESR96",
                long,
            ),
            (
                Kind::Nine,
                "$9$abcdefghijklmn$wX/YNhEY8unsvBXLKGv7bA7Gr28dywE/KypHA2wbaEw",
                long,
            ),
        ] {
            assert!(kept(kind, text).is(word), "{text}");
            assert!(!kept(kind, text).is("another"), "{text}");
        }
    }

    #[test]
    fn what_is_typed_is_kept_as_argon2id_and_never_twice_the_same() {
        let (one, other) = (
            Secret::of_plain("a b").unwrap(),
            Secret::of_plain("a b").unwrap(),
        );
        assert_ne!(one, other);
        let text = one.to_string();
        let hash = text.strip_prefix("9 ").unwrap();
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
        let again = kept(Kind::Nine, hash);
        assert!(again.is("a b") && !again.is("a  b") && !again.is(""));
        assert!(!format!("{one:?}").contains("argon2"));
        assert!(Secret::of_plain("").is_err());
        assert!(Secret::of_plain(&"x".repeat(128)).is_err());
    }

    #[test]
    fn what_nobody_could_type_is_refused() {
        for (kind, text) in [
            (Kind::Md5, "cisco"),
            (Kind::Md5, "$1$$iEwNOgGugqO9.bIz5sk8k"),
            (Kind::Md5, "$1$123456789$iEwNOgGugqO9.bIz5sk8k/"),
            (Kind::Md5, "$1$28772684$iEwNOgGugqO9.bIz5sk8k/$"),
            (
                Kind::Pbkdf2,
                "$9$2MJBozw/9R3UsU$2lFhcKvpghcyw8deP25GOfyZaagyUOGBymkryvOdfo6",
            ),
            (
                Kind::Nine,
                "$9$2MJBozw/9R3Us$2lFhcKvpghcyw8deP25GOfyZaagyUOGBymkryvOdfo6",
            ),
            (
                Kind::Nine,
                "$9$2MJBozw/9R3UsU$2lFhcKvpghcyw8deP25GOfyZaagyUOGBymkryvOdfo",
            ),
            (
                Kind::Nine,
                "$argon2i$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA",
            ),
            // 4 GiB of memory for one who only knocks
            (
                Kind::Nine,
                "$argon2id$v=19$m=4194304,t=1,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA",
            ),
            (Kind::Nine, "$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ"),
            (Kind::Nine, ""),
        ] {
            assert_eq!(Secret::kept(kind, text), None, "{text}");
        }
        assert!(
            Secret::kept(
                Kind::Nine,
                "$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA"
            )
            .is_some()
        );
    }
}
