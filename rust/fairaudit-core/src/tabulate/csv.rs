//! A look at a CSV file before it is read: whether all rows have as many fields, and which rows some columns hold
//! where these are few.

mod combinations;
mod plain;

use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use crate::error::{Error, Result};
use crate::parallel::Control;
use combinations::Combinations;
use plain::{Layout, Plain};

/// A field of the row that follows the last one, which no file has.
const OWN: &str = "\u{0}fairaudit\u{0}";
/// Bytes of a row, at most.
const MAX_ROW: u64 = 1 << 26;

/// What a CSV file was seen to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvRows {
    /// The names in the header.
    pub names: Vec<String>,
    /// The distinct rows of the columns asked for as CSV without a header, in ascending order: their fields as they
    /// stand in the file, and in one more field how many rows there are of each.
    ///
    /// None when there are too many of them, and for files that are not plain: those with blank lines, or with quotes
    /// or carriage returns in other places than around a field or before the end of a line.
    pub distinct: Option<Vec<u8>>,
}

/// Looks at every row of a CSV file, and counts those that are the same in the `columns`.
///
/// Plain files are read in blocks, side by side; all others by the `csv` crate, and so is a file with a row of another
/// length, to name its line.
///
/// # Errors
/// [`Error::Argument`] when the file cannot be read, or with the line that has another number of fields or a quote
/// without an end;
/// [`Error::Cancelled`]; see also [`crate::simd::InstructionSet::current`].
pub fn read_csv(path: &str, columns: &[String], control: &Control) -> Result<CsvRows> {
    let unreadable = |error: csv::Error| Error::unreadable(error.to_string());
    let file = File::open(path).map_err(|error| Error::unreadable(error.to_string()))?;
    let row_start = Cell::new(0);
    let mut reader = csv::Reader::from_reader(Rows { input: file, at: 0, row_start: &row_start });
    let names = reader.headers().map_err(unreadable)?.iter().map(str::to_owned).collect::<Vec<_>>();
    let places = columns.iter().map(|column| names.iter().position(|name| name == column)).collect::<Option<Vec<_>>>();
    let counted = places.filter(|places| !places.is_empty()).map(Combinations::new);
    let layout = Layout { path, header: reader.position().byte(), n_fields: names.len() };
    let distinct = match plain::read(&layout, counted.as_ref(), control)? {
        Plain::Counted(rows) => Some(rows.to_csv()).filter(|text| !text.is_empty()),
        Plain::Checked => None,
        Plain::Unlike => {
            check_rows(reader, names.len(), control)?;
            None
        }
    };
    Ok(CsvRows { names, distinct })
}

/// Reads all rows after the header one after the other.
///
/// A row of our own follows the last one: where it is not seen, a quote before it has no end.
fn check_rows(reader: csv::Reader<Rows<File>>, n_fields: usize, control: &Control) -> Result<()> {
    if n_fields == 0 {
        // An empty file, which is told by whoever reads it.
        return Ok(());
    }
    let header = reader.position().clone();
    let mut file = reader.into_inner().input;
    file.seek(SeekFrom::Start(header.byte())).map_err(|error| Error::unreadable(error.to_string()))?;
    let own = format!("\n{}\n", vec![OWN; n_fields].join(","));
    let row_start = Cell::new(0);
    let rows = Rows { input: file.chain(own.as_bytes()), at: 0, row_start: &row_start };
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(rows);
    let line_of = |position: &csv::Position| header.line() + position.line() - 1;
    let (mut record, mut line, mut ragged, mut is_own) = (csv::ByteRecord::new(), 0, None, false);
    for count in 0u64.. {
        if count.is_multiple_of(4096) {
            control.check()?;
        }
        row_start.set(reader.position().byte());
        let start = line_of(reader.position());
        match reader.read_byte_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {}
            Err(error) => return Err(Error::unreadable(format!("line {start}: {error}"))),
        }
        line = record.position().map_or(start, line_of);
        is_own = record.iter().all(|field| field == OWN.as_bytes());
        if record.len() != n_fields && ragged.is_none() {
            ragged = Some((line, record.len()));
        }
    }
    let told = match ragged {
        _ if !is_own => format!("a quote in the row of line {line} is not closed; accepted: closed quotes"),
        Some((line, n)) => format!("line {line} has {n} fields; accepted: {n_fields}, as the header"),
        None => return Ok(()),
    };
    Err(Error::unreadable(told))
}

