use std::time::Duration;

use super::super::Solver;
use super::tile::KEPT;
use super::*;
use crate::individual::panels::DEPTH;

const FUNCTIONS: [Function; 3] =
    [Function::Radial { gamma: 0.15 }, Function::Polynomial { gamma: 0.2, degree: 3, coef0: 0.7 }, Function::Linear];

/// Everything that a flow needs.
#[derive(Clone)]
struct Example {
    features: Vec<f64>,
    targets: Vec<f64>,
    units: Vec<f64>,
    support_vectors: Vec<f64>,
    dual_coef: Vec<f64>,
    intercepts: Vec<f64>,
    pulls: Vec<f64>,
    eigenvectors: Vec<f64>,
    function: Function,
    loss: Loss,
    held: Vec<Vec<usize>>,
}

/// Numbers between -1 and 1.
fn numbers(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| ((i + 37 * seed) * 7_919 % 1_009) as f64 / 504.5 - 1.0).collect()
}

impl Example {
    fn new(n: usize, width: usize, n_vectors: usize, n_scores: usize, function: Function, loss: Loss) -> Self {
        let target = |i: usize| match loss {
            Loss::Squared => i as f64 / 50.0,
            _ => (i * 31 % 7 % n_scores.max(2)) as f64,
        };
        // Two columns of a reflection.
        let v: Vec<f64> = (0..width).map(|i| 1.0 + i as f64).collect();
        let length: f64 = v.iter().map(|v| v * v).sum();
        let column = |r: usize| -> Vec<f64> {
            (0..width).map(|i| f64::from(u8::from(i == r)) - 2.0 * v[i] * v[r] / length).collect()
        };
        // Squares of powers would run away.
        let scale = if loss == Loss::Squared { 0.5 } else { 4.0 } / (n_vectors as f64).sqrt();
        Self {
            features: numbers(n * width, 1),
            targets: (0..n).map(target).collect(),
            units: (0..width).map(|i| 0.5 + 0.3 * i as f64).map(|unit| unit.min(1.5)).collect(),
            support_vectors: numbers(n_vectors * width, 2),
            dual_coef: numbers(n_scores * n_vectors, 3).iter().map(|a| scale * a).collect(),
            intercepts: numbers(n_scores, 4),
            pulls: vec![0.0, 3.0],
            eigenvectors: [column(0), column(1)].concat(),
            function,
            loss,
            held: Vec::new(),
        }
    }

    fn run(&self, instructions: InstructionSet, schedule: &Schedule, control: &Control) -> Result<Flow> {
        let rows = Rows { features: &self.features, targets: &self.targets };
        let model = Model {
            support_vectors: &self.support_vectors,
            dual_coef: &self.dual_coef,
            intercepts: &self.intercepts,
            function: self.function,
        };
        let penalty = Penalty { units: &self.units, pulls: &self.pulls, eigenvectors: &self.eigenvectors, rest: 8.0 };
        let problem = Problem { rows, loss: self.loss, model, penalty, held: &self.held };
        problem.walk(instructions, schedule, control, |walk| walk.flow(control))
    }

    fn flow(&self, schedule: &Schedule) -> Flow {
        self.run(InstructionSet::current().unwrap(), schedule, &Control::default()).unwrap()
    }

    /// k(z, x) and its gradient by x.
    fn kernel(&self, z: &[f64], x: &[f64]) -> (f64, Vec<f64>) {
        let product: f64 = z.iter().zip(x).map(|(z, x)| z * x).sum();
        match self.function {
            Function::Radial { gamma } => {
                let value = (-gamma * z.iter().zip(x).map(|(z, x)| (x - z).powi(2)).sum::<f64>()).exp();
                (value, z.iter().zip(x).map(|(z, x)| -2.0 * gamma * value * (x - z)).collect())
            }
            Function::Polynomial { gamma, degree, coef0 } => {
                let base = gamma * product + coef0;
                let slope = f64::from(degree) * gamma * base.powi(degree as i32 - 1);
                (base.powi(degree as i32), z.iter().map(|z| slope * z).collect())
            }
            Function::Linear => (product, z.to_vec()),
        }
    }

