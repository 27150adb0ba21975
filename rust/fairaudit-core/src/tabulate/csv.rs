//! A look at a CSV file before it is read: whether all rows have as many fields.

use crate::error::{Error, Result};
use crate::parallel::Control;

/// The names in the header of a CSV file, once every row is seen to have as many fields.
///
/// # Errors
/// [`Error::Argument`] when the file cannot be read, or with the line that has another number of fields;
/// [`Error::Cancelled`].
pub fn check_csv(path: &str, control: &Control) -> Result<Vec<String>> {
    let unreadable = |error: csv::Error| Error::Argument(error.to_string());
    let mut reader = csv::ReaderBuilder::new().from_path(path).map_err(unreadable)?;
    let names = reader.headers().map_err(unreadable)?.iter().map(str::to_owned).collect::<Vec<_>>();
    let mut record = csv::ByteRecord::new();
    let mut rows = 0u64;
    while reader.read_byte_record(&mut record).map_err(|error| ragged(&error, names.len()))? {
        rows += 1;
        if rows.is_multiple_of(4096) {
            control.check()?;
        }
    }
    Ok(names)
}

fn ragged(error: &csv::Error, expected: usize) -> Error {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, len, .. } => Error::Argument(format!(
            "line {} has {len} fields; accepted: {expected}, as the header",
            pos.as_ref().map_or(0, csv::Position::line)
        )),
        _ => Error::Argument(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_another_length_is_named_by_its_line() {
        let path = std::env::temp_dir().join(format!("fairaudit-{}.csv", std::process::id()));
        let path = path.to_str().unwrap();
        let check = |text: &str| {
            std::fs::write(path, text).unwrap();
            check_csv(path, &Control::default())
        };
        assert_eq!(check("group,label\na,1\n\"b,\n\",0\n").unwrap(), ["group", "label"]);
        let message = check("group,label\na,1\nb\n").unwrap_err().to_string();
        assert!(message.contains("line 3 has 1 fields; accepted: 2, as the header"), "{message}");
        std::fs::remove_file(path).unwrap();
        assert!(check_csv(path, &Control::default()).is_err());
    }
}
