//! Comma-separated values, RFC 4180: `phases.csv` written, published tables read.
//!
//! ```text
//! file   = record, { line end, record }
//! record = field, { ",", field }
//! field  = characters without `"`, `,`, CR, LF | '"', { any character, '"' as '""' }, '"'
//! ```
//!
//! A field that a spreadsheet would take for a formula gets an apostrophe in front, unless it is a number.

use std::fmt::Write as _;

use anyhow::{Result, bail};

use crate::bench::result::{EngineResult, Latency, PhaseResult, RunResult};

use super::compare::{self, Contender};

/// Columns of `phases.csv`. Numbers are medians over the completed repetitions, but for the least and the most time and
/// the largest latency.
pub const PHASE_COLUMNS: [&str; 16] = [
    "engine",
    "durability",
    "dataset",
    "phase",
    "operations",
    "repetitions",
    "elapsed_ms",
    "elapsed_ms_min",
    "elapsed_ms_max",
    "ops_per_s",
    "checksum",
    "p50_us",
    "p90_us",
    "p99_us",
    "p999_us",
    "max_us",
];

/// Every phase of every contender, one a line. What was not measured is empty.
pub fn phases(run: &RunResult) -> String {
    let mut file = PHASE_COLUMNS.join(",") + "\r\n";
    for contender in &compare::contenders(run) {
        for phase in &contender.shown.phases {
            push_record(&mut file, &phase_fields(run, contender, phase));
        }
    }
    file
}

fn phase_fields(run: &RunResult, contender: &Contender, phase: &PhaseResult) -> Vec<String> {
    let elapsed = contender.measured(|result| compare::phase_ms(result, &phase.name));
    let (low, high) = elapsed.map(|elapsed| elapsed.spread.unwrap_or((elapsed.value, elapsed.value))).unzip();
    let latency = |of: fn(&Latency) -> f64| {
        move |result: &EngineResult| compare::phase(result, &phase.name)?.latency_us.as_ref().map(of)
    };
    let percentile = |of: fn(&Latency) -> f64| number(contender.median(latency(of)));
    vec![
        contender.shown.engine.clone(),
        contender.shown.durability.clone(),
        run.workload.dataset.to_string(),
        phase.name.clone(),
        phase.operations.to_string(),
        contender.completed_repetitions().count().to_string(),
        number(elapsed.map(|elapsed| elapsed.value)),
        number(low),
        number(high),
        number(contender.median(|result| compare::phase_rate(result, &phase.name))),
        phase.checksum.clone(),
        percentile(|latency| latency.p50),
        percentile(|latency| latency.p90),
        percentile(|latency| latency.p99),
        percentile(|latency| latency.p999),
        number(contender.largest(latency(|latency| latency.max))),
    ]
}

fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

pub(super) fn push_record(file: &mut String, fields: &[String]) {
    let record: Vec<String> = fields.iter().map(|field| encode_field(field)).collect();
    let _ = write!(file, "{}\r\n", record.join(","));
}

fn encode_field(field: &str) -> String {
    let guard = if looks_like_formula(field) { "'" } else { "" };
    if field.contains(['"', ',', '\r', '\n']) {
        format!("\"{guard}{}\"", field.replace('"', "\"\""))
    } else {
        format!("{guard}{field}")
    }
}

fn looks_like_formula(field: &str) -> bool {
    field.starts_with(['=', '+', '-', '@', '\t', '\r']) && field.parse::<f64>().is_err()
}

/// Splits a file into records. Empty lines are left out; every record must have as many fields as the first.
pub fn read(text: &str) -> Result<Vec<Vec<String>>> {
    let mut reader = Reader { rest: text.chars().peekable(), line: 1 };
    let mut records: Vec<Vec<String>> = Vec::new();
    loop {
        let line = reader.line;
        let Some(record) = reader.record()? else { return Ok(records) };
        if record.len() == 1 && record[0].is_empty() {
            continue;
        }
        if let Some(first) = records.first()
            && first.len() != record.len()
        {
            bail!("line {line} has {} fields; the first line has {}", record.len(), first.len());
        }
        records.push(record);
    }
}

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: usize,
}

impl Reader<'_> {
    fn record(&mut self) -> Result<Option<Vec<String>>> {
        if self.rest.peek().is_none() {
            return Ok(None);
        }
        let mut fields = vec![self.field()?];
        loop {
            match self.rest.next() {
                Some(',') => fields.push(self.field()?),
                Some('\r') if self.rest.peek() == Some(&'\n') => {}
                None => return Ok(Some(fields)),
                Some('\n' | '\r') => {
                    self.line += 1;
                    return Ok(Some(fields));
                }
                Some(other) => bail!("line {}: {other:?} after a quoted field; a comma or line end is due", self.line),
            }
        }
    }

    fn field(&mut self) -> Result<String> {
        if self.rest.peek() == Some(&'"') {
            return self.quoted();
        }
        let mut field = String::new();
        while let Some(character) = self.rest.next_if(|character| !matches!(character, ',' | '\r' | '\n')) {
            field.push(character);
        }
        Ok(field)
    }

    fn quoted(&mut self) -> Result<String> {
        let opened = self.line;
        let mut field = String::new();
        self.rest.next();
        while let Some(character) = self.rest.next() {
            match character {
                '"' if self.rest.next_if_eq(&'"').is_some() => field.push('"'),
                '"' => return Ok(field),
                _ => {
                    self.line += usize::from(character == '\n');
                    field.push(character);
                }
            }
        }
        bail!("line {opened}: a quoted field never ends")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_undoes_writing() {
        let fields = ["plain", "a,b", "say \"hi\"", "two\nlines", "cr\rlf\r\n", "", "naïve …", "-12.5"];
        let fields = fields.map(str::to_owned).to_vec();
        let mut file = String::new();
        push_record(&mut file, &fields);
        push_record(&mut file, &fields);
        assert_eq!(read(&file).unwrap(), vec![fields.clone(), fields]);
    }

    #[test]
    fn a_formula_is_disarmed_and_a_number_is_not() {
        assert_eq!(encode_field("=HYPERLINK(\"http://x\")"), "\"'=HYPERLINK(\"\"http://x\"\")\"");
        assert_eq!(encode_field("@sum"), "'@sum");
        assert_eq!(encode_field("-1+cmd"), "'-1+cmd");
        assert_eq!(encode_field("-1.5"), "-1.5");
        assert_eq!(encode_field("\tx"), "'\tx");
    }

    #[test]
    fn damage_is_named_by_line() {
        assert!(read("a,b\n1\n").unwrap_err().to_string().contains("line 2 has 1 fields"));
        assert!(read("a,b\n\"1,2").unwrap_err().to_string().contains("line 2: a quoted field never ends"));
        assert!(read("\"a\"b\n").unwrap_err().to_string().contains("after a quoted field"));
        assert!(read("").unwrap().is_empty());
    }
}
