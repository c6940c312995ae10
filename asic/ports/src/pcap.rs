//! Capture files (draft-ietf-opsawg-pcap): both byte orders, micro- and nanoseconds, Ethernet.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

use tandem_packet::{Buffer, Frame, MAX_FRAME, Offload, segment};

use crate::port::{RxStats, TxStats};
use crate::spec::Pace;

const MAGIC_US: u32 = 0xa1b2_c3d4;
const MAGIC_NS: u32 = 0xa1b2_3c4d;
const LINKTYPE_ETHERNET: u32 = 1;
const SNAPLEN: u32 = 262_144;

/// What is wrong with a capture.
#[derive(Debug, thiserror::Error)]
pub enum PcapError {
    /// The file can't be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Not a pcap file (pcapng is not read).
    #[error("no pcap file (magic number {0:#010x}); convert pcapng with `tcpdump -r IN -w OUT`")]
    Magic(u32),
    /// Another link type than Ethernet.
    #[error("link type {0} is not Ethernet (1)")]
    LinkType(u32),
    /// Frames are not whole.
    #[error("frame {number} was cut by snaplen ({captured} of {length} bytes): record with -s 0")]
    Cut {
        /// Number of the frame, from 1.
        number: u64,
        /// Bytes in the file.
        captured: u32,
        /// Bytes on the wire.
        length: u32,
    },
    /// A frame is longer than any port takes.
    #[error("frame {number} has {length} bytes, at most {MAX_FRAME} are possible")]
    TooLong {
        /// Number of the frame, from 1.
        number: u64,
        /// Its bytes.
        length: u32,
    },
}

/// One record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    time_ns: u64,
    captured: u32,
    length: u32,
}

/// Reads a capture frame by frame.
pub struct Reader<R> {
    from: R,
    swapped: bool,
    nanos: bool,
    number: u64,
}

impl<R: Read> Reader<R> {
    /// Reads the file header.
    pub fn new(mut from: R) -> Result<Self, PcapError> {
        let mut head = [0u8; 24];
        from.read_exact(&mut head)?;
        let magic = word(&head, 0, false);
        let (swapped, nanos) = match (magic, magic.swap_bytes()) {
            (MAGIC_US, _) => (false, false),
            (MAGIC_NS, _) => (false, true),
            (_, MAGIC_US) => (true, false),
            (_, MAGIC_NS) => (true, true),
            _ => return Err(PcapError::Magic(magic)),
        };
        let link = word(&head, 20, swapped) & 0x0fff_ffff;
        if link != LINKTYPE_ETHERNET {
            return Err(PcapError::LinkType(link));
        }
        Ok(Reader {
            from,
            swapped,
            nanos,
            number: 0,
        })
    }

    /// The next frame into `out`: its time and length; `None` at the end of the file. A record
    /// that ends in the middle counts as the end: a capture may still be written to.
    pub fn next(&mut self, out: &mut [u8]) -> Result<Option<(u64, usize)>, PcapError> {
        let Some(record) = self.record()? else {
            return Ok(None);
        };
        let Some(room) = out.get_mut(..record.captured as usize) else {
            return Err(PcapError::TooLong {
                number: self.number,
                length: record.captured,
            });
        };
        Ok(match whole(&mut self.from, room)? {
            true => Some((record.time_ns, room.len())),
            false => None,
        })
    }

    fn record(&mut self) -> Result<Option<Record>, PcapError> {
        let mut head = [0u8; 16];
        if !whole(&mut self.from, &mut head)? {
            return Ok(None);
        }
        self.number += 1;
        let sub = u64::from(word(&head, 4, self.swapped));
        let record = Record {
            time_ns: u64::from(word(&head, 0, self.swapped)) * 1_000_000_000
                + if self.nanos { sub } else { sub * 1000 },
            captured: word(&head, 8, self.swapped),
            length: word(&head, 12, self.swapped),
        };
        if record.captured < record.length {
            return Err(PcapError::Cut {
                number: self.number,
                captured: record.captured,
                length: record.length,
            });
        }
        if record.captured as usize > MAX_FRAME {
            return Err(PcapError::TooLong {
                number: self.number,
                length: record.captured,
            });
        }
        Ok(Some(record))
    }
}

/// Fills `out`; false at the end of the file.
fn whole(from: &mut impl Read, out: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(out) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}

fn word(b: &[u8], at: usize, swapped: bool) -> u32 {
    let v = b
        .get(at..at + 4)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u32::from_le_bytes);
    if swapped { v.swap_bytes() } else { v }
}

/// The file header that everything here writes: little endian, nanoseconds, Ethernet.
pub fn file_header() -> [u8; 24] {
    let mut h = [0u8; 24];
    let words: [(usize, u32); 4] = [
        (0, MAGIC_NS),
        (4, 2 | 4 << 16),
        (16, SNAPLEN),
        (20, LINKTYPE_ETHERNET),
    ];
    for (at, v) in words {
        if let Some(to) = h.get_mut(at..at + 4) {
            to.copy_from_slice(&v.to_le_bytes());
        }
    }
    h
}

