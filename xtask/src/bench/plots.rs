//! The plots of `docs/benchmarks`, from the results beside them: nothing is measured here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::Error;
use crate::plot::{Axis, Line, Plot};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where the results are, and where the plots go.
    #[arg(long, value_name = "DIR", default_value = "docs/benchmarks")]
    folder: PathBuf,
}

/// Draws every plot.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Error> {
    last_token_over_length(arguments)?;
    Ok(true)
}

/// 000 Figure 3: nanoseconds a byte from 2^10 to 2^24 bytes, one plot a vocabulary.
fn last_token_over_length(arguments: &Arguments) -> Result<(), Error> {
    let results = read(arguments, "incremental-flat.json")?;
    let mut plots: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for row in array(&results["flat"])? {
        let name = format!("{} {}", string(&row["text"])?, string(&row["task"])?);
        let lengths = array(&row["log2_bytes"])?.iter().filter_map(Value::as_f64);
        let times = array(&row["ns_per_byte"])?.iter().filter_map(Value::as_f64);
        let points = lengths.map(f64::exp2).zip(times).collect();
        plots
            .entry(string(&row["vocabulary"])?)
            .or_default()
            .push((name, points));
    }
    for (vocabulary, lines) in plots {
        let name = format!("incremental-flat-{vocabulary}.svg");
        let plot = Plot {
            title: &format!("{vocabulary}: the last token of every prefix, no pre-tokenizer"),
            x: Axis {
                name: "bytes of text",
                logarithmic: true,
                from: 1024.0,
            },
            y: Axis {
                name: "ns a byte",
                logarithmic: false,
                from: 0.0,
            },
            lines,
        };
        plot.write(&arguments.folder.join(&name))?;
        println!("{name}");
    }
    Ok(())
}

fn read(arguments: &Arguments, name: &str) -> Result<Value, Error> {
    let path = arguments.folder.join(name);
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(serde_json::from_str(&text)?)
}

fn array(value: &Value) -> Result<&Vec<Value>, Error> {
    value.as_array().ok_or_else(|| "not a list".into())
}

fn string(value: &Value) -> Result<String, Error> {
    let text = value.as_str().ok_or("not a text")?;
    Ok(text.to_owned())
}
