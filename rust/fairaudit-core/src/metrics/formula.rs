//! Formulas over the confusion counts: read, differentiated, recognised as quotients of sums.

use super::{COUNTS, Evaluation, Metric};
use crate::error::{Error, Result};

/// A formula over `tp`, `fp`, `fn`, `tn`: numbers, `+ - * /`, whole powers `**`, parentheses,
/// `sqrt`, `abs`, `min`, `max`.
///
/// ```
/// use fairaudit_core::metrics::Formula;
/// let recall = Formula::parse("tp / (tp + fn)").unwrap();
/// assert_eq!(recall.evaluate([3.0, 9.0, 1.0, 9.0]).value, 0.75);
/// assert!(Formula::parse("tp + fp").is_err());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    root: Node,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Number(f64),
    Count(usize),
    Binary(Operation, Box<(Node, Node)>),
    Unary(Function, Box<Node>),
    Power(Box<Node>, i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Minimum,
    Maximum,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Negate,
    SquareRoot,
    Absolute,
}

/// A number with its derivatives by the four counts.
#[derive(Debug, Clone, Copy)]
struct Dual {
    value: f64,
    gradient: [f64; 4],
}

impl Dual {
    fn constant(value: f64) -> Self {
        Self { value, gradient: [0.0; 4] }
    }

    /// f(self) with f' = `slope`.
    fn chain(self, value: f64, slope: f64) -> Self {
        Self { value, gradient: self.gradient.map(|g| if g == 0.0 { 0.0 } else { slope * g }) }
    }

    fn combine(self, other: Self, value: f64, left: f64, right: f64) -> Self {
        let mut gradient = [0.0; 4];
        for (k, entry) in gradient.iter_mut().enumerate() {
            *entry = left * self.gradient[k] + right * other.gradient[k];
        }
        Self { value, gradient }
    }
}

impl Node {
    fn evaluate(&self, counts: &[f64; 4]) -> Dual {
        match self {
            Self::Number(value) => Dual::constant(*value),
            Self::Count(k) => {
                let mut gradient = [0.0; 4];
                gradient[*k] = 1.0;
                Dual { value: counts[*k], gradient }
            }
            Self::Unary(function, inner) => {
                let x = inner.evaluate(counts);
                match function {
                    Function::Negate => x.chain(-x.value, -1.0),
                    Function::SquareRoot => {
                        let root = x.value.sqrt();
                        x.chain(root, 0.5 / root)
                    }
                    Function::Absolute => x.chain(x.value.abs(), if x.value < 0.0 { -1.0 } else { 1.0 }),
                }
            }
            Self::Power(inner, exponent) => {
                let x = inner.evaluate(counts);
                x.chain(x.value.powi(*exponent), f64::from(*exponent) * x.value.powi(exponent - 1))
            }
            Self::Binary(operation, sides) => {
                let (a, b) = (sides.0.evaluate(counts), sides.1.evaluate(counts));
                match operation {
                    Operation::Add => a.combine(b, a.value + b.value, 1.0, 1.0),
                    Operation::Subtract => a.combine(b, a.value - b.value, 1.0, -1.0),
                    Operation::Multiply => a.combine(b, a.value * b.value, b.value, a.value),
                    Operation::Divide => {
                        let quotient = a.value / b.value;
                        a.combine(b, quotient, 1.0 / b.value, -quotient / b.value)
                    }
                    Operation::Minimum => {
                        if a.value <= b.value {
                            a
                        } else {
                            b
                        }
                    }
                    Operation::Maximum => {
                        if a.value >= b.value {
                            a
                        } else {
                            b
                        }
                    }
                }
            }
        }
    }

    /// Coefficients when the node is a weighted sum of counts without a constant.
    fn linear(&self) -> Option<[f64; 4]> {
        let (coefficients, constant) = self.affine()?;
        (constant == 0.0).then_some(coefficients)
    }

