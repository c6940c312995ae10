// SPDX-License-Identifier: Apache-2.0
//! Bytes as hexadecimal text, as frames are written in requests and answers.

/// Lower case, two digits a byte.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let digit = |d: u8| char::from(if d < 10 { b'0' + d } else { b'a' + d - 10 });
    let pairs = bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]);
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(pairs);
    text
}

/// The bytes of a text, of which there is at least one; blanks and colons are skipped.
///
/// # Errors
/// One line: what is no digit, or how many digits are no whole bytes.
pub fn decode(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.chars().filter(|c| !c.is_whitespace() && *c != ':');
    let digits: Vec<u8> = digits
        .map(|c| match c.to_digit(16) {
            Some(d) => Ok(d as u8),
            None => Err(format!("'{}' is no hexadecimal digit", c.escape_default())),
        })
        .collect::<Result<_, _>>()?;
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        let n = digits.len();
        return Err(format!("{n} hexadecimal digits are not whole bytes"));
    }
    let byte = |pair: &[u8]| pair.iter().fold(0, |all, d| all << 4 | d);
    Ok(digits.chunks_exact(2).map(byte).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        assert_eq!(decode("02:0a fF").unwrap(), [2, 10, 255]);
        assert_eq!(encode(&[2, 10, 255]), "020aff");
        for (bad, why) in [
            ("", "0 hex"),
            ("0", "1 hex"),
            ("0g", "'g'"),
            ("z\u{7}", "'z'"),
        ] {
            let said = decode(bad).unwrap_err();
            assert!(said.starts_with(why) && !said.contains('\n'), "{said}");
        }
    }
}