    /// Scores, and their gradients by x.
    fn scores(&self, x: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let n_vectors = self.support_vectors.len() / x.len();
        let mut scores = self.intercepts.clone();
        let mut gradients = vec![vec![0.0; x.len()]; scores.len()];
        for (j, z) in self.support_vectors.chunks_exact(x.len()).enumerate() {
            let (value, gradient) = self.kernel(z, x);
            for c in 0..scores.len() {
                let factor = self.dual_coef[c * n_vectors + j];
                scores[c] += factor * value;
                gradients[c].iter_mut().zip(&gradient).for_each(|(sum, g)| *sum += factor * g);
            }
        }
        (scores, gradients)
    }

    /// Derivatives of the loss by the scores.
    fn slopes(&self, scores: &[f64], target: f64) -> Vec<f64> {
        let sigmoid = |n: f64| 1.0 / (1.0 + (-n).exp());
        if scores.len() > 1 {
            let total: f64 = scores.iter().map(|f| f.exp()).sum();
            let chance = |(c, f): (usize, &f64)| f.exp() / total - f64::from(u8::from(target == c as f64));
            return scores.iter().enumerate().map(chance).collect();
        }
        let (f, sign) = (scores[0], 2.0 * target - 1.0);
        vec![match self.loss {
            Loss::Log => -sign * sigmoid(-sign * f),
            Loss::SmoothHinge => sign * (sign * f - 1.0).clamp(-1.0, 0.0),
            Loss::SoftplusHinge => -sign * sigmoid(1.0 - sign * f),
            Loss::Squared => 2.0 * (f - target),
        }]
    }

    /// Where a row is when it has moved.
    fn place(&self, row: usize, moved: &[f64]) -> Vec<f64> {
        let width = self.units.len();
        (0..width).map(|i| self.features[row * width + i] + self.units[i] * moved[i]).collect()
    }

    fn velocity(&self, row: usize, moved: &[f64]) -> Vec<f64> {
        let (scores, gradients) = self.scores(&self.place(row, moved));
        let slopes = self.slopes(&scores, self.targets[row]);
        let mut speed: Vec<f64> = moved.iter().map(|m| -8.0 * m).collect();
        for (pull, q) in self.pulls.iter().zip(self.eigenvectors.chunks_exact(moved.len())) {
            let along: f64 = q.iter().zip(moved).map(|(q, m)| q * m).sum();
            speed.iter_mut().zip(q).for_each(|(speed, q)| *speed -= (pull - 8.0) * along * q);
        }
        for (slope, gradient) in slopes.iter().zip(&gradients) {
            for i in 0..moved.len() {
                speed[i] += self.units[i] * slope * gradient[i];
            }
        }
        speed
    }

    /// What a row has moved after all steps, by the platform's functions.
    fn plain(&self, row: usize, schedule: &Schedule) -> Vec<f64> {
        let ahead = |m: &[f64], h: f64, v: &[f64]| -> Vec<f64> { m.iter().zip(v).map(|(m, v)| m + h * v).collect() };
        let mut moved = vec![0.0; self.units.len()];
        for &h in &schedule.lengths {
            let first = self.velocity(row, &moved);
            moved = match schedule.solver {
                Solver::Euler => ahead(&moved, h, &first),
                Solver::Heun => {
                    let second = self.velocity(row, &ahead(&moved, h, &first));
                    ahead(&ahead(&moved, h / 2.0, &first), h / 2.0, &second)
                }
                Solver::Rk4 => {
                    let second = self.velocity(row, &ahead(&moved, h / 2.0, &first));
                    let third = self.velocity(row, &ahead(&moved, h / 2.0, &second));
                    let fourth = self.velocity(row, &ahead(&moved, h, &third));
                    let outer = ahead(&ahead(&moved, h / 6.0, &first), h / 6.0, &fourth);
                    ahead(&ahead(&outer, h / 3.0, &second), h / 3.0, &third)
                }
            };
        }
        moved
    }

    /// Compares the recorded steps 0 and the last one of all rows with the plain flow.
    fn check(&self, schedule: &Schedule) {
        let (found, n, width) = (self.flow(schedule), self.targets.len(), self.units.len());
        let still = vec![0.0; width];
        for row in 0..n {
            let moved = self.plain(row, schedule);
            for (a, b) in found.moved[row * width..].iter().zip(&moved) {
                assert!((a - b).abs() < 1e-11, "{:?} {:?}: {a} is not {b}", self.function, self.loss);
            }
            for (record, moved) in [&still, &moved].into_iter().enumerate() {
                for (c, score) in self.scores(&self.place(row, moved)).0.iter().enumerate() {
                    let found = found.scores[(record * self.intercepts.len() + c) * n + row];
                    assert!((found - score).abs() < 1e-11 * score.abs().max(1.0), "{found} is not {score}");
                }
            }
        }
    }
}

