//! Time: no input makes it quadratic. Bounds are wide, since machines differ and are shared; what
//! was measured stands in the line.

use bytepair::{Pattern, ReadLimits, Tokenizer};

use super::support::{
    Random, Stopwatch, case_file, encodings, ensure, name_of, on_small_stack, text_of,
};
use super::{Checked, Claims, Outcome, Settings};

const UNITS: [&str; 13] = [
    "a", "A", "^", "_", " ", "\n", "\t ", "'s", "中", "\u{301}", "\u{200D}", "\u{3000}", "Ab",
];

pub(super) fn check(claims: &mut Claims) {
    claims.check(
        "time is linear in repeated units and random letters, on a stack of 256 KiB (P01, P02)",
        |settings, _| on_small_stack(|| linear(settings))?,
    );
    claims.check("a text of 2^20 letters or blanks, or one line of base64, is encoded within 2 s (must hold 6)", |settings, _| {
        on_small_stack(|| long_pieces(settings))?
    });
    claims.check(
        "100,000 Chinese characters are counted within 0.1 s (P03)",
        |_, _| {
            let characters = [
                "的", "一", "是", "在", "不", "了", "有", "和", "人", "这", "中", "大", "龘", "靐",
            ];
            let mut random = Random::new(3);
            let text: String = (0..100_000).map(|_| random.pick(&characters)).collect();
            bounded(&[("100,000 characters", text)], 0.1)
        },
    );
    claims.check(
        "1 MB of JSON schema without blanks is encoded within 0.5 s (P04)",
        |_, _| bounded(&[("1 MB", json_schema())], 0.5),
    );
    claims.check(
        "a pattern that backtracks without end gives an answer or an error (P06)",
        |_, _| backtracking(),
    );
}

fn letters(count: usize, seed: u64) -> String {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| char::from(b'a' + random.below(26) as u8))
        .collect()
}

/// The least time of `runs` encodings.
fn least(tokenizer: &Tokenizer, text: &str, runs: usize) -> Result<f64, String> {
    let mut ids = Vec::with_capacity(text.len());
    let mut least = f64::INFINITY;
    for _ in 0..runs {
        ids.clear();
        let start = Stopwatch::start();
        tokenizer.encode_into(text, &mut ids).map_err(text_of)?;
        least = least.min(start.seconds());
    }
    Ok(least)
}

fn linear(settings: &Settings) -> Outcome {
    const MOST: f64 = 6.0;
    let sizes: &[usize] = settings.choose(&[1 << 16, 1 << 18], &[1 << 16, 1 << 18, 1 << 20]);
    let mut worst = (0.0, String::new());
    let mut cases = 0;
    for tokenizer in encodings()? {
        for number in 0..=UNITS.len() {
            let unit = UNITS.get(number);
            let text = |size: usize| match unit {
                Some(unit) => unit.repeat(size),
                None => letters(size, 17),
            };
            for pair in sizes.windows(2) {
                let (small, large) = (text(pair[0]), text(pair[1]));
                // Other work on the machine can only make a time longer, so the least of each counts.
                // A ratio of one round is never taken: a disturbed small text would make it pass.
                let (mut of_small, mut of_large) = (f64::INFINITY, f64::INFINITY);
                let mut ratio = f64::INFINITY;
                for round in 1..=40 {
                    of_small = of_small.min(least(&tokenizer, &small, 3)?);
                    of_large = of_large.min(least(&tokenizer, &large, 3)?);
                    ratio = of_large / of_small;
                    if round >= 2 && ratio < MOST {
                        break;
                    }
                }
                let place = || {
                    let unit = unit.map_or("random letters".to_owned(), |unit| format!("{unit:?}"));
                    format!("{}, {unit} * {}", name_of(&tokenizer), pair[1])
                };
                ensure(ratio < MOST, || {
                    format!(
                        "{}: {ratio:.1} times the time of a quarter ({:.1} ms)",
                        place(),
                        of_large * 1e3
                    )
                })?;
                cases += 1;
                if ratio > worst.0 {
                    worst = (ratio, place());
                }
            }
        }
        tokenizer.clear_scratch();
    }
    Ok(Checked::with_note(
        cases,
        format!(
            "t(4n)/t(n) at most {:.1} ({}), bound {MOST}",
            worst.0, worst.1
        ),
    ))
}

