// A launch per stage, for programs of any kinds of fields: where ghost values are found.
//
// The generated text above numbers the boundary kinds and says which value a ghost value shows (`below`,
// `above`, `is_negated`). The generated text below has functions per kind of field and per buffer.

// Where the value at an index along an axis is found.
struct Ghost {
    index: i32,      // there, ...
    negated: bool,   // ... with the opposite sign
    constant: bool,  // or nowhere: the value is ...
    value: real,     // ... this one
}

// Asks the boundary until the index is inside. No index that a stage asks for needs more than `folds` turns.
fn ghost(i: i32, n: i32, folds: i32, low: i32, high: i32, low_value: real, high_value: real) -> Ghost {
    var index = i;
    var negated = false;
    var constant = false;
    var value = low_value;
    for (var fold = 0; fold < folds; fold++) {
        let under = index < 0;
        let over = index >= n;
        if !under && !over { continue; }
        let kind = select(high, low, under);
        if kind == CONSTANT {
            value = select(high_value, low_value, under);
            if negated { value = -value; }
            constant = true;
            negated = false;
            index = 0;
        } else {
            negated = negated != is_negated(kind);
            // A single value whose sides both mirror it shows itself.
            let endless = n == 1 && mirrors_a_value(low) && mirrors_a_value(high);
            if endless { index = 0; } else if under { index = below(kind, index, n); } else { index = above(kind, index, n); }
        }
    }
    return Ghost(index, negated, constant, value);
}

// Returns the value that is seen from beyond, where a buffer has `stored`. The slowest axis is asked first,
// and the first constant decides.
fn seen(stored: real, a: Ghost, b: Ghost, c: Ghost) -> real {
    if a.constant { return a.value; }
    if b.constant { return select(b.value, -b.value, a.negated); }
    let across = a.negated != b.negated;
    if c.constant { return select(c.value, -c.value, across); }
    return select(stored, -stored, across != c.negated);
}