    fn affine(&self) -> Option<([f64; 4], f64)> {
        let scale = |(mut c, k): ([f64; 4], f64), by: f64| {
            for entry in &mut c {
                *entry *= by;
            }
            (c, k * by)
        };
        match self {
            Self::Number(value) => Some(([0.0; 4], *value)),
            Self::Count(k) => {
                let mut c = [0.0; 4];
                c[*k] = 1.0;
                Some((c, 0.0))
            }
            Self::Unary(Function::Negate, inner) => Some(scale(inner.affine()?, -1.0)),
            Self::Binary(Operation::Add | Operation::Subtract, sides) => {
                let sign = if matches!(self, Self::Binary(Operation::Add, _)) { 1.0 } else { -1.0 };
                let (left, right) = (sides.0.affine()?, scale(sides.1.affine()?, sign));
                let mut c = left.0;
                c.iter_mut().zip(right.0).for_each(|(entry, other)| *entry += other);
                Some((c, left.1 + right.1))
            }
            Self::Binary(Operation::Multiply, sides) => match (&sides.0, &sides.1) {
                (Self::Number(by), other) | (other, Self::Number(by)) => Some(scale(other.affine()?, *by)),
                _ => None,
            },
            Self::Binary(Operation::Divide, sides) => match &sides.1 {
                Self::Number(by) if *by != 0.0 => Some(scale(sides.0.affine()?, 1.0 / by)),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Formula {
    /// Reads a formula and checks that it is a metric: unchanged when all counts are scaled.
    ///
    /// # Errors
    /// [`Error::Formula`] with the position of the first thing that cannot be read, or with the
    /// two values that show why the formula is not a metric.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser { text, at: 0, depth: 0, operations: 0 };
        let root = parser.sum()?;
        parser.skip_blanks();
        if parser.at < text.len() {
            return Err(parser.error("expected an operator or the end"));
        }
        let formula = Self { root };
        formula.check_is_metric(text)?;
        Ok(formula)
    }

    /// Two points in general position: the value must stay when counts are scaled by 3, and
    /// must depend on the counts.
    fn check_is_metric(&self, text: &str) -> Result<()> {
        let mut varies = false;
        for counts in [[701.0, 307.0, 211.0, 1_103.0], [53.0, 409.0, 97.0, 31.0]] {
            let here = self.root.evaluate(&counts);
            let scaled = self.root.evaluate(&counts.map(|count| 3.0 * count));
            let invariant = (here.value - scaled.value).abs() <= 1e-9 * (1.0 + here.value.abs());
            if !here.value.is_finite() || !invariant {
                return Err(Error::Formula(format!(
                    "formula \"{}\" is {} for tp, fp, fn, tn = {counts:?} and {} when every count is \
                     three times as large; accepted: a quotient that does not depend on the number of rows, \
                     such as tp / (tp + fn)",
                    shown(text),
                    here.value,
                    scaled.value
                )));
            }
            varies |= here.gradient.iter().any(|&g| g != 0.0);
        }
        if varies {
            Ok(())
        } else {
            Err(Error::Formula(format!("formula \"{}\" does not depend on tp, fp, fn or tn", shown(text))))
        }
    }

    /// The coefficients (a, d) when the formula is `sum a_k c_k / sum d_k c_k`.
    pub fn as_fraction(&self) -> Option<([f64; 4], [f64; 4])> {
        match &self.root {
            Node::Binary(Operation::Divide, sides) => Some((sides.0.linear()?, sides.1.linear()?)),
            _ => None,
        }
    }

    /// The fastest form of the metric.
    pub fn to_metric(&self) -> Metric {
        match self.as_fraction() {
            Some((numerator, denominator)) => {
                Metric::Fraction { numerator: numerator.to_vec(), denominator: denominator.to_vec() }
            }
            None => Metric::Formula(self.clone()),
        }
    }

    /// Value and variance for (tp, fp, fn, tn).
    pub fn evaluate(&self, counts: [f64; 4]) -> Evaluation {
        let theta = self.root.evaluate(&counts);
        if !theta.value.is_finite() {
            return Evaluation::UNDEFINED;
        }
        let variance: f64 =
            theta.gradient.iter().zip(counts).map(|(g, c)| if c == 0.0 { 0.0 } else { g * g * c }).sum();
        // n v is at least of order 1/n unless it is 0: anything smaller is rounding.
        let variance = if variance * counts.iter().sum::<f64>() < 1e-20 { 0.0 } else { variance };
        Evaluation { value: theta.value, variance, numerator: f64::NAN, denominator: f64::NAN }
    }

    /// The partial derivatives by tp, fp, fn, tn.
    pub fn gradient(&self, counts: [f64; 4]) -> [f64; 4] {
        self.root.evaluate(&counts).gradient
    }
}

/// Recursive descent over the text; the deepest nesting is bounded.
struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Operators and functions that were read.
    operations: usize,
}

const MAX_DEPTH: usize = 64;
/// A chain of operators is a tree as deep as it is long, which is walked, copied and dropped by recursion.
const MAX_OPERATIONS: usize = 500;
/// Characters of a formula that a message shows.
const SHOWN: usize = 200;

/// The formula as messages show it.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

impl Parser<'_> {
    fn error(&self, problem: &str) -> Error {
        let rest = &self.text[self.at..];
        let found = rest.chars().next().map_or("the end".to_owned(), |c| format!("'{c}'"));
        Error::Formula(format!(
            "formula \"{}\": {problem} at position {}, found {found}; accepted: tp, fp, fn, tn, numbers, \
             + - * / **, parentheses, sqrt(), abs(), min(,), max(,)",
            shown(self.text),
            self.text[..self.at].chars().count() + 1
        ))
    }

    /// Counts an operator or a function.
    fn operation(&mut self) -> Result<()> {
        self.operations += 1;
        if self.operations > MAX_OPERATIONS {
            return Err(self.error(&format!("more than {MAX_OPERATIONS} operators and functions")));
        }
        Ok(())
    }

    fn skip_blanks(&mut self) {
        self.at += self.text[self.at..].len() - self.text[self.at..].trim_start().len();
    }

    fn accept(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let found = self.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.accept(token) { Ok(()) } else { Err(self.error(&format!("expected '{token}'"))) }
    }

    fn sum(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("too many nested parentheses"));
        }
        let mut node = self.product()?;
        loop {
            let operation = if self.accept("+") {
                Operation::Add
            } else if self.accept("-") {
                Operation::Subtract
            } else {
                self.depth -= 1;
                return Ok(node);
            };
            self.operation()?;
            node = Node::Binary(operation, Box::new((node, self.product()?)));
        }
    }

    fn product(&mut self) -> Result<Node> {
        let mut node = self.signed()?;
        loop {
            self.skip_blanks();
            let operation = if self.accept("*") {
                Operation::Multiply
            } else if self.accept("/") {
                Operation::Divide
            } else {
                return Ok(node);
            };
            self.operation()?;
            node = Node::Binary(operation, Box::new((node, self.signed()?)));
        }
    }

    fn signed(&mut self) -> Result<Node> {
        if self.accept("-") {
            self.operation()?;
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(self.error("too many signs"));
            }
            let inner = self.signed()?;
            self.depth -= 1;
            return Ok(Node::Unary(Function::Negate, Box::new(inner)));
        }
        self.power()
    }

    fn power(&mut self) -> Result<Node> {
        let base = self.atom()?;
        if !self.accept("**") {
            return Ok(base);
        }
        self.operation()?;
        let negative = self.accept("-");
        self.skip_blanks();
        let start = self.at;
        match self.number() {
            Some(exponent) if exponent.fract() == 0.0 && exponent <= 16.0 => {
                let exponent = exponent as i32;
                Ok(Node::Power(Box::new(base), if negative { -exponent } else { exponent }))
            }
            _ => {
                self.at = start;
                Err(self.error("expected a whole exponent up to 16"))
            }
        }
    }

    fn number(&mut self) -> Option<f64> {
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let value = rest[..length].parse().ok()?;
        self.at += length;
        Some(value)
    }

    fn atom(&mut self) -> Result<Node> {
        if self.accept("(") {
            let inner = self.sum()?;
            self.expect(")")?;
            return Ok(inner);
        }
        self.skip_blanks();
        if let Some(value) = self.number() {
            return Ok(Node::Number(value));
        }
        let start = self.at;
        let rest = &self.text[start..];
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let word = &rest[..length];
        self.at += length;
        if let Some(k) = COUNTS.iter().position(|name| *name == word) {
            return Ok(Node::Count(k));
        }
        match word {
            "sqrt" | "abs" => {
                self.operation()?;
                self.expect("(")?;
                let inner = Box::new(self.sum()?);
                self.expect(")")?;
                let function = if word == "sqrt" { Function::SquareRoot } else { Function::Absolute };
                Ok(Node::Unary(function, inner))
            }
            "min" | "max" => {
                self.operation()?;
                self.expect("(")?;
                let first = self.sum()?;
                self.expect(",")?;
                let second = self.sum()?;
                self.expect(")")?;
                let operation = if word == "min" { Operation::Minimum } else { Operation::Maximum };
                Ok(Node::Binary(operation, Box::new((first, second))))
            }
            _ => {
                self.at = start;
                Err(self.error("expected a count, a number or a function"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Formula {
        Formula::parse(text).unwrap()
    }

    #[test]
    fn formulas_evaluate_by_the_usual_rules() {
        let counts = [7.0, 3.0, 2.0, 8.0];
        for (text, value) in [
            ("tp / (tp + fn)", 7.0 / 9.0),
            ("2*tp/(2*tp+fp+fn)", 14.0 / 19.0),
            ("1 - fp / (fp + tn)", 1.0 - 3.0 / 11.0),
            ("-tp/(tp+fn) + 2 * 3 / 4", 1.5 - 7.0 / 9.0),
            ("sqrt(tp**2) / (tp + fp)", 0.7),
            ("max(tp, fp) / max(tp + fn, fp + tn)", 7.0 / 11.0),
            ("min(tp, fp) / abs(-tp)", 3.0 / 7.0),
            ("(tp + fn) ** -1 * tp", 7.0 / 9.0),
        ] {
            let result = parse(text).evaluate(counts).value;
            assert!((result - value).abs() < 1e-15, "{text}: {result} {value}");
        }
    }

    #[test]
    fn gradients_equal_central_differences() {
        let counts = [17.0, 5.0, 9.0, 23.0];
        for text in [
            "tp / (tp + fn)",
            "(tp / (tp + fn) + tn / (tn + fp)) / 2",
            "(tp*tn - fp*fn) / sqrt((tp+fp)*(tp+fn)*(tn+fp)*(tn+fn))",
            "abs(fp - fn) / max(fp, fn)",
            "(tp ** 2 + fp ** 2) / (tp + fp) ** 2",
        ] {
            let formula = parse(text);
            let gradient = formula.gradient(counts);
            for k in 0..4 {
                let step = 1e-4;
                let (mut up, mut down) = (counts, counts);
                up[k] += step;
                down[k] -= step;
                let slope = (formula.evaluate(up).value - formula.evaluate(down).value) / (2.0 * step);
                assert!((gradient[k] - slope).abs() < 1e-8, "{text} by {}: {} {slope}", COUNTS[k], gradient[k]);
            }
        }
    }

    #[test]
    fn quotients_of_sums_are_recognised() {
        assert_eq!(parse("fn/(fn+tp)").as_fraction(), Some(([0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0])));
        assert_eq!(parse("2*tp/(2*tp+fp+fn)").as_fraction(), Some(([2.0, 0.0, 0.0, 0.0], [2.0, 1.0, 1.0, 0.0])));
        assert_eq!(parse("1 - tp/(tp+fn)").as_fraction(), None);
        assert!(parse("fn/(fn+tp)").to_metric().is_proportion());
        assert!(!parse("2*tp/(2*tp+fp+fn)").to_metric().is_proportion());
    }

    #[test]
    fn what_is_not_a_metric_is_refused() {
        for (text, problem) in [
            ("tp + fp", "three times as large"),
            ("tp / (tp + fn) + 1 / tp", "three times as large"),
            ("2 * 3", "does not depend"),
            ("tp / 0", "accepted: a quotient"),
            ("tp / (tp + fm)", "at position 12, found 'f'"),
            ("tp / (tp + fn", "expected ')' at position 14, found the end"),
            ("tp fn", "expected an operator"),
            ("tp ** 0.5", "whole exponent"),
            ("", "found the end"),
            ("__import__('os')", "expected a count"),
            ("tp / (tp + ñ)", "found 'ñ'"),
        ] {
            let message = Formula::parse(text).unwrap_err().to_string();
            assert!(message.contains(problem), "{text}: {message}");
        }
        let deep = "(".repeat(100_000);
        assert!(Formula::parse(&deep).unwrap_err().to_string().len() < 500);
        assert!(Formula::parse(&deep).unwrap_err().to_string().contains("nested"));
        assert!(Formula::parse(&"-".repeat(100_000)).is_err());
    }

    #[test]
    fn chains_are_bounded() {
        let chain = |operators: usize, operator: &str| format!("tp{} / (tp + fn)", operator.repeat(operators - 2));
        for operator in [" + 0", " - 0", " * 1", " / 1", "**1"] {
            let text = chain(30_000, operator);
            let message = Formula::parse(&text).unwrap_err().to_string();
            assert!(operator == "**1" || message.contains("more than 500 operators"), "{message}");
            assert!(message.len() < 500);
        }
        assert!(Formula::parse(&chain(500, " * 1")).is_ok());
        assert!(Formula::parse(&chain(501, " * 1")).is_err());
        let calls = vec!["abs(tp)"; 30_000].join(" + ");
        assert!(Formula::parse(&calls).unwrap_err().to_string().contains("more than 500 operators"));
    }
}
