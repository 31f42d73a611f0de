//! The formats of Mistral against the libraries that read them, which are Python.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bytepair::{Pipeline, ReadLimits, Tokenizer};

use super::{Claim, Texts};
use crate::Error;
use crate::corpora::Corpus;
use crate::reduce::reduce;

/// How a text becomes ids here.
type Encode = Box<dyn Fn(&str) -> Result<Vec<u32>, String>>;

pub(super) fn compare(folder: &Path, texts: &Texts) -> Result<Vec<Claim>, Error> {
    let python = environment()?;
    let limits = ReadLimits::default();
    let mut claims = Vec::new();

    let packed = std::fs::read(folder.join("mistral_tekken_240911/tekken_240911.json.gz"))?;
    let mut file = Vec::new();
    flate2::read::MultiGzDecoder::new(&*packed).read_to_end(&mut file)?;
    // The library wants it unpacked.
    let path = target().join("tekken_240911.json");
    std::fs::write(&path, &file)?;
    let tokenizer = Tokenizer::from_tekken(&file, &limits)?;
    let ours: Encode =
        Box::new(move |text| tokenizer.encode(text).map_err(|error| error.to_string()));
    claims.extend(sides(
        "mistral_tekken_240911",
        &ours,
        &python,
        ["tekken", text(&path)?],
        texts,
    )?);

    let path = folder.join("mistral_v3_spm/tokenizer.model");
    let pipeline = Pipeline::from_sentencepiece_model(&std::fs::read(&path)?, &limits)?;
    let ours: Encode =
        Box::new(move |text| pipeline.encode(text).map_err(|error| error.to_string()));
    let arguments = ["sentencepiece", text(&path)?];
    claims.extend(sides("mistral_v3_spm", &ours, &python, arguments, texts)?);
    Ok(claims)
}

/// The claims about one tokenizer.
fn sides(
    name: &str,
    ours: &Encode,
    python: &Path,
    arguments: [&str; 2],
    texts: &Texts,
) -> Result<Vec<Claim>, Error> {
    let mut library = Library::start(python, arguments)?;
    let whole: Vec<&str> = texts.corpora.iter().map(|corpus| &*corpus.text).collect();
    let documents: Vec<&str> = texts.corpora.iter().flat_map(Corpus::documents).collect();
    let cases: Vec<&str> = texts.cases.iter().map(String::as_str).collect();
    let random: Vec<&str> = texts.random.iter().map(String::as_str).collect();
    let kinds = [
        ("corpora whole", whole),
        ("documents", documents),
        ("shared cases", cases),
        ("random Unicode", random),
    ];
    let mut claims = Vec::new();
    for (kind, texts) in kinds {
        let mut claim = Claim::new(format!("{name}, {kind}"));
        for text in texts {
            claim.texts += 1;
            claim.calls += 1;
            let Some(expected) = library.ids(text)? else {
                claim.refused += 1;
                continue;
            };
            claim.tokens += expected.len();
            if ours(text).as_ref() == Ok(&expected) {
                continue;
            }
            claim.differences += 1;
            if claim.differences == 1 {
                let smallest = reduce(text, |text| match library.ids(text) {
                    Ok(Some(expected)) => ours(text) != Ok(expected),
                    _ => false,
                });
                claim.first = format!(
                    "{smallest:?}: ours {:?}, the library {:?}",
                    ours(&smallest),
                    library.ids(&smallest)?
                );
            }
        }
        claims.push(claim);
    }
    Ok(claims)
}

/// A running `mistral.py`.
struct Library {
    child: std::process::Child,
    questions: std::process::ChildStdin,
    answers: BufReader<std::process::ChildStdout>,
}

impl Library {
    fn start(python: &Path, arguments: [&str; 2]) -> Result<Self, Error> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/models/mistral.py");
        let mut child = Command::new(python)
            .arg(script)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let questions = child.stdin.take().ok_or("no pipe")?;
        let answers = child.stdout.take().ok_or("no pipe")?;
        Ok(Self {
            child,
            questions,
            answers: BufReader::new(answers),
        })
    }

    /// `None` where the library refuses the text.
    fn ids(&mut self, text: &str) -> Result<Option<Vec<u32>>, Error> {
        writeln!(self.questions, "{}", serde_json::to_string(text)?)?;
        self.questions.flush()?;
        let mut line = String::new();
        match self.answers.read_line(&mut line)? {
            0 => Err("the library broke off".into()),
            _ => Ok(serde_json::from_str(&line)?),
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // It has nothing to lose; and it may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The Python of a virtual environment with both libraries, made on the first run.
fn environment() -> Result<PathBuf, Error> {
    let folder = target().join("python");
    let python = folder.join("bin/python");
    let check = Command::new(&python)
        .args(["-c", "import sentencepiece, mistral_common, tiktoken"])
        .stderr(Stdio::null())
        .status();
    if check.is_ok_and(|status| status.success()) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "sentencepiece",
        "mistral-common",
    ];
    run(Command::new(&python).args(install).arg("tiktoken"))?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), Error> {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(format!("{command:?} failed").into()),
    }
}

/// The folder for what is built.
fn target() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
    std::env::var_os("CARGO_TARGET_DIR").map_or(own, PathBuf::from)
}

fn text(path: &Path) -> Result<&str, Error> {
    path.to_str().ok_or_else(|| "a path that is no text".into())
}
