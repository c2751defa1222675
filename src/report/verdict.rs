//! Whether the answers of a run can be trusted: against published checksums, between contenders, and inside each
//! store. Times do not matter here.

use crate::bench::result::{Published, RunResult, Status};

use super::compare::{self, ALL_FIELDS, Contender, Disagreement};
use super::published::{self, Mismatch};
use super::text::{MESSAGE_CHARS_MAX, plain};

/// Most sentences about one kind of fault; the rest is counted.
const SENTENCES_MAX: usize = 20;

/// Everything that is wrong with the answers of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// How many checksums equal the published ones; `None` where nothing was published for this workload.
    pub published: Option<Published>,
    /// Checksums that differ from the published ones.
    pub mismatches: Vec<Mismatch>,
    /// Questions that completed runs answer differently.
    pub disagreements: Vec<Disagreement>,
    /// Indexes that do not match their records.
    pub index_problems: Vec<IndexProblem>,
    /// Runs that completed: only their answers are compared.
    pub completed: usize,
}

/// What the index check of one run found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexProblem {
    /// The run.
    pub contender: String,
    /// One sentence for each.
    pub problems: Vec<String>,
}

/// Weighs the answers of a run.
pub fn verify(run: &RunResult) -> Verdict {
    let (published, mismatches) = published::compare(run).unzip();
    Verdict {
        published,
        mismatches: mismatches.unwrap_or_default(),
        disagreements: compare::disagreements(run),
        index_problems: index_problems(run),
        completed: run.engines.iter().filter(|result| result.status == Status::Completed).count(),
    }
}

fn index_problems(run: &RunResult) -> Vec<IndexProblem> {
    let checked = run.engines.iter().filter_map(|result| Some((result, result.index_check.as_ref()?)));
    let broken = checked.filter(|(_, check)| !check.problems.is_empty());
    broken
        .map(|(result, check)| IndexProblem {
            contender: compare::run_label(run, result),
            problems: check.problems.clone(),
        })
        .collect()
}

impl Verdict {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.mismatches.is_empty() && self.disagreements.is_empty() && self.index_problems.is_empty()
    }

    /// The verdict in words: what was compared, then every fault. Plain text, safe to print.
    pub fn sentences(&self) -> Vec<String> {
        if self.completed == 0 {
            return vec!["no engine completed, so no answers were compared".to_owned()];
        }
        let mut sentences = vec![self.published_sentence()];
        push_limited(
            &mut sentences,
            self.mismatches.iter().map(|mismatch| {
                let Mismatch { contender, question, expected, found } = mismatch;
                format!("{contender}: {question} is {found}; published is {expected}")
            }),
        );
        if self.disagreements.is_empty() && self.completed > 1 {
            sentences.push("no two completed contenders disagree".to_owned());
        }
        push_limited(
            &mut sentences,
            self.disagreements.iter().map(|disagreement| {
                let answers: Vec<String> =
                    disagreement.answers.iter().map(|(name, answer)| format!("{name} says {answer}")).collect();
                format!("the contenders disagree on {}: {}", disagreement.question, answers.join(", "))
            }),
        );
        push_limited(
            &mut sentences,
            self.index_problems.iter().flat_map(|problem| {
                let of =
                    |text: &String| format!("{}: index check: {}", problem.contender, plain(text, MESSAGE_CHARS_MAX));
                problem.problems.iter().map(of)
            }),
        );
        sentences
    }

    fn published_sentence(&self) -> String {
        self.published.as_ref().map_or_else(
            || "no published result of this workload was compared".to_owned(),
            |Published { name, equal, of }| format!("{equal}/{of} checksums equal the published {name}"),
        )
    }

    /// Whether any repetition of a contender gave an answer that is, or may be, wrong. It gets no number in a ranking.
    pub fn doubts(&self, run: &RunResult, contender: &Contender) -> bool {
        let names: Vec<String> = contender.repetitions.iter().map(|result| compare::run_label(run, result)).collect();
        self.doubted().iter().any(|doubted| names.iter().any(|name| name == doubted))
    }

    /// Published checksums settle who is right; without them the majority does.
    fn doubted(&self) -> Vec<&str> {
        let mut doubted: Vec<&str> = self.mismatches.iter().map(|mismatch| mismatch.contender.as_str()).collect();
        doubted.extend(self.index_problems.iter().map(|problem| problem.contender.as_str()));
        let open = |disagreement: &&Disagreement| self.published.is_none() || disagreement.question == ALL_FIELDS;
        doubted.extend(self.disagreements.iter().filter(open).flat_map(Disagreement::in_doubt));
        doubted
    }
}

