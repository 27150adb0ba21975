//! The one error type of the core. The binding maps each kind to one Python class.

/// What can go wrong in the core.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An argument has a value that is not accepted; the text names both.
    #[error("{text}")]
    Argument {
        /// The name of the argument, where one is to blame.
        name: Option<String>,
        /// The message.
        text: String,
    },
    /// A metric formula cannot be read or is not a metric; the text shows where and why.
    #[error("{0}")]
    Formula(String),
    /// A column has more distinct values than its role allows.
    #[error("column {column} has more than {limit} distinct values")]
    TooManyValues {
        /// Position of the column in the call.
        column: usize,
        /// The number of distinct values that would have been accepted.
        limit: usize,
    },
    /// The caller asked for the computation to stop.
    #[error("the computation was cancelled")]
    Cancelled,
}

impl Error {
    /// An [`Error::Argument`] that says what was given and what would be accepted.
    pub fn argument(name: &str, value: impl std::fmt::Display, accepted: &str) -> Self {
        Self::Argument { name: Some(name.into()), text: format!("{name} is {value}; accepted: {accepted}") }
    }

    /// An [`Error::Argument`] about a file or a text that cannot be read.
    pub fn unreadable(text: impl Into<String>) -> Self {
        Self::Argument { name: None, text: text.into() }
    }
}

/// The result of every fallible function of the core.
pub type Result<T> = std::result::Result<T, Error>;
