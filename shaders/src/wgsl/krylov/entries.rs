//! The entry points of the phases, made around the functions that the methods' files hold.

use super::script::{Form, Phase};

const ROWS: &str = include_str!("../../../kernels/wgsl/krylov/entries/rows.wgsl");
const ROW_SUMS: &str = include_str!("../../../kernels/wgsl/krylov/entries/row_sums.wgsl");
const BASIS_SUMS: &str = include_str!("../../../kernels/wgsl/krylov/entries/basis_sums.wgsl");
const PRODUCT: &str = include_str!("../../../kernels/wgsl/krylov/entries/product.wgsl");
const PRODUCT_SUMS: &str = include_str!("../../../kernels/wgsl/krylov/entries/product_sums.wgsl");
const SCALARS: &str = include_str!("../../../kernels/wgsl/krylov/entries/scalars.wgsl");
const OF_SUMS: &str = include_str!("../../../kernels/wgsl/krylov/entries/of_sums.wgsl");
const OF_BASIS: &str = include_str!("../../../kernels/wgsl/krylov/entries/of_basis.wgsl");

/// Returns the text of a phase's entry point.
pub(super) fn entry(phase: &Phase) -> String {
    let (form, sums, groups) = match phase.form {
        Form::Rows => (ROWS, 0, ""),
        Form::RowSums(sums) => (ROW_SUMS, sums, ""),
        Form::BasisSums => (BASIS_SUMS, 1, ""),
        Form::Product => (PRODUCT, 0, ""),
        Form::ProductSums(sums) => (PRODUCT_SUMS, sums, ""),
        Form::Scalars => (SCALARS, 0, ""),
        Form::OfRows(sums) => (OF_SUMS, sums, "groups"),
        Form::OfProduct(sums) => (OF_SUMS, sums, "product_groups"),
        Form::OfBasis => (OF_BASIS, 1, "groups"),
    };
    form.replace("NAME", phase.name)
        .replace("COUNT", &format!("{sums}u"))
        .replace("task.GROUPS", &format!("task.{groups}"))
        .replace("WHEN", phase.when.constant())
}