/// A record's header for a frame of `len` bytes at `time_ns` since 1970.
pub fn record_header(time_ns: u64, len: usize) -> [u8; 16] {
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    let mut h = [0u8; 16];
    let words = [
        (time_ns / 1_000_000_000) as u32,
        (time_ns % 1_000_000_000) as u32,
        len,
        len,
    ];
    for (to, v) in h.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&v.to_le_bytes());
    }
    h
}

/// Plays a capture into the switch.
pub struct PcapRx {
    reader: Reader<BufReader<File>>,
    pace: Pace,
    /// Frame that is read and not due yet.
    waiting: Option<(u64, usize)>,
    buffer: Buffer,
    /// Clock at the first frame, and its time stamp.
    origin: Option<(u64, u64)>,
    ended: bool,
    stats: RxStats,
}

impl PcapRx {
    /// Opens a capture. A regular file is read through once, so that a frame that was cut by
    /// snaplen is refused before anything is played.
    pub fn open(path: &Path, pace: Pace) -> Result<Self, PcapError> {
        let file = File::open(path)?;
        if file.metadata()?.is_file() {
            let mut scan = Reader::new(BufReader::new(&file))?;
            while let Some(record) = scan.record()? {
                scan.from.seek_relative(i64::from(record.captured))?;
            }
        }
        let mut file = file;
        if file.metadata()?.is_file() {
            file.rewind()?;
        }
        Ok(PcapRx {
            reader: Reader::new(BufReader::new(file))?,
            pace,
            waiting: None,
            buffer: Buffer::new(),
            origin: None,
            ended: false,
            stats: RxStats::default(),
        })
    }

    /// The capture is over: link down.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// When the next frame is due on the caller's clock; `None` at the end.
    pub fn due(&mut self, now_ns: u64) -> Option<u64> {
        let (time, _) = self.peek()?;
        let (start, first) = *self.origin.get_or_insert((now_ns, time));
        Some(match self.pace {
            Pace::Fast => now_ns,
            Pace::Timed => start.saturating_add(time.saturating_sub(first)),
        })
    }

    /// Hands up to `budget` frames that are due to `f`.
    pub fn receive<F>(&mut self, now_ns: u64, budget: usize, f: &mut F) -> usize
    where
        F: FnMut(&mut Frame<'_>),
    {
        let mut done = 0;
        while done < budget && self.due(now_ns).is_some_and(|due| due <= now_ns) {
            self.waiting = None;
            self.stats.frames += 1;
            f(&mut self.buffer.frame(Offload::NONE));
            done += 1;
        }
        done
    }

    /// Counters.
    pub fn stats(&self) -> RxStats {
        self.stats
    }

    fn peek(&mut self) -> Option<(u64, usize)> {
        if self.waiting.is_none() && !self.ended {
            match self.reader.next(self.buffer.room()) {
                Ok(Some((time, len))) => {
                    self.buffer.set_len(len);
                    self.waiting = Some((time, len));
                }
                Ok(None) => self.ended = true,
                Err(e) => {
                    tracing::error!("capture stopped: {e}");
                    self.ended = true;
                }
            }
        }
        self.waiting
    }
}

/// Writes what leaves by the port.
pub struct PcapTx {
    to: BufWriter<File>,
    scratch: Buffer,
    /// Added to the caller's clock to give the time since 1970.
    epoch_ns: u64,
    stats: TxStats,
}

impl PcapTx {
    /// Makes (or empties) a capture. `epoch_ns` is the time since 1970 at the caller's time 0.
    pub fn create(path: &Path, epoch_ns: u64) -> io::Result<Self> {
        let mut to = BufWriter::new(File::create(path)?);
        to.write_all(&file_header())?;
        to.flush()?;
        Ok(PcapTx {
            to,
            scratch: Buffer::new(),
            epoch_ns,
            stats: TxStats::default(),
        })
    }

    /// Writes a frame as it would be on the wire: segmented, checksummed.
    pub fn queue(&mut self, frame: &Frame<'_>, now_ns: u64) {
        let PcapTx {
            to,
            scratch,
            epoch_ns,
            stats,
        } = self;
        let time = epoch_ns.saturating_add(now_ns);
        let cut = segment::segment_frame(frame, scratch, |bytes| {
            let written = to
                .write_all(&record_header(time, bytes.len()))
                .and_then(|()| to.write_all(bytes));
            match written {
                Ok(()) => stats.frames += 1,
                Err(_) => stats.dropped += 1,
            }
        });
        if cut.is_err() {
            self.stats.dropped += 1;
        }
    }

    /// Gives the file what was written so far.
    pub fn flush(&mut self) {
        let _ = self.to.flush();
    }