fn steps(n_steps: usize, solver: Solver) -> Schedule {
    Schedule::new(n_steps, 0.02, 0.3, solver, vec![0, n_steps]).unwrap()
}

#[test]
fn it_is_the_flow_in_feature_space() {
    for function in FUNCTIONS {
        for loss in [Loss::Log, Loss::SmoothHinge, Loss::SoftplusHinge, Loss::Squared] {
            Example::new(37, 7, 13, 1, function, loss).check(&steps(20, Solver::Euler));
        }
        for solver in [Solver::Euler, Solver::Heun, Solver::Rk4] {
            Example::new(5, 6, 10, 1, function, Loss::Log).check(&steps(20, solver));
            Example::new(35, 6, 12, 3, function, Loss::Log).check(&steps(20, solver));
        }
        Example::new(3, 2, 4, 7, function, Loss::Log).check(&steps(20, Solver::Euler));
        Example::new(3, 2, 0, 1, function, Loss::Log).check(&steps(20, Solver::Euler));
    }
    let mut plain = Example::new(40, 5, 9, 1, FUNCTIONS[0], Loss::Log);
    (plain.units, plain.pulls, plain.eigenvectors) = (vec![1.0; 5], vec![], vec![]);
    plain.check(&steps(50, Solver::Euler));
}

#[test]
fn large_models_go_in_chunks() {
    for function in FUNCTIONS {
        Example::new(3, 4, 2 * DEPTH + 3, 1, function, Loss::Log).check(&steps(3, Solver::Euler));
        Example::new(3, 4, KEPT + 7, 2, function, Loss::Log).check(&steps(3, Solver::Euler));
    }
    let wide = Function::Radial { gamma: 0.002 };
    Example::new(3, DEPTH + 3, 12, 2, wide, Loss::Log).check(&steps(3, Solver::Euler));
}

#[test]
fn every_power_is_one() {
    for degree in [1, 2, 4, 5, 17, 100] {
        let function = Function::Polynomial { gamma: 0.01, degree, coef0: 0.97 };
        Example::new(4, 3, 6, 1, function, Loss::Log).check(&steps(10, Solver::Euler));
    }
}

#[test]
fn solvers_of_a_higher_order_come_closer() {
    let example = Example::new(20, 4, 9, 1, FUNCTIONS[0], Loss::Log);
    let at = |solver, n_steps: usize| {
        example.flow(&Schedule::new(n_steps, 1.0 / n_steps as f64, 0.0, solver, vec![]).unwrap()).moved
    };
    let truth = at(Solver::Rk4, 2_000);
    let error =
        |solver, n_steps| at(solver, n_steps).iter().zip(&truth).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    for (solver, order) in [(Solver::Euler, 1), (Solver::Heun, 2), (Solver::Rk4, 4)] {
        let ratio = error(solver, 80) / error(solver, 160);
        let expected = f64::from(1 << order);
        assert!((ratio / expected - 1.0).abs() < 0.2, "{solver:?}: {ratio}");
    }
}

#[test]
fn neither_threads_nor_instruction_sets_nor_neighbours_change_a_bit() {
    let schedule = Schedule::new(6, 0.02, 0.3, Solver::Heun, vec![0, 2, 6]).unwrap();
    for (function, n_scores) in [(FUNCTIONS[0], 1), (FUNCTIONS[0], 3), (FUNCTIONS[1], 1), (FUNCTIONS[2], 2)] {
        let mut example = Example::new(70, 4, 23, n_scores, function, Loss::Log);
        let one = example.flow(&schedule);
        for instructions in InstructionSet::available() {
            assert_eq!(example.run(instructions, &schedule, &Control::with_threads(3)).unwrap(), one);
        }
        example.features.drain(..4 * 39);
        example.targets.drain(..39);
        assert_eq!(example.flow(&schedule).moved, one.moved[4 * 39..]);
    }
}

