//! A list of the device's that is read page by page: it goes forward, and has an end.

/// Pages of one list at most: in each the chip passes by thousands of places.
pub const PAGES_MAX: usize = 1 << 16;

/// How far a list is read. The device is not trusted with where it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// Where the next page begins.
    cursor: u64,
    /// So many are read.
    read: usize,
}

impl Pages {
    /// Where the next page begins; 0: at the start.
    #[must_use]
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Pages that are read.
    #[must_use]
    pub fn read(&self) -> usize {
        self.read
    }

    /// A page is read, and the device says where the list goes on; 0: that was all. True: there is more.
    ///
    /// # Errors
    /// It has no end, in words.
    pub fn goes_on(&mut self, next: u64) -> Result<bool, String> {
        let page = self.read + 1;
        if next != 0 && next <= self.cursor {
            return Err(format!(
                "after page {page} at {} it goes on at {next}: that has no end",
                self.cursor
            ));
        }
        if next != 0 && page >= PAGES_MAX {
            return Err(format!("it has more than {PAGES_MAX} pages"));
        }
        (self.cursor, self.read) = (next, page);
        Ok(next != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_goes_forward_and_ends() {
        let mut pages = Pages::default();
        assert_eq!(pages.goes_on(7), Ok(true));
        for next in [7, 3] {
            let why = pages.goes_on(next).unwrap_err();
            assert_eq!(
                why,
                format!("after page 2 at 7 it goes on at {next}: that has no end")
            );
        }
        assert_eq!((pages.cursor(), pages.read()), (7, 1));
        assert_eq!(pages.goes_on(8), Ok(true));
        assert_eq!(pages.goes_on(0), Ok(false));
        let mut pages = Pages::default();
        let read = (1..).find_map(|n| Some((n, pages.goes_on(n).err()?)));
        let many = format!("it has more than {PAGES_MAX} pages");
        assert_eq!(read, Some((PAGES_MAX as u64, many)));
    }
}
