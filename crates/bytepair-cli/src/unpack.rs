//! Input that is packed with gzip or zstd, told by its first bytes.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const GZIP: [u8; 2] = [0x1F, 0x8B];
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Frames of zstd that hold no text have 16 marks, which differ in their first byte.
const ZSTD_SKIPPED: [u8; 3] = [0x2A, 0x4D, 0x18];

/// What `reader` gives, unpacked where it is packed, whatever the file is called.
pub(crate) fn unpack<'a>(
    mut reader: Box<dyn Read + Send + 'a>,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    let mut start = Vec::new();
    (&mut reader).take(4).read_to_end(&mut start)?;
    let is_gzip = start.starts_with(&GZIP);
    let is_zstd = start == ZSTD
        || start.ends_with(&ZSTD_SKIPPED) && start.first().is_some_and(|byte| byte >> 4 == 5);
    let whole = Cursor::new(start).chain(reader);
    if is_gzip {
        return Ok(Box::new(MultiGzDecoder::new(BufReader::new(whole))));
    }
    if is_zstd {
        return Ok(Box::new(Zstd {
            source: BufReader::new(whole),
            decoder: FrameDecoder::new(),
            is_in_frame: false,
        }));
    }
    Ok(Box::new(whole))
}

/// The frames of a zstd file, one behind the other.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame {
                if self.source.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                match self.decoder.init(&mut self.source) {
                    Ok(()) => self.is_in_frame = true,
                    Err(FrameDecoderError::ReadFrameHeaderError(
                        ReadFrameHeaderError::SkipFrame { length, .. },
                    )) => {
                        let mut skipped = (&mut self.source).take(length.into());
                        io::copy(&mut skipped, &mut io::sink())?;
                    }
                    Err(error) => return Err(io::Error::other(error)),
                }
                continue;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = self.decoder.decode_blocks(&mut self.source, one);
                decoded.map_err(io::Error::other)?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.is_in_frame = false;
            let stated = self.decoder.get_checksum_from_data();
            if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
                return Err(io::Error::other("the checksum of a zstd frame is another"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, GzBuilder};
    use std::io::Write;

    /// `printf 'the cat and the hat\n' | zstd`, and the same with another text.
    const FRAMES: [&[u8]; 2] = [
        b"(\xB5/\xFD\x04X\xA1\x00\x00the cat and the hat\n\xE1\xCB[g",
        b"(\xB5/\xFD\x04XA\x00\x00the end\n_\xBD\x8E&",
    ];

    /// `"the cat and the hat "` 60 times, packed by `zstd -19`.
    const PACKED: &[u8] =
        b"(\xB5/\xFD\x04h\xE5\x00\x00\xA0the cat and the hat \x01\x002\xB9\x7F2\x01\xA9\x8Af\x9D";

    fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        unpack(Box::new(packed))?.read_to_end(&mut text)?;
        Ok(text)
    }

    #[test]
    fn members_of_gzip_and_frames_of_zstd_are_read_one_behind_the_other() {
        let gzip = |text: &[u8]| {
            let mut writer = GzBuilder::new().write(Vec::new(), Compression::fast());
            writer.write_all(text).expect("memory");
            writer.finish().expect("memory")
        };
        let members = [gzip(b"the cat"), gzip(b""), gzip(b" and the hat")].concat();
        assert_eq!(unpacked(&members).expect("gzip"), b"the cat and the hat");
        let skipped = b"\x53\x2A\x4D\x18\x03\0\0\0abc";
        let frames = [&skipped[..], FRAMES[0], skipped, FRAMES[1]].concat();
        let expected = b"the cat and the hat\nthe end\n";
        assert_eq!(unpacked(&frames).expect("zstd"), expected);
        let expected = b"the cat and the hat ".repeat(60);
        assert!(PACKED.len() < expected.len() / 10);
        assert_eq!(unpacked(PACKED).expect("zstd"), expected);
    }

    #[test]
    fn what_is_broken_off_or_damaged_is_an_error() {
        let frame = FRAMES[0];
        for end in 4..frame.len() {
            assert!(unpacked(&frame[..end]).is_err(), "{end} bytes");
        }
        for place in 8..frame.len() {
            let mut damaged = frame.to_vec();
            damaged[place] ^= 1;
            assert!(unpacked(&damaged).is_err(), "byte {place}");
        }
    }

    #[test]
    fn other_bytes_are_themselves() {
        for text in [&b""[..], b"a", b"\x1F", b"\x28\xB5\x2F", b"plain text"] {
            assert_eq!(unpacked(text).expect("plain"), text);
        }
    }
}
