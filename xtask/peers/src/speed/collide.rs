//! Words that fall on one place in a table whose hash is CRC32C, as gigatoken's is: a linear map without
//! a secret, so that linear algebra finds them.

/// Letters of a word, without the space before it.
const LETTERS: usize = 13;

/// Some `len` bytes of words, all different, all with the same CRC32C, each after a space.
pub(super) fn crc32c(len: usize) -> String {
    let kernel = kernel();
    let mut text = String::with_capacity(len + LETTERS + 1);
    let mut number = 0_u64;
    while text.len() < len && number < 1 << kernel.len() {
        let chosen = kernel.iter().enumerate();
        let bits = chosen.filter(|(at, _)| number >> at & 1 == 1);
        let word = bits.fold(0, |word, (_, vector)| word ^ vector);
        number += 1;
        let nibbles = (0..LETTERS).map(|at| (word >> (4 * at) & 15) as u8);
        // Of the sixteen values of four bits after 0x60, the first is no letter.
        if nibbles.clone().all(|nibble| nibble != 0) {
            text.push(' ');
            text.extend(nibbles.map(|nibble| char::from(0x60 + nibble)));
        }
    }
    text
}

/// A basis of the words, four bits a letter, that change nothing in the sum.
fn kernel() -> Vec<u64> {
    // Rows of what a bit does to the sum, and which bits made the row; those with a pivot reduce the others.
    let mut rows: Vec<(u32, u64)> = Vec::new();
    let mut kernel = Vec::new();
    for bit in 0..4 * LETTERS {
        let mut word = [0; LETTERS];
        word[bit / 4] = 1 << (bit % 4);
        let (mut sum, mut made) = (crc(&word), 1_u64 << bit);
        for &(pivot, by) in &rows {
            if sum ^ pivot < sum {
                sum ^= pivot;
                made ^= by;
            }
        }
        match sum {
            0 => kernel.push(made),
            _ => {
                rows.push((sum, made));
                rows.sort_unstable_by_key(|&(sum, _)| std::cmp::Reverse(sum));
            }
        }
    }
    kernel
}

/// CRC32C, without the first and last inversion: those add the same to all words of one length.
fn crc(bytes: &[u8]) -> u32 {
    let mut sum = 0_u32;
    for &byte in bytes {
        sum ^= u32::from(byte);
        for _ in 0..8 {
            sum = sum >> 1 ^ if sum & 1 == 1 { 0x82F6_3B78 } else { 0 };
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{crc, crc32c};

    /// The check value of the catalogue of such sums: of "123456789", with both inversions.
    #[test]
    fn the_sum_is_crc32c() {
        let mut padded = [0; 9];
        padded.copy_from_slice(b"123456789");
        // The first inversion is the same as inverting the first four bytes.
        padded[..4].iter_mut().for_each(|byte| *byte ^= 0xFF);
        assert_eq!(!crc(&padded), 0xE306_9283);
    }

    #[test]
    fn all_words_differ_and_have_one_sum() {
        let text = crc32c(100_000);
        let words: Vec<&str> = text.split(' ').skip(1).collect();
        let distinct: HashSet<&str> = words.iter().copied().collect();
        assert!(words.len() > 5_000 && distinct.len() == words.len());
        let sums: HashSet<u32> = words.iter().map(|word| crc(word.as_bytes())).collect();
        assert_eq!(sums.len(), 1);
        assert!(
            text.bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_lowercase())
        );
    }
}
