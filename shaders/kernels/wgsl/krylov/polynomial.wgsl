// The Chebyshev polynomial in D^-1 A (Saad, 2nd ed., section 12.3.2): steps of Chebyshev iteration from 0,
// with factors known beforehand. Directions lie in two vectors by turns, because a step reads the old one at
// other rows while it writes the new one.

fn polynomial_begin(i: u32) {
    let direction = call.add * (inverse[i] * given[i]);
    residue[i] = given[i];
    next[i] = direction;
    made[i] = direction;
}

fn polynomial_step(i: u32, product: real) {
    let left = residue[i] - product;
    let direction = call.keep * gathered[i] + call.add * (inverse[i] * left);
    residue[i] = left;
    next[i] = direction;
    made[i] += direction;
}
