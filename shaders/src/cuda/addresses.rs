//! Where launches per stage find the values of a field: each field in an array of its own, or thousands of components in one
//! array each.

use abide_core::{Problem, Program};

use super::pitch::pitched_cells;
use crate::text::Text;

const INLINE: &str = "__device__ __forceinline__ real*";
const ALL: &str = "real* const (&all)[ARRAYS]";

/// Writes where a field begins, and the component so many behind a field: components lie one behind the other where they
/// share an array.
pub(super) fn write(text: &mut Text, problem: &Problem, program: &Program) {
    let arrays = program.arrays();
    let [field, component] = if arrays.len() == program.fields().len() {
        ["all[field]", "all[FIRST + number]"]
    } else {
        let by_array = |name: &str, of: &dyn Fn(usize) -> usize| {
            let each = arrays.iter().enumerate();
            let each = each.map(|(number, array)| format!("field < {} ? {} : ", array.end, of(number)));
            let all: String = each.collect();
            format!("__device__ constexpr int {name}(int field) {{ return {all}0; }}")
        };
        text.push(by_array("array_of", &|number| number));
        text.push(by_array("first_of", &|number| arrays[number].start));
        text.push(format!("constexpr long long COMPONENT = {};", pitched_cells(problem)));
        [
            "all[array_of(field)] + (field - first_of(field)) * COMPONENT",
            "all[array_of(FIRST)] + (FIRST - first_of(FIRST) + number) * COMPONENT",
        ]
    };
    text.push(format!("{INLINE} of_field({ALL}, int field) {{ return {field}; }}"));
    text.push(format!(
        "template <int FIRST> {INLINE} of_component({ALL}, int number) {{ return {component}; }}"
    ));
}
