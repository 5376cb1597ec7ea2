//! The phases that make an iteration of each method, and the vectors that each phase binds.

use abide_core::solver::plan::Effort;
use abide_core::solver::plan::krylov::{Vector, applied, is_pointwise};
use abide_core::solver::{Matrix, Method, Preconditioning, SolveOptions, Status};
use abide_core::{Error, Result};

use super::fixed::Fixed;

/// The work that a dispatch covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Rows, each by itself.
    Vectors,
    /// Rows of a product with the matrix.
    Product,
    /// Scalars: one workgroup.
    Scalars,
}

/// What the entry point of a phase does around the function of the phase's name, and what it gives to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Calls it for each row `i`.
    Rows,
    /// Calls it for each row and leaves so many sums of its terms.
    RowSums(usize),
    /// Calls it for each row and each vector `k` of GMRES's basis, and leaves a sum per vector.
    BasisSums,
    /// Calls it for each row, with the row's product.
    Product,
    /// Calls it for each row, with the row's product, and leaves so many sums of its terms.
    ProductSums(usize),
    /// Calls it once.
    Scalars,
    /// Calls it once so many sums over rows are added up.
    OfRows(usize),
    /// Calls it once so many sums of a product are added up.
    OfProduct(usize),
    /// Calls it for each vector `k` of GMRES's basis with the vector's sum.
    OfBasis,
}

/// The role in which a phase binds a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A vector under its own name.
    Own(Vector),
    /// The vector that a product reads at the columns of its rows.
    Gathered,
    /// The vector that a preconditioner is applied to.
    Given,
    /// The vector that a product or a preconditioner makes.
    Made,
    /// The polynomial's next direction.
    Next,
}

/// A vector that a phase uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// The role, which gives the name.
    pub role: Role,
    /// The vector.
    pub vector: Vector,
    /// Whether the vector is read, and whether it is written.
    pub access: [bool; 2],
}

/// A dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// The phase's name, and its function's.
    pub name: &'static str,
    /// The entry point's form.
    pub(super) form: Form,
    /// The status of the run in which the phase does its work.
    pub when: Status,
    /// The step of the polynomial preconditioner; 0 is the first.
    pub step: usize,
    /// The vectors that the phase binds, each once.
    pub uses: Vec<Use>,
    /// The other buffers that the phase binds.
    pub fixed: Vec<Fixed>,
}

impl Phase {
    /// Returns the name of the entry point.
    pub fn entry(&self) -> String {
        format!("{}_phase", self.name)
    }

    /// Returns the work that the dispatch covers.
    pub fn work(&self) -> Work {
        match self.form {
            Form::Rows | Form::RowSums(_) | Form::BasisSums => Work::Vectors,
            Form::Product | Form::ProductSums(_) => Work::Product,
            Form::Scalars | Form::OfRows(_) | Form::OfProduct(_) | Form::OfBasis => Work::Scalars,
        }
    }

    /// Returns the phase with so many sums over its rows.
    fn with_sums(self, sums: usize) -> Phase {
        let form = match self.work() {
            Work::Product => Form::ProductSums(sums),
            _ => Form::RowSums(sums),
        };
        Phase { form, ..self }
    }
}

/// The dispatches of a method.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    /// The phases before the first iteration: the first residual and its test.
    pub begin: Vec<Phase>,
    /// The phases of an iteration.
    pub turn: Vec<Phase>,
    /// The phases after every `period` iterations, and at the end of each submission unless there is a
    /// `refresh`. They clear up suspicions about recurred products and residuals, or end GMRES's cycle.
    pub mend: Vec<Phase>,
    /// The phases after every `period` iterations that compute afresh what is recurred.
    pub refresh: Vec<Phase>,
    /// The iterations from one run of `mend` or `refresh` to the next.
    pub period: Option<usize>,
    /// The phases at the end of each submission: the true residual of a solution.
    pub check: Vec<Phase>,
    /// Vectors of GMRES's basis; 0 for other methods.
    pub basis: usize,
}

impl Script {
    /// Returns all phases.
    pub fn phases(&self) -> impl Iterator<Item = &Phase> {
        [&self.begin, &self.turn, &self.mend, &self.refresh, &self.check].into_iter().flatten()
    }

    /// Returns the vectors that the phases bind.
    pub fn vectors(&self) -> Vec<Vector> {
        let mut all = Vec::new();
        for used in self.phases().flat_map(|phase| &phase.uses) {
            if !all.contains(&used.vector) {
                all.push(used.vector);
            }
        }
        all
    }