#[test]
fn rows_that_run_away_stay_among_themselves() {
    let function = Function::Polynomial { gamma: 1.0, degree: 9, coef0: 1.0 };
    let mut example = Example::new(2, 3, 8, 1, function, Loss::Squared);
    example.features[..3].fill(0.0);
    let kept = Schedule::new(50, 1e-9, 0.0, Solver::Euler, vec![50]).unwrap();
    let alone = example.flow(&kept).moved;
    example.features[3..].fill(1e30);
    let found = example.flow(&kept);
    assert_eq!(found.moved[..3], alone[..3]);
    assert!(found.scores[0].is_finite() && !found.scores[1].is_finite());
    // Far from all support vectors nothing moves.
    let mut far = Example::new(1, 3, 8, 1, FUNCTIONS[0], Loss::Log);
    far.features.fill(1e8);
    assert_eq!(far.flow(&steps(5, Solver::Euler)).moved, [0.0; 3]);
    let none = Schedule::new(0, 0.1, 0.0, Solver::Heun, vec![0]).unwrap();
    assert_eq!(far.flow(&none), Flow { scores: far.intercepts.clone(), moved: vec![0.0; 3] });
}

#[test]
fn it_can_be_stopped_in_the_middle_of_a_tile() {
    let example = Example::new(1, 4, 100, 1, FUNCTIONS[0], Loss::Log);
    let schedule = Schedule::new(100_000_000, 1e-9, 0.0, Solver::Euler, vec![]).unwrap();
    let control = Control::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            control.cancel();
        });
        let outcome = example.run(InstructionSet::current().unwrap(), &schedule, &control);
        assert_eq!(outcome, Err(Error::Cancelled));
    });
}

#[test]
fn what_does_not_fit_is_refused() {
    let schedule = steps(1, Solver::Euler);
    let refused = |change: fn(&mut Example), text: &str| {
        let mut example = Example::new(2, 3, 4, 2, FUNCTIONS[0], Loss::Log);
        change(&mut example);
        let error = example.run(InstructionSet::Baseline, &schedule, &Control::default()).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    refused(|example| example.features.truncate(5), "features is of length 5");
    refused(|example| example.dual_coef.truncate(7), "dual_coef is of length 7");
    refused(|example| example.support_vectors.truncate(11), "support_vectors is of length 11");
    refused(|example| example.pulls.truncate(1), "eigenvectors is of length 6");
    refused(|example| example.intercepts.clear(), "intercepts is empty");
    refused(|example| example.units.clear(), "units is empty");
    refused(|example| example.targets[0] = 2.0, "targets is");
    refused(|example| example.loss = Loss::Squared, "log_loss for several scores");
    assert!(Function::new("sigmoid", 1.0, 3, 0.0).is_err());
    assert!(Function::new("rbf", 0.0, 3, 0.0).is_err());
    assert!(Function::new("polynomial", 1.0, 0, 0.0).is_err());
    assert_eq!(Function::new("linear", -1.0, 0, 0.0), Ok(Function::Linear));
}

#[test]
fn features_that_are_held_stay_on_their_simplex() {
    for function in FUNCTIONS {
        let mut example = Example::new(40, 5, 6, 1, function, Loss::Log);
        for row in example.features.chunks_exact_mut(5) {
            let choice = usize::from(row[0] > 0.0) + usize::from(row[0] > 0.5);
            (0..3).for_each(|i| row[i + 1] = f64::from(u8::from(i == choice)));
        }
        let schedule = steps(30, Solver::Heun);
        let place = |found: &Flow, row: usize, i: usize| {
            example.units[i].mul_add(found.moved[row * 5 + i], example.features[row * 5 + i])
        };
        let free = example.flow(&schedule);
        let sum = |found: &Flow, row: usize| (1..4).map(|i| place(found, row, i)).sum::<f64>();
        assert!((0..40).any(|row| (sum(&free, row) - 1.0).abs() > 0.01));
        let held = Example { held: vec![vec![1, 2, 3]], ..example.clone() };
        let control = Control::default();
        let found = held.run(InstructionSet::current().unwrap(), &schedule, &control).unwrap();
        assert_ne!(found.moved, free.moved);
        for row in 0..40 {
            assert!((sum(&found, row) - 1.0).abs() < 1e-14);
            assert!((1..4).all(|i| place(&found, row, i) >= -1e-15));
        }
        for instructions in InstructionSet::available() {
            assert_eq!(held.run(instructions, &schedule, &Control::with_threads(2)).unwrap(), found);
        }
    }
}
