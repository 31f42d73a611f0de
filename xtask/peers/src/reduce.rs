//! From a text that fails to a smaller one that fails too.

/// How often the check may be asked: a text of megabytes is then not reduced to the last
/// character, but it is reduced.
const CHECKS: usize = 3000;

/// The smallest part of `text` found for which `fails` still holds, by leaving out stretches of
/// characters, long ones first. `fails(text)` holds.
pub(crate) fn reduce(text: &str, mut fails: impl FnMut(&str) -> bool) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let mut checks = CHECKS;
    let mut stretch = characters.len().div_ceil(2);
    while stretch > 0 {
        let mut at = 0;
        let mut shrunk = false;
        while at < characters.len() && checks > 0 {
            checks -= 1;
            let end = (at + stretch).min(characters.len());
            let (before, after) = (&characters[..at], &characters[end..]);
            let rest: String = before.iter().chain(after).collect();
            if fails(&rest) {
                characters = rest.chars().collect();
                shrunk = true;
            } else {
                at = end;
            }
        }
        if checks == 0 {
            break;
        }
        // Single characters until none can go.
        stretch = match shrunk && stretch == 1 {
            true => 1,
            false => stretch / 2,
        };
    }
    characters.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::reduce;

    #[test]
    fn what_is_left_is_only_what_the_failure_needs() {
        let text = "some é text, 中 and more 😀 of it".repeat(20);
        let smallest = reduce(&text, |part| part.contains('é') && part.contains('😀'));
        // Which comes first depends on the copies that they are taken from.
        assert_eq!(smallest.chars().count(), 2, "{smallest}");
        assert!(smallest.contains('é') && smallest.contains('😀'));
    }

    #[test]
    fn a_text_that_needs_all_its_characters_stays() {
        assert_eq!(reduce("abc", |part| part == "abc"), "abc");
    }
}