    /// Counters.
    pub fn stats(&self) -> TxStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(swapped: bool, nanos: bool, records: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
        let w = |v: u32| {
            if swapped {
                v.to_be_bytes()
            } else {
                v.to_le_bytes()
            }
        };
        let mut out = Vec::new();
        out.extend(w(if nanos { MAGIC_NS } else { MAGIC_US }));
        out.extend(w(if swapped { 2 << 16 | 4 } else { 2 | 4 << 16 }));
        for v in [0, 0, SNAPLEN, 1] {
            out.extend(w(v));
        }
        for (s, sub, len, data) in records {
            for v in [*s, *sub, data.len() as u32, *len] {
                out.extend(w(v));
            }
            out.extend(*data);
        }
        out
    }

    #[test]
    fn byte_orders_and_units() {
        for swapped in [false, true] {
            for nanos in [false, true] {
                let bytes = capture(swapped, nanos, &[(1, 2, 3, &[7, 8, 9]), (2, 0, 1, &[5])]);
                let mut r = Reader::new(&bytes[..]).unwrap();
                let mut out = [0; 100];
                let (time, len) = r.next(&mut out).unwrap().unwrap();
                assert_eq!(time, 1_000_000_000 + if nanos { 2 } else { 2000 });
                assert_eq!(out[..len], [7, 8, 9]);
                assert_eq!(r.next(&mut out).unwrap(), Some((2_000_000_000, 1)));
                assert_eq!(r.next(&mut out).unwrap(), None);
            }
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = file_header().to_vec();
        bytes.extend(record_header(5_000_000_007, 2));
        bytes.extend([1, 2]);
        let mut r = Reader::new(&bytes[..]).unwrap();
        assert_eq!(r.next(&mut [0; 9]).unwrap(), Some((5_000_000_007, 2)));
    }

    #[test]
    fn cut_foreign_and_overlong_are_refused() {
        let bytes = capture(false, false, &[(0, 0, 4, &[1, 2, 3])]);
        let e = Reader::new(&bytes[..])
            .unwrap()
            .next(&mut [0; 9])
            .unwrap_err();
        assert!(e.to_string().contains("3 of 4 bytes"), "{e}");
        let mut bytes = capture(false, false, &[]);
        bytes[20] = 113;
        assert!(matches!(
            Reader::new(&bytes[..]),
            Err(PcapError::LinkType(113))
        ));
        assert!(matches!(
            Reader::new(
                &[
                    0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                    0, 0
                ][..]
            ),
            Err(PcapError::Magic(_))
        ));
        let mut bytes = capture(false, false, &[(0, 0, 0, &[])]);
        for b in &mut bytes[32..36] {
            *b = 0xff;
        }
        assert!(matches!(
            Reader::new(&bytes[..]).unwrap().next(&mut [0; 9]),
            Err(PcapError::TooLong { .. })
        ));
    }

    /// Arbitrary bytes give an error or an end, never a panic or an endless loop.
    #[test]
    fn fuzz_reader() {
        let mut x = 1u64;
        let mut rnd = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x
        };
        for _ in 0..20_000 {
            let mut bytes = capture(rnd() & 1 == 0, rnd() & 1 == 0, &[(0, 0, 3, &[1, 2, 3])]);
            bytes.truncate(rnd() as usize % (bytes.len() + 1));
            for _ in 0..rnd() % 4 {
                let at = rnd() as usize % bytes.len().max(1);
                if let Some(b) = bytes.get_mut(at) {
                    *b = rnd() as u8;
                }
            }
            if let Ok(mut r) = Reader::new(&bytes[..]) {
                let mut out = [0; 64];
                while let Ok(Some(_)) = r.next(&mut out) {}
            }
        }
    }

    #[test]
    fn a_timed_capture_waits() {
        let dir = std::env::temp_dir().join(format!("tandem-pcap-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("in.pcap");
        std::fs::write(
            &path,
            capture(false, true, &[(9, 0, 2, &[1, 2]), (9, 500, 2, &[3, 4])]),
        )
        .unwrap();
        let mut rx = PcapRx::open(&path, Pace::Timed).unwrap();
        let mut seen = Vec::new();
        assert_eq!(
            rx.receive(100, 9, &mut |f: &mut Frame<'_>| seen
                .push(f.bytes().to_vec())),
            1
        );
        assert_eq!(rx.due(100), Some(600));
        assert_eq!(rx.receive(599, 9, &mut |_: &mut Frame<'_>| {}), 0);
        assert_eq!(
            rx.receive(600, 9, &mut |f: &mut Frame<'_>| seen
                .push(f.bytes().to_vec())),
            1
        );
        assert_eq!(seen, [[1, 2], [3, 4]]);
        assert_eq!(rx.due(700), None);
        assert!(rx.ended());
        std::fs::write(
            &path,
            capture(false, true, &[(9, 0, 2, &[1, 2]), (9, 0, 9, &[1])]),
        )
        .unwrap();
        assert!(matches!(
            PcapRx::open(&path, Pace::Fast),
            Err(PcapError::Cut { number: 2, .. })
        ));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
