//! Elementary functions of the cells of a group, compiled for each instruction set.

use std::time::{Duration, Instant};

use abide_core::expr::Draw;
use abide_core::functions::{Function, FunctionRate};
use abide_core::{DType, Real};
use multiversion::multiversion;

/// Replaces each of `values` by the function of it and, where that has two arguments, of the one of `others` beside
/// it; `turned`, of both in the opposite order.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub fn replace<T: Real>(function: Function, values: &mut [T], others: &[T], turned: bool) {
    if function.arguments() == 1 {
        function.replace(values, |_| T::ZERO, turned);
    } else {
        // As long, so that no index needs a check.
        let others = &others[..values.len()];
        function.replace(values, |i| others[i], turned);
    }
}

/// Replaces indices along a row by random numbers, whose other operands are the same for all.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub fn draw<T: Real>(draw: Draw, along: &mut [T], [z, y, seed, step, turn]: [T; Draw::OPERANDS - 1]) {
    for value in along {
        *value = draw.value([z, y, *value, seed, step, turn]);
    }
}

/// Values of a run, which stay in the first-level cache, and those of a group.
const VALUES: usize = 1024;
const GROUP: usize = 64;

/// The time that each is measured for.
const MEASURED: Duration = Duration::from_millis(100);

/// A type whose numbers have functions in the standard library.
trait Standard: Real {
    /// Returns the standard library's function.
    fn standard(function: Function) -> fn(Self, Self) -> Self;
}

macro_rules! standard {
    ($($real:ident $erf:ident;)*) => {$(
        impl Standard for $real {
            fn standard(function: Function) -> fn($real, $real) -> $real {
                match function {
                    Function::Exp => |x, _| x.exp(),
                    Function::Log => |x, _| x.ln(),
                    Function::Sin => |x, _| x.sin(),
                    Function::Cos => |x, _| x.cos(),
                    Function::Tanh => |x, _| x.tanh(),
                    Function::Cbrt => |x, _| x.cbrt(),
                    Function::Expm1 => |x, _| x.exp_m1(),
                    Function::Log1p => |x, _| x.ln_1p(),
                    Function::Erf => |x, _| libm::$erf(x),
                    Function::Pow => |x, y| x.powf(y),
                    Function::Atan2 => |y, x| y.atan2(x),
                }
            }
        }
    )*};
}
standard!(f32 erff; f64 erf;);

/// Times a function on one thread, in groups as a bytecode has them, and the standard library's, number by number;
/// of the error function, which that lacks, libm's.
pub fn rate(function: Function, dtype: DType) -> FunctionRate {
    match dtype {
        DType::F32 => rate_of::<f32>(function),
        DType::F64 => rate_of::<f64>(function),
    }
}

fn rate_of<T: Standard>(function: Function) -> FunctionRate {
    let arguments: Vec<[f64; 2]> = (0..VALUES).map(|i| function.ordinary(i as f64 / VALUES as f64)).collect();
    let of = |second: usize| -> Vec<T> { arguments.iter().map(|both| T::from_f64(both[second])).collect() };
    let (x, y) = (of(0), of(1));
    let mut values = x.clone();
    let formula = timed(|| {
        values.copy_from_slice(&x);
        for (values, others) in values.chunks_mut(GROUP).zip(y.chunks(GROUP)) {
            replace(function, values, others, false);
        }
        std::hint::black_box(&mut values);
    });
    let mut single = x.clone();
    for (value, &other) in single.iter_mut().zip(&y) {
        replace(function, std::slice::from_mut(value), &[other], false);
    }
    let wrong = values.iter().zip(&single).filter(|(a, b)| a.to_bits64() != b.to_bits64()).count();
    let standard = T::standard(function);
    let platform = timed(|| {
        for ((value, &x), &y) in values.iter_mut().zip(&x).zip(&y) {
            *value = standard(x, y);
        }
        std::hint::black_box(&mut values);
    });
    FunctionRate { formula, platform, wrong }
}

/// Returns the values per second of a run of [`VALUES`].
fn timed(mut run: impl FnMut()) -> f64 {
    run();
    let (start, mut runs) = (Instant::now(), 0);
    while start.elapsed() < MEASURED {
        run();
        runs += 1;
    }
    (runs * VALUES) as f64 / start.elapsed().as_secs_f64()
}