    /// Returns the effort of an iteration.
    pub fn effort(&self) -> Effort {
        let passes = |used: &Use| used.access.iter().filter(|&&is| is).count();
        // GMRES adds a vector to a basis that is half full on average, and reads it four times.
        let of_basis = if self.basis > 0 { 1 + 4 * self.basis / 2 } else { 0 };
        Effort {
            dispatches: self.turn.len(),
            passes: self.turn.iter().flat_map(|phase| &phase.uses).map(passes).sum::<usize>() + of_basis,
            products: self.turn.iter().filter(|phase| phase.work() == Work::Product).count(),
            // The right-hand side b counts too.
            vectors: self.vectors().len() + self.basis + 1,
        }
    }
}

/// Iterations after which a suspicion is looked into, where nothing else sets a period.
const SUSPICION: usize = 64;

/// The most steps of the polynomial preconditioner, limited because each is a dispatch.
const DEGREE: usize = 64;

/// Returns the phases of a method with its preconditioner. A restart of 0 and a polynomial of too many steps
/// are errors.
pub fn script(matrix: &Matrix, options: &SolveOptions) -> Result<Script> {
    let (applied, rows, is_stored) = (applied(options), matrix.rows(), matches!(matrix, Matrix::Stored(_)));
    applied.check_kernels()?;
    match (options.method, applied) {
        (Method::Gmres(method), _) if method.restart == 0 => {
            Err(Error::limit("GMRES's restart", 0, "at least 1", "take 30"))
        }
        (_, Preconditioning::Chebyshev { degree }) if degree > DEGREE => {
            Err(Error::limit("the degree of a polynomial preconditioner on wgpu", degree, DEGREE, "take 3"))
        }
        (method, _) => Ok(Writer { method, applied, rows, is_stored }.script()),
    }
}

fn read(vector: Vector) -> Use {
    Use { role: Role::Own(vector), vector, access: [true, false] }
}

fn write(vector: Vector) -> Use {
    Use { role: Role::Own(vector), vector, access: [false, true] }
}

fn update(vector: Vector) -> Use {
    Use { role: Role::Own(vector), vector, access: [true, true] }
}

/// The writer of a method's phases.
struct Writer {
    method: Method,
    applied: Preconditioning,
    rows: usize,
    is_stored: bool,
}

impl Writer {
    /// Checks whether M^-1 r is computed where it is used, and has no vector of its own.
    fn is_pointwise(&self) -> bool {
        is_fused(self.method, self.applied)
    }

    fn is_plain(&self) -> bool {
        self.applied == Preconditioning::None
    }

    /// Returns the vectors that the kernels' `preconditioned` reads, where M^-1 r has the place `made`.
    fn preconditioned(&self, made: Vector) -> Vec<Use> {
        match self.applied {
            Preconditioning::None => Vec::new(),
            Preconditioning::Jacobi if self.is_pointwise() => vec![read(Vector::Inverse)],
            _ => vec![read(made)],
        }
    }

    fn vectors(&self, name: &'static str, uses: &[&[Use]]) -> Phase {
        use Fixed::{Call, Partials, State, Task};
        let fixed = vec![Task, Call, State, Partials];
        Phase { name, form: Form::Rows, when: Status::Running, step: 0, uses: uses.concat(), fixed }
    }

    fn product(&self, name: &'static str, gathered: Vector, uses: &[&[Use]]) -> Phase {
        use Fixed::{Columns, Offsets, Values};
        let mut phase = self.vectors(name, uses);
        phase.form = Form::Product;
        phase.uses.push(Use { role: Role::Gathered, vector: gathered, access: [true, false] });
        if self.is_stored {
            phase.fixed.extend([Offsets, Columns, Values]);
        }
        phase
    }

    fn scalars(&self, name: &'static str, form: Form) -> Phase {
        use Fixed::{Factors, History, Partials, StopTest, Task, Triangle};
        let mut fixed = vec![Task, StopTest, Partials, History];
        match self.method {
            Method::Chebyshev(_) => fixed.push(Factors),
            Method::Gmres(_) => fixed.push(Triangle),
            _ => {}
        }
        Phase { name, form, when: Status::Running, step: 0, uses: Vec::new(), fixed }
    }

    /// Returns the phase that computes `to = A from`.
    fn multiply(&self, from: Vector, to: Vector) -> Phase {
        self.product("multiply", from, &[&[made(to)]])
    }