fn long_pieces(settings: &Settings) -> Outcome {
    let mut random = Random::new(64);
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let base64 = (0..1_000_000)
        .map(|_| char::from(alphabet[random.below(64)]))
        .collect();
    let mut texts = vec![
        ("a", "a".repeat(1 << 20)),
        ("blanks", " ".repeat(1 << 20)),
        ("base64", base64),
    ];
    if settings.full {
        texts.push(("random letters", letters(1 << 20, 5)));
    }
    bounded(&texts, 2.0)
}

/// Encodes and counts each text with each encoding within so many seconds.
fn bounded(texts: &[(&str, String)], bound: f64) -> Outcome {
    let mut slowest = (0.0, String::new());
    let mut cases = 0;
    for tokenizer in encodings()? {
        for (name, text) in texts {
            let start = Stopwatch::start();
            let ids = tokenizer.encode(text).map_err(text_of)?;
            let mut encoded = start.seconds();
            let start = Stopwatch::start();
            let count = tokenizer.count(text).map_err(text_of)?;
            let mut counted = start.seconds();
            if encoded.max(counted) >= bound {
                encoded = encoded.min(least(&tokenizer, text, 3)?);
                counted = counted.min(encoded);
            }
            let seconds = encoded.max(counted);
            let place = || format!("{}, {name}", name_of(&tokenizer));
            ensure(count == ids.len(), || {
                format!("{}: count {count} of {}", place(), ids.len())
            })?;
            let back = tokenizer.decode(&ids);
            ensure(back.as_deref() == Ok(text), || {
                format!("{}: does not come back", place())
            })?;
            ensure(seconds < bound, || format!("{}: {seconds:.3} s", place()))?;
            cases += 1;
            if seconds > slowest.0 {
                slowest = (seconds, place());
            }
        }
    }
    Ok(Checked::with_note(
        cases,
        format!("slowest {:.1} ms ({})", slowest.0 * 1e3, slowest.1),
    ))
}

/// The schema of made-up tools as one line.
fn json_schema() -> String {
    let mut schema = String::from("[");
    let mut number = 0;
    while schema.len() < 1_000_000 {
        schema.push_str(&format!(
            "{{\"type\":\"function\",\"function\":{{\"name\":\"get_item_{number}\",\"strict\":true,\
             \"parameters\":{{\"type\":\"object\",\"properties\":{{\"city_name\":{{\"type\":\"string\",\
             \"description\":\"name_{number}\"}},\"unit\":{{\"enum\":[\"C\",\"F\",null]}},\"limit\":\
             {{\"type\":\"integer\",\"minimum\":{number}}}}},\"required\":[\"city_name\"]}}}}}},"
        ));
        number += 1;
    }
    schema.pop();
    schema.push(']');
    schema
}

fn backtracking() -> Outcome {
    let file = case_file("load/ok.tiktoken")?;
    let text = "a".repeat(40) + "b";
    let specials: [(&str, u32); 0] = [];
    let mut answers = Vec::new();
    let patterns = [
        r"(a+)+$",
        r"(a|aa)+$",
        r"(?=(a+)+$)a",
        r"(a+)+(?<!b)$",
        r"(\w+\s?)+(?!\w)c",
    ];
    for pattern in patterns {
        let start = Stopwatch::start();
        let limits = ReadLimits::default();
        let tokenizer = Tokenizer::from_tiktoken(&file, Pattern::new(pattern), specials, &limits);
        let tokenizer = tokenizer.map_err(|error| format!("{pattern}: {error}"))?;
        match tokenizer.encode(&text) {
            Ok(ids) => {
                let back = tokenizer.decode(&ids);
                ensure(back.as_deref() == Ok(&text), || {
                    format!("{pattern}: does not come back")
                })?;
                answers.push(format!("{pattern} runs"));
            }
            Err(error) => {
                ensure(error.step_limit().is_some(), || {
                    format!("{pattern}: {error}")
                })?;
                answers.push(format!("{pattern} gives up"));
            }
        }
        let seconds = start.seconds();
        ensure(seconds < 2.0, || format!("{pattern}: {seconds:.1} s"))?;
    }
    Ok(Checked::with_note(
        patterns.len() as u64,
        answers.join(", "),
    ))
}