/// The bytes of a file, none after the first ones of a row that would not fit into memory.
struct Rows<'a, R> {
    input: R,
    at: u64,
    row_start: &'a Cell<u64>,
}

impl<R: Read> Read for Rows<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if self.at.saturating_sub(self.row_start.get()) > MAX_ROW {
            let told = format!("a row is longer than {} MiB: is a quote in it not closed?", MAX_ROW >> 20);
            return Err(std::io::Error::other(told));
        }
        let n = self.input.read(bytes)?;
        self.at += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A file that is gone with its owner.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str, text: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("fairaudit-{}-{name}.csv", std::process::id()));
            std::fs::write(&path, text).unwrap();
            Self(path)
        }

        fn read(&self, columns: &[&str]) -> Result<CsvRows> {
            let columns: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
            read_csv(self.0.to_str().unwrap(), &columns, &Control::with_threads(2))
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn distinct(name: &str, text: &str, columns: &[&str]) -> Option<String> {
        let rows = Temporary::new(name, text.as_bytes()).read(columns).unwrap();
        rows.distinct.map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn a_row_of_another_length_is_named_by_its_line() {
        let refused = |text: &str| Temporary::new("ragged", text.as_bytes()).read(&["group"]).unwrap_err().to_string();
        assert_eq!(refused("group,label\na,1\nb\n"), "line 3 has 1 fields; accepted: 2, as the header");
        assert_eq!(refused("group,label\na,1\n\"b,\n\",0,1\n"), "line 3 has 3 fields; accepted: 2, as the header");
        // As many fields in all, and a newline where one is due.
        assert_eq!(refused("group,label,x\na\nb,1\n1,2,3\n"), "line 2 has 1 fields; accepted: 3, as the header");
        let absent = Temporary::new("absent", b"");
        std::fs::remove_file(&absent.0).unwrap();
        assert!(absent.read(&[]).is_err());
    }

    #[test]
    fn a_quote_without_an_end_is_named_by_its_line() {
        let refused = |text: &str| Temporary::new("open", text.as_bytes()).read(&["group"]).unwrap_err().to_string();
        let told = |line| format!("a quote in the row of line {line} is not closed; accepted: closed quotes");
        assert_eq!(refused("group,label\na,1\nb,\"0\n"), told(3));
        assert_eq!(refused("group,label\na,\"1\n2\"\nb,0\n\"c,0\nd,1\n"), told(5));
        assert_eq!(refused("group,label\nb\"c,1\nb,\"0"), told(3));
        let long = format!("group,label\na,1\n\"{}", "a,1\n".repeat(1 << 25));
        assert_eq!(refused(&long), "line 3: a row is longer than 64 MiB: is a quote in it not closed?");
        // Within a field that has none around it they are letters.
        let rows = Temporary::new("letters", b"group,label\nb\"c,1\nb\",0").read(&["group"]).unwrap();
        assert_eq!(rows.distinct, None);
    }

    #[test]
    fn rows_are_counted_as_they_stand_in_the_file() {
        let text = "group,\"la\"\"bel\",id\na,1,1\n\"b,\n\",0,2\r\na,1,3\n,\"\",4\na much longer one,1,\"5\"\"\"";
        assert_eq!(
            distinct("counted", text, &["group", "la\"bel"]).unwrap(),
            "\"b,\n\",0,1\n,\"\",1\na much longer one,1,1\na,1,2\n"
        );
        assert_eq!(distinct("counted-1", text, &["la\"bel", "group"]).unwrap().lines().last().unwrap(), "1,a,2");
        assert_eq!(distinct("last", "a,b\r\nx,1\r\ny,1\r\nz,\r\n", &["b"]).unwrap(), ",1\n1,2\n");
        assert_eq!(distinct("none", text, &[]), None);
        assert_eq!(distinct("unknown", text, &["group", "x"]), None);
        assert_eq!(distinct("header", "a,b\r\n", &["a"]), None);
    }

    #[test]
    fn what_readers_do_not_agree_on_is_not_counted() {
        for text in [
            "a,b\nx,1\n\ny,2\n",
            "a\nx\n\n",
            "a,b\nx\"y,1\n",
            "a,b\n\"x\"y,1\n",
            "a,b\nx, \"1\"\n",
            "a,b\rx,1\ry,1\r",
            "a,b\nx,1\r\r\n",
            "\na,b\nx,1\n",
            "\u{feff}a,b\nx,1\n",
        ] {
            let rows = Temporary::new("unlike", text.as_bytes()).read(&["a"]);
            assert!(rows.is_ok_and(|rows| rows.distinct.is_none()), "{text:?}");
        }
    }

    /// Texts with everything that quotes can hold, in files of many blocks, against the `csv` crate.
    #[test]
    fn blocks_agree_with_a_reader_of_rows() {
        let texts = ["a", "", "\"b,\"\"\n\"", "\"\r\n,\"", "\"\"", "\"\"\"\"", "longer than a word", "\",\n,\n,\""];
        for (case, (end, kinds)) in [("\n", 8), ("\r\n", 8), ("\n", 2)].into_iter().enumerate() {
            let (mut text, mut state) = (format!("first,second,third{end}"), 7u32);
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                texts[(state >> 16) as usize % kinds]
            };
            while text.len() < 3_000_000 {
                let row = [next(), next(), next()];
                text.extend([&row.join(","), end]);
            }
            let (whole, cut) = (text.as_bytes(), text.len() - end.len());
            for text in [whole, &whole[..cut]] {
                let mut counts = std::collections::BTreeMap::new();
                for row in csv::Reader::from_reader(text).records() {
                    let row = row.unwrap();
                    *counts.entry((row[2].to_owned(), row[0].to_owned())).or_insert(0u64) += 1;
                }
                let rows = Temporary::new(&format!("blocks-{case}"), text).read(&["third", "first"]).unwrap();
                let mut found = std::collections::BTreeMap::new();
                let distinct = rows.distinct.unwrap();
                for row in csv::ReaderBuilder::new().has_headers(false).from_reader(&distinct[..]).records() {
                    let row = row.unwrap();
                    *found.entry((row[0].to_owned(), row[1].to_owned())).or_insert(0) += row[2].parse::<u64>().unwrap();
                }
                assert_eq!(found, counts);
                let checked = Temporary::new(&format!("checked-{case}"), text).read(&[]).unwrap();
                assert_eq!(checked.distinct, None);
            }
            // A row of another length in any block is seen whether rows are counted or not.
            for at in [0.0, 0.4, 0.999] {
                let place = (at * text.len() as f64) as usize;
                let place = place + text[place..].find(&format!("a{end}")).unwrap();
                let longer = format!("{},{}", &text[..place], &text[place..]);
                for columns in [&["first"][..], &[]] {
                    let error = Temporary::new(&format!("ragged-{case}"), longer.as_bytes()).read(columns).unwrap_err();
                    let line = csv::Reader::from_reader(longer.as_bytes()).records().find_map(std::result::Result::err);
                    let csv::ErrorKind::UnequalLengths { pos: Some(at), len, .. } = line.unwrap().into_kind() else {
                        panic!("another error")
                    };
                    let told = format!("line {} has {len} fields; accepted: 3, as the header", at.line());
                    assert_eq!(error.to_string(), told);
                }
            }
        }
    }

    #[test]
    fn many_rows_are_only_checked() {
        let mut text = String::from("id,group\n");
        for id in 0..70_000 {
            text.extend([id.to_string().as_str(), if id % 2 == 0 { ",0\n" } else { ",1\n" }]);
        }
        assert_eq!(distinct("many", &text, &["id"]), None);
        assert_eq!(distinct("few", &text, &["group"]).unwrap(), "0,35000\n1,35000\n");
        text.push_str("1\n");
        assert!(Temporary::new("many-ragged", text.as_bytes()).read(&["id"]).is_err());
    }
}
