//! A system of linear equations while it is solved: its matrix as a picture, its residual as a curve.

mod page;
mod pattern;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use abide::solve::{Matrix, Method, Parameters, Precision, Preconditioning, SolverError, named};
use abide::sparse::Csr;
use abide::{Array, Choice, DType, Result, Solve};

pub use page::Page;
pub use pattern::Pattern;

/// The longest that closing waits for the solver, which ends after its iteration.
const FAREWELL: Duration = Duration::from_secs(2);

/// A system to be solved, as typed.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// A Matrix Market file, or a matrix by name as in `laplacian2d:100x100`.
    pub matrix: String,
    /// A method by name; empty for the method that suits the matrix.
    pub method: String,
    /// A preconditioner by name.
    pub preconditioner: String,
    /// The tolerance: the residual's norm over the right-hand side's at which to stop.
    pub tolerance: f64,
    /// The type of matrix and vectors.
    pub precision: Precision,
    /// The backend.
    pub backend: Choice,
}

impl Question {
    /// Makes the question for a matrix, with everything else as the command has it.
    pub fn new(matrix: &str) -> Question {
        Question {
            matrix: matrix.to_owned(),
            method: String::new(),
            preconditioner: "none".to_owned(),
            tolerance: 1e-8,
            precision: Precision::Plain(DType::F64),
            backend: Choice::Auto,
        }
    }

    fn load(&self) -> Result<Csr> {
        let dtype = self.precision.dtype();
        let path = Path::new(&self.matrix);
        if path.extension().is_some_and(|e| e == "mtx" || e == "gz") {
            abide::solve::read_matrix(path, dtype)
        } else {
            named::matrix(&self.matrix, dtype)
        }
    }
}

/// News of the solver's thread.
#[derive(Debug, Clone)]
pub enum News {
    /// The matrix has been read.
    Matrix(Pattern),
    /// The solver has begun: the backend, the method, and what was chosen for the user.
    Begun(String, Vec<String>),
    /// The solver converged: iterations, seconds, the norm of the true residual.
    Done {
        /// Iterations.
        iterations: usize,
        /// Wall time in seconds.
        seconds: f64,
        /// The norm of `b - A x`, computed afresh.
        residual: Option<f64>,
    },
    /// The solver did not converge, or failed: the reason.
    Failed(String),
}

/// A solver in its own thread. Dropping it ends the solver after its iteration.
pub struct Solving {
    news: Receiver<News>,
    residuals: Arc<Mutex<Vec<f64>>>,
    stop: Arc<AtomicBool>,
    gone: Receiver<()>,
}

impl Solving {
    /// Starts the solver; `wake` is called whenever there is news.
    pub fn new(question: Question, wake: impl Fn() + Send + Sync + 'static) -> Solving {
        let (sender, news) = mpsc::channel();
        let (leaving, gone) = mpsc::channel();
        let residuals = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let run =
            Run { question, sender, residuals: residuals.clone(), stop: stop.clone(), wake: Box::new(wake) };
        let spawned = std::thread::Builder::new().name("abide solve".to_owned()).spawn(move || {
            if let Err(error) = run.work() {
                run.publish(News::Failed(error.to_string()));
            }
            // The receiver may be gone already.
            let _ = leaving.send(());
        });
        // Without a thread there is no news.
        drop(spawned);
        Solving { news, residuals, stop, gone }
    }

    /// Returns the next news, if there is any.
    pub fn news(&self) -> Option<News> {
        self.news.try_recv().ok()
    }

    /// Adds the residuals that are new to the known ones.
    pub fn residuals(&self, known: &mut Vec<f64>) {
        let all = self.residuals.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend_from_slice(all.get(known.len()..).unwrap_or_default());
    }

    /// Ends the solver after its iteration.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for Solving {
    fn drop(&mut self) {
        self.stop();
        if let Err(RecvTimeoutError::Timeout) = self.gone.recv_timeout(FAREWELL) {
            eprintln!("the solver is still in an iteration; leaving it behind");
        }
    }
}

struct Run {
    question: Question,
    sender: Sender<News>,
    residuals: Arc<Mutex<Vec<f64>>>,
    stop: Arc<AtomicBool>,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Run {
    fn publish(&self, news: News) {
        // The window may be closed already.
        let _ = self.sender.send(news);
        (self.wake)();
    }

    fn work(&self) -> Result<(), SolverError> {
        let question = &self.question;
        let method = match question.method.trim() {
            "" => None,
            name => Some(name.parse::<Method>()?),
        };
        let preconditioner: Preconditioning = question.preconditioner.trim().parse()?;
        let matrix = question.load()?;
        self.publish(News::Matrix(Pattern::of(&matrix)));
        let (rows, dtype) = (matrix.rows(), question.precision.dtype());
        let parameters = Parameters { relative: question.tolerance, ..Parameters::DEFAULT };
        let mut solve = Solve::new(Matrix::from(matrix))
            .preconditioner(preconditioner)
            .parameters(parameters)
            .precision(question.precision)
            .backend(question.backend);
        if let Some(method) = method {
            solve = solve.method(method);
        }
        let mut system = solve.open()?;
        let how = format!("{} on {}", system.plan().method, system.backend());
        self.publish(News::Begun(how, system.notes().to_vec()));
        let ones = Array::from_fn(dtype, rows, |_| 1.0);
        let mut x = Array::zeros(dtype, rows)?;
        let report = system.solve_observed(&ones, &mut x, &mut |_, residual| {
            self.residuals.lock().unwrap_or_else(PoisonError::into_inner).push(residual);
            (self.wake)();
            if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        self.publish(News::Done {
            iterations: report.iterations,
            seconds: report.seconds,
            residual: report.true_residual,
        });
        Ok(())
    }
}