    /// Returns the phase that computes `to = b - A x` and its square.
    fn residual(&self, to: Vector) -> Phase {
        let mut phase = self.product("residual", Vector::X, &[&[made(to)]]).with_sums(1);
        phase.fixed.push(Fixed::RightHandSide);
        phase
    }

    /// Returns the phases that compute `to = M^-1 from`: none where the result is computed on the way, or is
    /// the same as `from`.
    fn apply(&self, from: Vector, to: Vector) -> Vec<Phase> {
        if self.is_pointwise() {
            return Vec::new();
        }
        let given = Use { role: Role::Given, vector: from, access: [true, false] };
        let inverse = read(Vector::Inverse);
        match self.applied {
            // `script` refuses the host's own.
            Preconditioning::None | Preconditioning::Ilu | Preconditioning::Amg { .. } => Vec::new(),
            Preconditioning::Jacobi => vec![self.vectors("scale", &[&[given, inverse, made(to)]])],
            Preconditioning::BlockJacobi { .. } => {
                let mut phase = self.vectors("blocks", &[&[given, made(to)]]);
                phase.fixed.push(Fixed::Inverses);
                vec![phase]
            }
            Preconditioning::Chebyshev { degree } => {
                // The direction has two places, which it takes by turns.
                let place = |step: usize| [Vector::Direction, Vector::Image][step % 2];
                let next = |step: usize| Use { role: Role::Next, vector: place(step), access: [false, true] };
                let begin = [given, inverse, write(Vector::Residue), next(0), made(to)];
                let mut phases = vec![self.vectors("polynomial_begin", &[&begin])];
                for step in 1..=degree {
                    let sum = Use { access: [true, true], ..made(to) };
                    let uses = [inverse, update(Vector::Residue), next(step), sum];
                    phases.push(Phase { step, ..self.product("polynomial_step", place(step - 1), &[&uses]) });
                }
                phases
            }
        }
    }

    fn script(&self) -> Script {
        let mut script = match self.method {
            Method::Cg => self.cg(),
            Method::SingleReductionCg => self.cg_single(),
            Method::PipelinedCg(method) => self.cg_pipelined(method.replacement),
            Method::Minres => self.minres(),
            Method::BiCgStab => self.bicgstab(),
            Method::Chebyshev(_) => self.chebyshev(),
            Method::Jacobi(_) => self.jacobi(),
            // A basis of more vectors than rows is never filled.
            Method::Gmres(method) => self.gmres(method.restart.min(self.rows)),
        };
        // A vector that the iterations need no more.
        let scratch = if script.basis > 0 { Vector::V } else { Vector::R };
        script.check = vec![
            when(Status::Converged, self.residual(scratch)),
            when(Status::Converged, self.scalars("check", Form::OfProduct(1))),
        ];
        script
    }

    fn cg(&self) -> Script {
        use Vector::{P, Q, R, X, Z};
        let own = self.preconditioned(Z);
        let squares = self.vectors("squares", &[&[read(R)], &own]).with_sums(2);
        let test = self.scalars("test", Form::OfRows(2));
        let mut begin = vec![self.residual(R)];
        begin.extend(self.apply(R, Z));
        begin.extend([squares.clone(), test.clone()]);
        let mut turn = vec![
            self.vectors("direction", &[&[update(P), read(R)], &own]),
            self.product("curvature", P, &[&[write(Q)]]).with_sums(1),
            self.scalars("step_length", Form::OfProduct(1)),
        ];
        let moved = [update(X), update(R), read(P), read(Q)];
        if self.is_pointwise() {
            turn.push(self.vectors("step", &[&moved, &own]).with_sums(2));
        } else {
            turn.push(self.vectors("advance", &[&moved]));
            turn.extend(self.apply(R, Z));
            turn.push(squares);
        }
        turn.push(test);
        Script { begin, turn, ..Script::default() }
    }

    fn cg_single(&self) -> Script {
        use Vector::{P, R, S, W, X, Z};
        let own = self.preconditioned(Z);
        let products = if self.is_plain() {
            self.product("products", R, &[&[write(W)]])
        } else {
            self.product("products", Z, &[&[write(W), read(R)]])
        };
        let mut tail = self.apply(R, Z);
        tail.extend([products.with_sums(3), self.scalars("test", Form::OfProduct(3))]);
        let mut begin = vec![self.residual(R)];
        begin.extend(tail.clone());
        let mut turn =
            vec![self.vectors("step", &[&[update(P), update(S), update(X), update(R), read(W)], &own])];
        turn.extend(tail);
        let mut mend = self.suspect(Z);
        mend.push(when(Status::Renew, self.scalars("resume", Form::Scalars)));
        Script { begin, turn, mend, period: Some(SUSPICION), ..Script::default() }
    }

