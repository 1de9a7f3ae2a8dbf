//! What it came to.

use std::time::Duration;

use super::DemoError;
use super::load::Tally;
use super::narration::Narrator;
use super::stage::{SERVICE, Stage};

pub(super) fn print(
    stage: &Stage,
    tally: &Tally,
    offset: u64,
    narrator: &mut Narrator,
) -> Result<(), DemoError> {
    narrator.heading("Summary")?;
    let requests = tally.answered() + tally.failed;
    narrator.fact("requests", &format!("{requests} in {:.1} s", tally.started.elapsed().as_secs_f64()))?;
    narrator
        .fact("failed", &format!("{} (no answer within 5 s, or a status other than 200)", tally.failed))?;
    narrator.fact("longest pause", &format!("{} ms between two answers", tally.longest_pause.as_millis()))?;
    narrator.fact("event to Envoy", &spread(&stage.latencies))?;
    narrator.fact("log", &format!("@1 to @{offset}"))?;
    if tally.failed > 0 {
        narrator.verify("no request failed", Some(format!("{} did", tally.failed)))?;
        for (when, reason) in &tally.failures {
            let when = when.saturating_duration_since(tally.started).as_secs_f64();
            narrator.say(&format!("after {when:.3} s: {reason}"))?;
        }
    }
    match narrator.problems() {
        [] => Ok(narrator.verify("everything held", None)?),
        problems => Err(DemoError::Broken { problems: problems.to_vec() }),
    }
}

/// What a person can try while it goes on.
pub(super) fn invite(stage: &Stage, narrator: &mut Narrator) -> Result<(), DemoError> {
    narrator.heading("It goes on until Ctrl-C. Try, in another terminal:")?;
    narrator.say(&format!("curl -H 'Host: {SERVICE}' http://{}/", stage.proxy.listener))?;
    narrator.say(&format!("foldplane get workers --server {}", stage.cli.server()))?;
    narrator.say(&format!("foldplane log dump --server {}", stage.cli.server()))?;
    Ok(narrator.say("")?)
}

/// `3 to 9 ms, median 4 ms, of 5`.
fn spread(latencies: &[Duration]) -> String {
    let mut sorted: Vec<u128> = latencies.iter().map(Duration::as_millis).collect();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2);
    match (sorted.first(), median, sorted.last()) {
        (Some(first), Some(median), Some(last)) => {
            format!("{first} to {last} ms, median {median} ms, in {} changes", sorted.len())
        }
        _ => "not measured".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_summed_up() {
        assert_eq!(spread(&[]), "not measured");
        let times = [9, 1, 4].map(Duration::from_millis);
        assert_eq!(spread(&times), "1 to 9 ms, median 4 ms, in 3 changes");
    }
}
