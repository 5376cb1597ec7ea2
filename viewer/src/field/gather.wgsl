// A plane as it is shown, one fragment a value, from the field where it lies: the mean over a block of cells
// of the largest along the axis that one looks along.

struct Plane {
    // The field's first cell that counts, and cells from one to the next along the axis, a row and a column.
    first: u32,
    along: u32,
    row: u32,
    column: u32,
    // Cells along the axis.
    depth: u32,
    // Words of a value.
    words: u32,
    // Rows and columns of cells of a value, and of the plane.
    factor: vec2u,
    cells: vec2u,
}

@group(0) @binding(0) var<uniform> plane: Plane;
@group(0) @binding(1) var<storage, read> field: array<u32>;

@vertex
fn vertex(@builtin(vertex_index) index: u32) -> @builtin(position) vec4f {
    let corner = vec2f(f32((index << 1u) & 2u), f32(index & 2u));
    return vec4f(corner * 2.0 - 1.0, 0.0, 1.0);
}

// A value as the bits of an f32, finite where it was. Bits, for compilers may take for granted that no value
// is NaN.
fn bits_at(cell: u32) -> u32 {
    if plane.words == 1u {
        return field[cell];
    }
    let low = field[2u * cell];
    let high = field[2u * cell + 1u];
    let sign = high & 0x80000000u;
    let exponent = (high >> 20u) & 0x7ffu;
    let fraction = (high << 12u) | (low >> 20u);
    if exponent == 0x7ffu {
        return sign | 0x7f800000u | select(0u, 0x400000u, (fraction | low) != 0u);
    }
    if exponent > 1150u {
        return sign | 0x7f7fffffu;
    }
    if exponent < 897u {
        return sign;
    }
    return sign | ((exponent - 896u) << 23u) | (fraction >> 9u);
}

fn is_finite(bits: u32) -> bool {
    return (bits & 0x7f800000u) != 0x7f800000u;
}

fn is_nan(bits: u32) -> bool {
    return (bits & 0x7fffffffu) > 0x7f800000u;
}

// The largest value along the axis; NaN where there is one.
fn largest(first: u32) -> u32 {
    var most = bits_at(first);
    for (var k = 1u; k < plane.depth; k += 1u) {
        let next = bits_at(first + k * plane.along);
        if is_nan(next) || (!is_nan(most) && bitcast<f32>(next) > bitcast<f32>(most)) {
            most = next;
        }
    }
    return most;
}

@fragment
fn fragment(@builtin(position) at: vec4f) -> @location(0) f32 {
    let low = vec2u(u32(at.y), u32(at.x)) * plane.factor;
    let high = min(low + plane.factor, plane.cells);
    let share = 1.0 / f32((high.x - low.x) * (high.y - low.y));
    var mean = 0.0;
    var odd = 0u;
    for (var row = low.x; row < high.x; row += 1u) {
        for (var column = low.y; column < high.y; column += 1u) {
            let bits = largest(plane.first + row * plane.row + column * plane.column);
            if is_finite(bits) {
                mean += bitcast<f32>(bits) * share;
            } else {
                odd = bits;
            }
        }
    }
    if odd != 0u {
        return bitcast<f32>(odd);
    }
    return mean;
}