    fn cg_pipelined(&self, replacement: usize) -> Script {
        use Vector::{M, N, P, Q, R, S, U, W, X, Z};
        // Without a preconditioner u is r, m is w and q is s.
        let or = |vector: Vector, plain: Vector| if self.is_plain() { plain } else { vector };
        let afresh = || {
            let mut phases = vec![self.residual(R)];
            phases.extend(self.apply(R, U));
            phases.push(self.multiply(or(U, R), W));
            phases
        };
        let own = self.preconditioned(U);
        let squares = self.vectors("squares", &[&[read(R), read(W)], &own]).with_sums(3);
        let mut turn = vec![squares, self.scalars("test", Form::OfRows(3))];
        turn.extend(self.apply(W, M));
        turn.push(self.multiply(or(M, W), N));
        turn.push(self.vectors("products", &[&[read(N), update(S), update(Z), update(W)]]));
        turn.push(if self.is_plain() {
            self.vectors("directions", &[&[update(P), update(X), update(R), read(S)]])
        } else {
            self.vectors(
                "directions",
                &[&[update(P), update(Q), update(X), update(R), update(U), read(M), read(S)]],
            )
        });
        let confirm = self.scalars("confirm", Form::OfProduct(1));
        let mut mend = vec![self.residual(R), confirm]
            .into_iter()
            .map(|phase| when(Status::Confirm, phase))
            .collect::<Vec<_>>();
        mend.extend(self.suspect(U));
        mend.extend(afresh().into_iter().map(|phase| when(Status::Renew, phase)));
        mend.push(when(Status::Renew, self.scalars("restart", Form::Scalars)));
        let mut refresh = Vec::new();
        if replacement > 0 {
            refresh = afresh();
            refresh.push(self.multiply(P, S));
            refresh.extend(self.apply(S, Q));
            refresh.push(self.multiply(or(Q, S), Z));
        }
        let period = Some(if replacement > 0 { replacement } else { SUSPICION });
        Script { begin: afresh(), turn, mend, refresh, period, ..Script::default() }
    }

    /// Returns the phases that look into a recurred (p, A p): p, the product, the verdict.
    fn suspect(&self, made: Vector) -> Vec<Phase> {
        use Vector::{P, R};
        let suspect = self.vectors("suspect", &[&[update(P), read(R)], &self.preconditioned(made)]);
        let afresh = self.product("afresh", P, &[]).with_sums(1);
        let verdict = self.scalars("verdict", Form::OfProduct(1));
        [suspect, afresh, verdict].into_iter().map(|phase| when(Status::Suspect, phase)).collect()
    }

    fn minres(&self) -> Script {
        use Vector::{P, Q, R, S, T, W, X, Z};
        let own = self.preconditioned(Z);
        let mut lengths = self.apply(P, Z);
        lengths.push(self.vectors("squares", &[&[read(P), read(R)], &own]).with_sums(3));
        let start = [write(P), write(T), write(W), write(S), read(R)];
        let mut begin = vec![self.residual(R), self.vectors("begin", &[&start])];
        begin.extend(lengths.clone());
        begin.push(self.scalars("begin_test", Form::OfRows(3)));
        let mut turn = vec![
            self.product("form", if self.is_plain() { P } else { Z }, &[&[write(Q)]]).with_sums(1),
            self.scalars("lanczos", Form::OfProduct(1)),
            self.vectors("advance", &[&[update(P), update(T), update(W), update(S), read(Q)], &own]),
        ];
        turn.extend(lengths);
        turn.extend([
            self.scalars("rotate", Form::OfRows(3)),
            self.vectors("follow", &[&[update(W), update(X), update(R), read(P)]]),
            self.scalars("test", Form::Scalars),
        ]);
        Script { begin, turn, ..Script::default() }
    }

