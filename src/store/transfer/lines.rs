//! One record as text, and records from a text with the lines that they begin on.

use std::io::{self, BufRead, Read};

use super::Format;
use crate::engine::VALUE_BYTES_MAX;
use crate::store::record::Record;

/// Longest line of JSON: the largest record, with every byte of it escaped.
const LINE_BYTES_MAX: u64 = 6 * VALUE_BYTES_MAX as u64;

/// Appends the text of `record` to `text`, behind what comes before the first record. Answers where it begins.
pub(super) fn write<R: Record>(record: &R, format: Format, text: &mut Vec<u8>) -> Result<usize, String> {
    match format {
        Format::JsonLines => {
            serde_json::to_writer(&mut *text, record).map_err(|error| error.to_string())?;
            text.push(b'\n');
            Ok(0)
        }
        Format::Csv => {
            let mut writer = csv::Writer::from_writer(&mut *text);
            writer.serialize(record).and_then(|()| Ok(writer.flush()?)).map_err(|error| error.to_string())?;
            drop(writer);
            let head = text.iter().position(|&byte| byte == b'\n');
            head.map(|end| end + 1).ok_or_else(|| "it has no named fields".to_owned())
        }
    }
}

/// The record that [`write()`] wrote.
pub(super) fn read_back<R: Record>(text: &[u8], format: Format) -> Result<R, String> {
    match read(text, format).next() {
        Some(Ok(Line { record, .. })) => record,
        Some(Err(error)) => Err(error.to_string()),
        None => Err("nothing is there".to_owned()),
    }
}

/// A record, or what is wrong with it.
pub(super) struct Line<R> {
    /// Where it begins, from 1.
    pub(super) number: u64,
    pub(super) record: Result<R, String>,
}

/// The records of `text`, until it cannot be read.
pub(super) fn read<'a, R: Record>(
    text: impl BufRead + 'a,
    format: Format,
) -> Box<dyn Iterator<Item = io::Result<Line<R>>> + 'a> {
    match format {
        Format::JsonLines => Box::new(JsonLines { text, number: 0, line: Vec::new() }.records()),
        Format::Csv => Box::new(read_csv(text)),
    }
}

struct JsonLines<T> {
    text: T,
    number: u64,
    line: Vec<u8>,
}

impl<T: BufRead> JsonLines<T> {
    fn records<R: Record>(mut self) -> impl Iterator<Item = io::Result<Line<R>>> {
        std::iter::from_fn(move || self.next_record().transpose())
    }

    fn next_record<R: Record>(&mut self) -> io::Result<Option<Line<R>>> {
        while self.advance()? {
            if !self.line.trim_ascii().is_empty() {
                let record = serde_json::from_slice(self.line.trim_ascii_end()).map_err(|error| in_line(&error));
                return Ok(Some(Line { number: self.number, record }));
            }
        }
        Ok(None)
    }

    /// Goes to the next line, if there is one.
    fn advance(&mut self) -> io::Result<bool> {
        self.line.clear();
        self.number += 1;
        let read = self.text.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.line)?;
        if read as u64 == LINE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("line {} is too long", self.number)));
        }
        Ok(read > 0)
    }
}

/// What is wrong, and in which column: the parser has seen one line only.
fn in_line(error: &serde_json::Error) -> String {
    let (text, place) = (error.to_string(), format!(" at line {} column {}", error.line(), error.column()));
    format!("{} in column {}", text.strip_suffix(&place).unwrap_or(&text), error.column())
}

fn read_csv<R: Record>(text: impl BufRead) -> impl Iterator<Item = io::Result<Line<R>>> {
    let mut reader = csv::Reader::from_reader(text);
    let mut row = csv::StringRecord::new();
    std::iter::from_fn(move || {
        let head = match reader.headers() {
            Ok(head) => head.clone(),
            Err(error) => return Some(csv_failure(error, 1)),
        };
        let before = reader.position().line();
        match reader.read_record(&mut row) {
            Ok(false) => None,
            Ok(true) => {
                let number = row.position().map_or(before, csv::Position::line);
                let record = row.deserialize(Some(&head)).map_err(|error| csv_reason(&error));
                Some(Ok(Line { number, record }))
            }
            Err(error) => Some(csv_failure(error, before)),
        }
    })
}

/// A line that is none, unless the text could not be read.
fn csv_failure<R>(error: csv::Error, number: u64) -> io::Result<Line<R>> {
    let number = error.position().map_or(number, csv::Position::line);
    let reason = csv_reason(&error);
    match error.into_kind() {
        csv::ErrorKind::Io(error) => Err(error),
        _ => Ok(Line { number, record: Err(reason) }),
    }
}

fn csv_reason(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => match err.field() {
            Some(field) => format!("{} in field {}", err.kind(), field + 1),
            None => err.kind().to_string(),
        },
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("it has {len} fields, and the first line names {expected_len}")
        }
        csv::ErrorKind::Utf8 { err, .. } => format!("field {} is not UTF-8", err.field() + 1),
        _ => error.to_string(),
    }
}
