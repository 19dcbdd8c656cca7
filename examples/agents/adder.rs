// The agent in Rust, without a crate. It looks only for what it needs: the id, to be sent back as it came, and the input.
use std::io::{self, BufRead, Write};

/// The text of a key's value, without its quotes; empty where there is none.
fn text_of<'a>(line: &'a str, key: &str) -> &'a str {
    let Some(found) = line.find(key) else { return "" };
    let text = &line[found + key.len() + 1..];
    let mut is_escaped = false;
    for (place, letter) in text.char_indices() {
        match letter {
            '"' if !is_escaped => return &text[..place],
            _ => is_escaped = letter == '\\' && !is_escaped,
        }
    }
    text
}

fn sum_of(text: &str) -> u64 {
    text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse::<u64>().ok()).sum()
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (id, input) = (text_of(&line, "\"id\":"), text_of(&line, "\"input\":"));
        writeln!(out, "{{\"id\": \"{}\", \"output\": \"{}\"}}", id, sum_of(input))?;
        out.flush()?;
    }
    Ok(())
}