fn push_limited(sentences: &mut Vec<String>, faults: impl Iterator<Item = String>) {
    let mut faults = faults.peekable();
    sentences.extend(faults.by_ref().take(SENTENCES_MAX));
    if faults.peek().is_some() {
        sentences.push(format!("and {} more of this kind", faults.count()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn equal_answers_are_sound_and_say_what_they_equal() {
        let verdict = verify(&samples::run(&["profilestore", "floor", "fjall"]));
        assert!(verdict.is_sound());
        assert_eq!(verdict.sentences()[0], "17/17 checksums equal the published 100k-linux");
    }

    #[test]
    fn a_published_answer_settles_who_is_wrong() {
        let mut run = samples::run(&["profilestore", "fjall"]);
        run.engines[1].phases[4].checksum = "BAD0BAD0BAD0BAD0".to_owned();
        let verdict = verify(&run);
        assert!(!verdict.is_sound());
        let told = verdict.sentences().join("\n");
        assert!(told.contains("16/17 checksums equal"), "{told}");
        assert!(
            told.contains("fjall: query country/status is BAD0BAD0BAD0BAD0; published is 8A71BD4E88816061"),
            "{told}"
        );
        assert!(told.contains("disagree on query country/status: profilestore says 8A71BD4E88816061"), "{told}");
        let contenders = compare::contenders(&run);
        assert_eq!(contenders.iter().map(|one| verdict.doubts(&run, one)).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn without_a_published_answer_the_majority_is_believed_and_a_tie_is_not() {
        let mut run = samples::run(&["profilestore", "fjall", "sqlite"]);
        run.workload.query_limit = 7;
        run.engines[2].verify_checksum = None;
        let doubted = |run: &RunResult| {
            let verdict = verify(run);
            compare::contenders(run).iter().map(|one| verdict.doubts(run, one)).collect::<Vec<_>>()
        };
        assert_eq!(doubted(&run), [false, false, true]);
        run.engines.remove(0);
        assert_eq!(doubted(&run), [true, true]);
    }

    #[test]
    fn the_fields_that_no_published_checksum_covers_count_as_well() {
        let mut run = samples::run(&["profilestore", "fjall", "sqlite"]);
        run.engines[1].all_fields_checksum = Some("00000000000000BB".to_owned());
        let verdict = verify(&run);
        assert_eq!(verdict.mismatches, []);
        assert_eq!(verdict.disagreements[0].question, ALL_FIELDS);
        assert!(verdict.doubts(&run, &compare::contenders(&run)[1]));
    }

    #[test]
    fn a_broken_index_is_a_fault_and_a_flood_of_them_is_counted() {
        let mut run = samples::run(&["fjall"]);
        let check = run.engines[0].index_check.as_mut().expect("the sample has one");
        check.problems = (0..50).map(|id| format!("email: entry of {id}\u{1b} has no profile")).collect();
        let verdict = verify(&run);
        assert!(!verdict.is_sound());
        let told = verdict.sentences();
        assert!(told.contains(&"fjall: index check: email: entry of 0\\u{1b} has no profile".to_owned()), "{told:?}");
        assert_eq!(told.last().map(String::as_str), Some("and 30 more of this kind"));
    }

    #[test]
    fn a_stopped_contender_is_not_asked() {
        let mut run = samples::run(&["profilestore", "fjall"]);
        run.engines[1] = samples::stopped(run.engines[1].clone(), 5);
        run.engines[1].phases[0].checksum = "0".to_owned();
        assert!(verify(&run).is_sound());
    }
}