    fn bicgstab(&self) -> Script {
        use Vector::{P, PHat, R, SHat, Shadow, T, V, X};
        let (p_hat, s_hat) = if self.is_plain() { (P, R) } else { (PHat, SHat) };
        let begin = vec![
            self.residual(R),
            self.vectors("begin", &[&[write(Shadow), write(P), read(R)]]),
            self.scalars("begin_test", Form::OfProduct(1)),
        ];
        let mut turn = self.apply(P, PHat);
        turn.extend([
            self.product("project", p_hat, &[&[write(V), read(Shadow)]]).with_sums(1),
            self.scalars("first", Form::OfProduct(1)),
            self.vectors("half", &[&[update(R), read(V)]]),
        ]);
        turn.extend(self.apply(R, SHat));
        let own = if self.is_plain() { vec![] } else { vec![read(R)] };
        let direction = Use { vector: p_hat, ..read(PHat) };
        turn.extend([
            self.product("stabilise", s_hat, &[&[write(T)], &own]).with_sums(3),
            self.scalars("second", Form::OfProduct(3)),
            self.vectors(
                "advance",
                &[&[update(X), update(R), direction, read(T), read(Shadow)], &self.preconditioned(SHat)],
            )
            .with_sums(2),
            self.scalars("test", Form::OfRows(2)),
            self.vectors("direction", &[&[update(P), read(R), read(V)]]),
        ]);
        Script { begin, turn, ..Script::default() }
    }

    fn gmres(&self, restart: usize) -> Script {
        use Fixed::{Basis, Coefficients};
        use Vector::{V, W, X, Z};
        let with = |fixed: &[Fixed], mut phase: Phase| {
            phase.fixed.extend_from_slice(fixed);
            phase
        };
        let or = |vector: Vector, plain: Vector| if self.is_plain() { plain } else { vector };
        let orthogonal = |collect: &'static str| {
            [
                Phase { form: Form::BasisSums, ..with(&[Basis], self.vectors("project", &[&[read(W)]])) },
                self.scalars(collect, Form::OfBasis),
                with(&[Basis, Coefficients], self.vectors("subtract", &[&[update(W)]])).with_sums(1),
            ]
        };
        let mut turn = vec![with(&[Basis], self.vectors("normalise", &[&[read(W), write(V)]]))];
        turn.extend(self.apply(V, Z));
        turn.push(self.multiply(or(Z, V), W));
        turn.extend(orthogonal("collect"));
        turn.extend(orthogonal("collect_again"));
        turn.push(self.scalars("rotate", Form::OfRows(1)));
        let given = Use { role: Role::Given, vector: or(Z, W), access: [true, false] };
        let mut mend = vec![
            self.scalars("minimise", Form::Scalars),
            with(&[Basis, Coefficients], self.vectors("combine", &[&[write(W)]])),
        ];
        mend.extend(self.apply(W, Z));
        mend.extend([
            self.vectors("correct", &[&[update(X), given]]),
            self.residual(W),
            self.scalars("close", Form::OfProduct(1)),
        ]);
        let mend = mend.into_iter().map(|phase| when(Status::Closing, phase)).collect();
        let (begin, period) =
            (vec![self.residual(W), self.scalars("begin", Form::OfProduct(1))], Some(restart));
        Script { begin, turn, mend, period, basis: restart + 1, ..Script::default() }
    }

    fn chebyshev(&self) -> Script {
        use Vector::{P, R, X, Z};
        let begin = vec![self.residual(R), self.scalars("test", Form::OfProduct(1))];
        let mut turn = self.apply(R, Z);
        turn.extend([
            self.vectors("advance", &[&[update(P), update(X), read(R)], &self.preconditioned(Z)]),
            self.product("deduct", P, &[&[update(R)]]).with_sums(1),
            self.scalars("test", Form::OfProduct(1)),
        ]);
        Script { begin, turn, ..Script::default() }
    }

    fn jacobi(&self) -> Script {
        use Vector::{R, X, Z};
        let begin = vec![self.residual(R), self.scalars("test", Form::OfProduct(1))];
        let mut turn = self.apply(R, Z);
        turn.push(self.vectors("relax", &[&[update(X), read(R)], &self.preconditioned(Z)]));
        turn.extend(begin.clone());
        Script { begin, turn, ..Script::default() }
    }
}

fn made(vector: Vector) -> Use {
    Use { role: Role::Made, vector, access: [false, true] }
}

fn when(status: Status, phase: Phase) -> Phase {
    Phase { when: status, ..phase }
}

/// Checks whether a method computes M^-1 r where it is used. This is so where M is the identity, and where M
/// is diagonal and no product needs the vector.
pub(super) fn is_fused(method: Method, applied: Preconditioning) -> bool {
    let gathers = !matches!(method, Method::Cg | Method::Chebyshev(_) | Method::Jacobi(_));
    applied == Preconditioning::None || (is_pointwise(applied) && !gathers)
}
