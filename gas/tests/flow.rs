//! Programs of flows.

use abide_gas::{Flow, Mixture, Scheme, Side, Table, Uniform};

#[test]
fn every_flow_is_a_program() {
    let table = Table::builtin().unwrap();
    let all: Vec<&str> = table.species().iter().map(|species| &*species.name).collect();
    for axes in 1..=3 {
        for scheme in [Scheme::Keep, Scheme::Hllc] {
            for order in [2, 4, 6] {
                for flow in [
                    Flow::ideal(1.4, 287.0, axes),
                    Flow::of(&Mixture::of(&table, &["N2"]).unwrap(), axes),
                    Flow::of(&Mixture::of(&table, &["CH4", "O2", "N2"]).unwrap(), axes),
                ] {
                    let flow = flow.scheme(scheme).order(order);
                    for flow in [flow.clone(), flow.clone().viscous(), flow.viscous().courant(0.3)] {
                        let program = flow.program().unwrap();
                        assert_eq!(program.dimensions(), axes);
                        flow.start().unwrap();
                    }
                }
            }
        }
    }
    let gas = Mixture::of(&table, &all).unwrap();
    let program = Flow::of(&gas, 3).order(6).courant(0.5).program().unwrap();
    assert!(program.fields().contains(&"rhoY[52]".to_owned()));
    let few = Mixture::of(&table, &["N2"]).unwrap();
    for (flow, reason) in [
        (Flow::of(&few, 4), "axes"),
        (Flow::of(&few, usize::MAX), "axes"),
        (Flow::of(&few, 1).side(usize::MAX, 0, Side::Slip), "axis"),
        (Flow::of(&few, 2).order(3), "order"),
        (Flow::of(&few, 1).newton(0), "Newton"),
        (Flow::of(&few, 1).newton(33), "Newton"),
        (Flow::of(&few, 1).side(0, 0, Side::Slip), "periodic"),
        (Flow::of(&few, 1).side(1, 0, Side::Slip), "axis"),
        (Flow::of(&gas, 3).viscous(), "fields"),
    ] {
        let error = flow.program().unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_state_has_as_many_velocities_as_axes() {
    let few = Mixture::of(&Table::builtin().unwrap(), &["N2"]).unwrap();
    let state =
        |axes| Uniform { temperature: 300.0, pressure: 1e5, velocity: vec![1.0; axes], fractions: vec![] };
    assert!(Flow::of(&few, 2).uniform(&state(2)).is_ok());
    for (axes, velocities) in [(2, 1), (2, 3), (4, 4)] {
        assert!(Flow::of(&few, axes).uniform(&state(velocities)).is_err());
    }
    let nowhere = Uniform { temperature: -1.0, ..state(2) };
    assert!(Flow::of(&few, 2).beginning(&nowhere).is_err());
    assert!(Flow::of(&few, 2).beginning_in_corner(&[0.5], &state(2), &state(2)).is_err());
}
