// Colours of a plane of a field. Values come as they are, one for each block of cells; the map is a row of
// 256 colours.

struct Uniforms {
    // The cells at the top left corner of the view, and how many it shows across: (column, row).
    view_low: vec2f,
    view_size: vec2f,
    // The cells that the values are of.
    low: vec2f,
    high: vec2f,
    // Cells of a value.
    factor: vec2f,
    // Columns and rows of values.
    size: vec2f,
    // The ends of the scale, as logarithms where it is logarithmic.
    range: vec2f,
    logarithmic: u32,
    // Lines of equal values between the ends; 0 for none.
    contours: u32,
    smooth_: u32,
    // Whether the target takes linear light.
    linear_target: u32,
}

@group(0) @binding(0) var<uniform> u: Uniforms;
@group(0) @binding(1) var values: texture_2d<f32>;
@group(0) @binding(2) var colours: texture_2d<f32>;

// Whether anything between values is drawn: lines, or values that are interpolated.
override BETWEEN: bool;

struct Corner {
    @builtin(position) position: vec4f,
    @location(0) uv: vec2f,
}

// A triangle that covers the viewport.
@vertex
fn vertex(@builtin(vertex_index) index: u32) -> Corner {
    let uv = vec2f(f32((index << 1u) & 2u), f32(index & 2u));
    return Corner(vec4f(uv.x * 2.0 - 1.0, 1.0 - uv.y * 2.0, 0.0, 1.0), uv);
}

fn value_at(at: vec2f) -> f32 {
    let texel = clamp(at, vec2f(0.0), u.size - 1.0);
    return textureLoad(values, vec2i(texel), 0).r;
}

// Compilers may assume that no value is NaN, so NaNs are found by their bits.
fn is_finite(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7f800000u) != 0x7f800000u;
}

fn place(value: f32) -> f32 {
    var along = value;
    if u.logarithmic != 0u {
        along = log(max(value, 1.1754944e-38));
    }
    // Halves, so that a range as wide as the type does not overflow.
    return clamp((0.5 * along - 0.5 * u.range.x) / (0.5 * u.range.y - 0.5 * u.range.x), 0.0, 1.0);
}

fn between(at: vec2f) -> f32 {
    let corner = floor(at - 0.5);
    let f = at - 0.5 - corner;
    let top = mix(place(value_at(corner)), place(value_at(corner + vec2f(1.0, 0.0))), f.x);
    let bottom = mix(place(value_at(corner + vec2f(0.0, 1.0))), place(value_at(corner + vec2f(1.0, 1.0))), f.x);
    return mix(top, bottom, f.y);
}

fn to_linear(c: vec3f) -> vec3f {
    return select(pow((c + 0.055) / 1.055, vec3f(2.4)), c / 12.92, c <= vec3f(0.04045));
}

@fragment
fn fragment(corner: Corner) -> @location(0) vec4f {
    let cell = u.view_low + corner.uv * u.view_size;
    let at = (cell - u.low) / u.factor;
    let value = value_at(floor(at));
    var shade = place(value);
    var level = 0.0;
    var steepness = 1.0;
    if BETWEEN {
        // Derivatives are taken before any pixel goes its own way.
        let interpolated = between(at);
        level = interpolated * f32(u.contours + 1u);
        steepness = fwidth(level);
        if u.smooth_ != 0u {
            shade = interpolated;
        }
    }
    let line = abs(fract(level - 0.5) - 0.5) / max(steepness, 1e-6);
    if any(cell < u.low) || any(cell >= u.high) {
        discard;
    }
    var colour = textureLoad(colours, vec2i(i32(round(shade * 255.0)), 0), 0).rgb;
    if BETWEEN && u.contours != 0u && level > 0.5 && level < f32(u.contours) + 0.5 && line < 0.8 && steepness < 0.7 {
        // Dark lines on bright colours, bright ones on dark: by the colour of the line's own value, the same
        // all along it.
        let own = i32(round(round(level) / f32(u.contours + 1u) * 255.0));
        let bright = dot(textureLoad(colours, vec2i(own, 0), 0).rgb, vec3f(0.299, 0.587, 0.114)) > 0.4;
        colour = mix(colour, select(vec3f(1.0), vec3f(0.0), bright), 0.55);
    }
    if !is_finite(value) {
        colour = vec3f(1.0, 0.0, 1.0);
    }
    if u.linear_target != 0u {
        colour = to_linear(colour);
    }
    return vec4f(colour, 1.0);
}
