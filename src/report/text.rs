//! Names and messages that came from outside, made safe for where they are shown.
//!
//! A result file is input like any other: a label in it may hold control characters, markup, or a formula. Every
//! writer of this room passes such text through the one function for its place.

/// Longest name shown in a table or chart, in characters.
pub const NAME_CHARS_MAX: usize = 80;

/// Longest message shown, in characters.
pub const MESSAGE_CHARS_MAX: usize = 400;

/// Text for a terminal or a chart: control characters and direction marks are written as escapes, the rest as is.
pub fn plain(text: &str, chars_max: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(chars_max * 4));
    for (index, character) in text.chars().enumerate() {
        if index == chars_max {
            shown.push('…');
            break;
        }
        if is_unprintable(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Control characters, line and paragraph separators, and marks that reorder or hide text.
fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Text inside a Markdown table cell or line: no markup of Markdown or HTML survives, and no line ends.
pub fn markdown(text: &str, chars_max: usize) -> String {
    let mut cell = String::with_capacity(text.len());
    for character in plain(text, chars_max).chars() {
        match character {
            '&' => cell.push_str("&amp;"),
            '<' => cell.push_str("&lt;"),
            '>' => cell.push_str("&gt;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '!' | '#' | '~' => {
                cell.push('\\');
                cell.push(character);
            }
            _ => cell.push(character),
        }
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_never_sees_a_control_character() {
        assert_eq!(plain("\x1b]0;owned\x07", 80), "\\u{1b}]0;owned\\u{7}");
        assert_eq!(plain("a\nb\u{202e}c\u{9b}", 80), "a\\nb\\u{202e}c\\u{9b}");
    }

    #[test]
    fn long_text_is_cut_and_says_so() {
        assert_eq!(plain(&"ä".repeat(300), 80), format!("{}…", "ä".repeat(80)));
        assert_eq!(plain("exact", 5), "exact");
    }

    #[test]
    fn a_cell_cannot_leave_its_table_or_become_markup() {
        assert_eq!(markdown("a|b\nc", 80), "a\\|b\\\\nc");
        assert_eq!(markdown("</script><img src=x>", 80), "&lt;/script&gt;&lt;img src=x&gt;");
        assert_eq!(markdown("[x](http://y)", 80), "\\[x\\](http://y)");
        assert_eq!(markdown("![x]", 80), "\\!\\[x\\]");
    }
}
