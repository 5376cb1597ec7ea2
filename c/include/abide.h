/* Abide for C and C++. Made from the crate abide-c; changes here are lost.
 *
 * Each function returns ABIDE_OK or the kind of failure, which abide_last_error returns in words.
 * A handle may be used by any thread, by one at a time: a call on a handle that another thread is using
 * returns ABIDE_BUSY. Nobody may use a handle that is being freed. Strings are UTF-8.
 */

#ifndef ABIDE_H
#define ABIDE_H

#include <stddef.h>
#include <stdint.h>

// The variable lies slowest: `q(i, j, k, variable)` in Fortran, `q[variable][k][j][i]` in C.
#define ABIDE_VARIABLE_SLOWEST 0

// The variable lies fastest: `q(variable, i, j, k)` in Fortran, `q[k][j][i][variable]` in C.
#define ABIDE_VARIABLE_FASTEST 1

// All variables of a block.
#define ABIDE_ALL_VARIABLES -1

// The name of the backend that runs: `cpu`, `wgpu` or `cuda`.
#define ABIDE_TEXT_BACKEND 0

// The name of the device.
#define ABIDE_TEXT_DEVICE 1

// The plan that runs, in words.
#define ABIDE_TEXT_PLAN 2

// Where the simulation differs from what was asked, and why: a line each.
#define ABIDE_TEXT_NOTES 3

// The report of the last run as JSON.
#define ABIDE_TEXT_REPORT 4

// The number of the interface. It changes where programs that were compiled with another `abide.h` would not work; it is also
// the last part of the shared library's name.
#define ABIDE_INTERFACE 0

// Values of 32 bits, `float` and `real(real32)`.
#define ABIDE_F32 1

// Values of 64 bits, `double` and `real(real64)`.
#define ABIDE_F64 2

// An array in the host's memory.
#define ABIDE_HOST 0

// An array in the memory of a CUDA device.
#define ABIDE_CUDA 1

// The most axes of an array: three of a domain, and one before them, of variables or of a batch's members.
#define ABIDE_AXES 4

// A mixture of species whose properties can be computed.
typedef struct abide_gas abide_gas;

// A model of the catalogue, or of a text.
typedef struct abide_model abide_model;

// Options of a simulation, a system or a gas.
typedef struct abide_options abide_options;

// A simulation in progress.
typedef struct abide_simulation abide_simulation;

// A matrix loaded on a device, for one right-hand side after the other.
typedef struct abide_system abide_system;

// What a function returns: `ABIDE_OK` or the kind of failure. The first five are the exit statuses of the command `abide`.
typedef int32_t abide_status;

// An array of several variables on a block of cells with fringes (ghost cells) around it. Of its axes, `i` lies fastest in
// memory.
typedef struct {
  // The address of the first value, fringes included.
  void *data;
  // `ABIDE_F32` or `ABIDE_F64`.
  int32_t dtype;
  // `ABIDE_HOST` or `ABIDE_CUDA`.
  int32_t memory;
  // The number of the device, for `ABIDE_CUDA`.
  int32_t device;
  // `ABIDE_VARIABLE_SLOWEST` or `ABIDE_VARIABLE_FASTEST`.
  int32_t order;
  // The number of axes, 1 (`i`) to 3 (`i`, `j`, `k`).
  int32_t axes;
  // The number of variables.
  int64_t variables;
  // The cells along `i`, `j` and `k`, without fringes.
  int64_t cells[3];
  // The width of the fringes at both sides, along `i`, `j` and `k`.
  int64_t fringes[3];
} abide_block;

// An array of the caller's. Axes are listed slowest first, as fields have them: `z, y, x`. Where they lie in memory is
// what the strides say; of a Fortran array `u(i, j, k)` the extents are those of `k`, `j`, `i` and the strides
// `ni * nj`, `ni`, `1`.
typedef struct {
  // The address of the value whose indices are all the first.
  void *data;
  // `ABIDE_F32` or `ABIDE_F64`.
  int32_t dtype;
  // `ABIDE_HOST` or `ABIDE_CUDA`.
  int32_t memory;
  // The number of the device, for `ABIDE_CUDA`.
  int32_t device;
  // The number of axes, 1 to 4.
  int32_t axes;
  // The values along each axis.
  int64_t extents[ABIDE_AXES];
  // The distance from one value to the next along each axis, in values; may be negative.
  int64_t strides[ABIDE_AXES];
} abide_view;

// The initial values of a field.
typedef struct {
  // The field's name.
  const char *field;
  // Its values, in the host's memory. They are copied.
  abide_view values;
} abide_input;

// The report on a run.
typedef struct {
  // Steps done.
  uint64_t steps;
  // Steps asked for; more than `steps` only where a condition or the observer ended the run.
  uint64_t steps_asked;
  // Cells of the domain, of a batch summed over its members.
  uint64_t cells;
  // Seconds that the device took.
  double seconds;
  // Cells times steps per second, in 10⁹.
  double gcells_per_s;
  // Bytes to and from device memory by the plan's model.
  double bytes_moved;
  // The least bytes possible.
  double bytes_least;
  // The rate over the rate that the plan projects as the peak.
  double share_of_projected_peak;
  // 0. Later versions may use it.
  double reserved[8];
} abide_report;

// A function that sees the steps done since the start and the seconds of the run so far, and ends the run by any other
// value than 0. It must return: no exception and no `longjmp` may leave it. On the simulation that runs it may call nothing.
typedef int32_t (*abide_observer)(void *user, uint64_t step, double seconds);

// A matrix in compressed rows. The columns of each row ascend, each stands there once.
typedef struct {
  // The number of rows.
  int64_t rows;
  // The number of columns.
  int64_t columns;
  // Where each row begins among the entries, and the end of the last row: `rows + 1` integers.
  const void *offsets;
  // The column of each entry: as many integers as the last offset says.
  const void *indices;
  // The bytes of an integer, 4 or 8.
  int32_t index_bytes;
  // The number of the first row, column and entry: 0, or 1 as in Fortran.
  int32_t base;
  // The value of each entry.
  const void *values;
  // The type of the values, `ABIDE_F32` or `ABIDE_F64`.
  int32_t dtype;
} abide_csr;

// The report on a solve.
typedef struct {
  // Iterations done.
  int64_t iterations;
  // 1 where the residual met the threshold, else 0.
  int32_t converged;
  // How many times BiCGStab broke down and started anew.
  int32_t restarts;
  // The norm of the residual that the method computed last.
  double residual;
  // The norm of `b - A x` for the returned `x`, computed afresh; NaN where it was not.
  double true_residual;
  // The norm of the right-hand side.
  double norm;
  // What the residual was compared with.
  double threshold;
  // Wall time in seconds.
  double seconds;
  // 0. Later versions may use it.
  double reserved[8];
} abide_solve_report;

// All went well.
#define ABIDE_OK 0

// The request is understood and cannot be carried out: a file, a limit, a matrix that cannot be solved, an ability that a
// backend lacks.
#define ABIDE_REFUSED 1

// The request is wrong by itself: a name that is not known, a value that cannot be used, a null pointer.
#define ABIDE_USAGE 2

// A solver began, and came to no solution.
#define ABIDE_NOT_CONVERGED 3

// Values are not finite.
#define ABIDE_NOT_FINITE 4

// A device, its driver or its compiler is not there or failed.
#define ABIDE_DEVICE 5

// The caller ended a solve.
#define ABIDE_INTERRUPTED 6

// Another thread is using the handle, or the call comes from within a run of the same handle.
#define ABIDE_BUSY 7

// Abide stopped at a defect of its own. The handle can only be freed.
#define ABIDE_DEFECT 8

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Describes a variable of a block, counted from 0, as an array of its cells; with its fringes where `fringes` is not 0. For
// `ABIDE_ALL_VARIABLES` the array has one axis more, of the variables, before those of the cells.
//
// Requires:
// `block` points to a block, and `view` to a view. The values themselves are not touched.
abide_status abide_block_view(const abide_block *block,
                              int64_t variable,
                              int32_t fringes,
                              abide_view *view);

// Makes a mixture of species by their names with commas between them, as in `CH4,O2`. `options` may be null; they are those of
// `abide gas`: `species` and `kij` (files), `chung`, `kappa`, `closure`, `mass` (fractions are of mass), `backend`; and `given`,
// the quantities that give a state: `Tp` (temperature and pressure, unless given), `Trho`, `hp` or `rhoe`. `abide_gas_free` frees
// it.
//
// Requires:
// `species` is a string; `options` is null or a handle; `gas` is the address of a pointer.
abide_status abide_gas_new(const char *species,
                           const abide_options *options,
                           abide_gas **gas);

// Returns the number of species.
//
// Requires:
// `gas` is a handle; `count` points to a number.
abide_status abide_gas_species(const abide_gas *gas, size_t *count);

// Computes properties at points from two quantities, temperature (K) and pressure (Pa) unless the gas was made with another
// `given`, and fractions. `properties` are names with commas between them, in SI units and per kilogram: `rho`, `h`, `s`, `cp`,
// `cv`, `c`, `mu`, `lambda`, `e`, `T`, `p`, `M`, `Z`, `roots`; derivatives `p_T`, `p_rho`, `e_rho`, `rho_T`, `rho_p`, `h_p`,
// `beta`, `kappa`; of each species `D` (diffusivity), `rho_Y`, `h_Y`, `v_Y`; of each pair of species `Dij`.
//
// `first` and `second` have one to three axes of the same extents. `fractions` has one axis before those, of the species, and
// `values` one of the properties, of which those of each species or pair take as many; for one species `fractions` may be null.
// All are `ABIDE_F64` in the host's memory, with any strides. A point that has no properties is refused by its indices, and no
// value is written.
//
// Requires:
// `gas` is a handle; `properties` is a string; the views describe arrays, and nobody else uses that of `values`.
abide_status abide_gas_properties(abide_gas *gas,
                                  const char *properties,
                                  const abide_view *first,
                                  const abide_view *second,
                                  const abide_view *fractions,
                                  const abide_view *values);

// Frees a gas. A null pointer is ignored. One that is at work is not freed, and `abide_last_error` says so.
//
// Requires:
// `gas` is null, or a handle that is not used any more.
void abide_gas_free(abide_gas *gas);

// Finds a model of the catalogue by its name; `abide list` prints them. `abide_model_free` frees it.
//
// Requires:
// `name` is a string, and `model` the address of a pointer.
abide_status abide_model_named(const char *name,
                               abide_model **model);

// Reads the text of a model file (TOML). `source` names the text in errors, and the model where the text gives no name.
//
// Requires:
// `model_text` and `source` are strings, and `model` the address of a pointer.
abide_status abide_model_text(const char *model_text,
                              const char *source,
                              abide_model **model);

// Reads a model file.
//
// Requires:
// `path` is a string, and `model` the address of a pointer.
abide_status abide_model_file(const char *path, abide_model **model);

// Frees a model. Simulations that were made of it stay as they are. A null pointer is ignored.
//
// Requires:
// `model` is null, or a handle that is not used any more.
void abide_model_free(abide_model *model);

// Makes options, none of them set. `abide_options_free` frees them.
//
// Requires:
// `options` is the address of a pointer.
abide_status abide_options_new(abide_options **options);

// Sets an option by the command's name without its dashes: `backend`, `size`, `dtype`, `boundary`, `param`, `tolerance` … The value
// is what the command takes, as in `64x64` or `kappa=0.1`; `true` or `false` where the command takes none. `param`, `input`,
// `probe` and `scalar` may be set several times; of others the last value counts.
//
// Names are checked now, values where the options are used.
//
// Requires:
// `options` is a handle; `name` and `value` are strings.
abide_status abide_options_set(abide_options *options,
                               const char *name,
                               const char *value);

// Frees options. What was made with them stays as it is. A null pointer is ignored.
//
// Requires:
// `options` is null, or a handle that is not used any more.
void abide_options_free(abide_options *options);

// Makes a simulation ready on a device. `options` may be null. `inputs` has the initial values of `count` fields; a field
// without takes the option `input` or the model's own start. Where neither the option `size` nor a model's text gives the
// size, the first input does. `abide_simulation_free` frees it.
//
// Requires:
// `model` is a handle, and `options` is one or null; `inputs` points to `count` inputs whose views describe arrays; `simulation` is the
// address of a pointer.
abide_status abide_simulation_new(const abide_model *model,
                                  const abide_options *options,
                                  const abide_input *inputs,
                                  size_t count,
                                  abide_simulation **simulation);

// Frees a simulation. A null pointer is ignored. One that is at work is not freed, and `abide_last_error` says so.
//
// Requires:
// `simulation` is null, or a handle that is not used any more.
void abide_simulation_free(abide_simulation *simulation);

// Copies a field's values to an array of its extents, in the host's memory or in that of the device which runs the
// simulation. Host values are rounded to the array's type.
//
// Requires:
// `simulation` is a handle; `field` is a string; `to` describes an array that nobody else uses.
abide_status abide_simulation_read(abide_simulation *simulation,
                                   const char *field,
                                   const abide_view *to);

// Replaces a field's values by those of an array of its extents, in the host's memory or in that of the device which runs
// the simulation. Host values are rounded to the type of the run.
//
// Requires:
// `simulation` is a handle; `field` is a string; `from` describes an array that nobody writes.
abide_status abide_simulation_write(abide_simulation *simulation,
                                    const char *field,
                                    const abide_view *from);

// Copies the values of a box of a field to an array of the box's extents in the host's memory. `low` has the indices of
// the box's first value, slowest axis first, one for each axis of the domain.
//
// Requires:
// As of `abide_simulation_read`; `low` points to a number for each axis of the domain.
abide_status abide_simulation_read_window(abide_simulation *simulation,
                                          const char *field,
                                          const int64_t *low,
                                          const abide_view *to);

// Replaces the values of a box of a field by those of an array of the box's extents in the host's memory.
//
// Requires:
// As of `abide_simulation_write` and `abide_simulation_read_window`.
abide_status abide_simulation_write_window(abide_simulation *simulation,
                                           const char *field,
                                           const int64_t *low,
                                           const abide_view *from);

// Describes where a field's values lie, without a copy: on the CPU in the host's memory, on CUDA in the device's. They may be
// read, and not written, until the next call that advances the simulation or writes a field.
//
// Requires:
// `simulation` is a handle; `field` is a string; `view` points to a view.
abide_status abide_simulation_map(abide_simulation *simulation,
                                  const char *field,
                                  abide_view *view);

// Binds a field to an array of its extents, which `abide_simulation_pack` reads and `abide_simulation_unpack` writes. A field
// that is bound already is bound anew; a null `array` lets it go. Nothing is copied now.
//
// Requires:
// `simulation` is a handle; `field` is a string; `array` is null or describes an array that is there until the field is
// bound anew, or the simulation is freed.
abide_status abide_simulation_bind(abide_simulation *simulation,
                                   const char *field,
                                   const abide_view *array);

// Copies bound arrays into their fields: that of `field`, or all of them where `field` is null.
//
// Requires:
// `simulation` is a handle; `field` is null or a string; nobody writes the arrays meanwhile.
abide_status abide_simulation_pack(abide_simulation *simulation, const char *field);

// Copies fields into their bound arrays: `field`, or all that are bound where it is null. Values of the caller's arrays that
// the descriptions leave out, such as fringes, stay as they are.
//
// Requires:
// `simulation` is a handle; `field` is null or a string; nobody uses the arrays meanwhile.
abide_status abide_simulation_unpack(abide_simulation *simulation,
                                     const char *field);

// Puts a text about the simulation into a buffer, as `snprintf` does: at most `size` bytes with the NUL that ends it, and
// the bytes of the whole text without it to `needed`, where that is not null.
//
// Requires:
// `simulation` is a handle; `buffer` has room for `size` bytes, or both are 0; `needed` is null or points to a number.
abide_status abide_simulation_text(const abide_simulation *simulation,
                                   int32_t what,
                                   char *buffer,
                                   size_t size,
                                   size_t *needed);

// Returns the steps done since the start, those before a checkpoint included.
//
// Requires:
// `simulation` is a handle; `step` points to a number.
abide_status abide_simulation_step(const abide_simulation *simulation, uint64_t *step);

// Returns the number of the program's fields.
//
// Requires:
// `simulation` is a handle; `count` points to a number.
abide_status abide_simulation_fields(const abide_simulation *simulation, size_t *count);

// Puts the name of a field, counted from 0, into a buffer as `abide_simulation_text` does.
//
// Requires:
// As of `abide_simulation_text`.
abide_status abide_simulation_field_name(const abide_simulation *simulation,
                                         size_t number,
                                         char *buffer,
                                         size_t size,
                                         size_t *needed);

// Returns the extents of a field, slowest axis first, and their number; those of a batch begin with its members. `extents` has
// room for 4 numbers; those beyond `axes` become 1.
//
// Requires:
// `simulation` is a handle; `field` is a string; `axes` points to a number and `extents` to four.
abide_status abide_simulation_field_extents(const abide_simulation *simulation,
                                            const char *field,
                                            int32_t *axes,
                                            int64_t *extents);

// Sets a parameter for the steps that follow.
//
// Requires:
// `simulation` is a handle; `name` is a string.
abide_status abide_simulation_set_parameter(abide_simulation *simulation,
                                            const char *name,
                                            double value);

// Returns a parameter's value, in a batch that of the first member.
//
// Requires:
// `simulation` is a handle; `name` is a string; `value` points to a number.
abide_status abide_simulation_parameter(const abide_simulation *simulation,
                                        const char *name,
                                        double *value);

// Returns the current value of a computed scalar, such as `time`.
//
// Requires:
// As of `abide_simulation_parameter`.
abide_status abide_simulation_scalar(abide_simulation *simulation, const char *name, double *value);

// Counts the values of all fields that are NaN or infinite, where they lie.
//
// Requires:
// `simulation` is a handle; `count` points to a number.
abide_status abide_simulation_non_finite(abide_simulation *simulation, uint64_t *count);

// Writes a checkpoint. A simulation of the same model with the option `resume` goes on from it, to the bit.
//
// Requires:
// `simulation` is a handle; `path` is a string.
abide_status abide_simulation_checkpoint(abide_simulation *simulation,
                                         const char *path);

// Puts the names of the record's columns behind `step` into a buffer, with commas between them, as `abide_simulation_text`
// does. There is a record with the options `record-every` or `probe`.
//
// Requires:
// As of `abide_simulation_text`.
abide_status abide_simulation_columns(const abide_simulation *simulation,
                                      char *buffer,
                                      size_t size,
                                      size_t *needed);

// Takes rows of the record: at most `room` of those that were not taken yet, oldest first. `steps` gets the step of each,
// `values` the values of its columns, row after row, and `rows` how many there were. With a `room` of 0, `rows` gets how many
// there are.
//
// Requires:
// `simulation` is a handle; `steps` has room for `room` numbers, `values` for as many times the number of columns; `rows`
// points to a number.
abide_status abide_simulation_records(abide_simulation *simulation,
                                      size_t room,
                                      uint64_t *steps,
                                      double *values,
                                      size_t *rows);

// Advances, and reports where `report` is not null. A run whose condition (`until`) comes to hold ends there. Many short
// runs cost what a long one costs.
//
// Requires:
// `simulation` is a handle; `report` is null or points to a report.
abide_status abide_simulation_run(abide_simulation *simulation,
                                  uint64_t steps,
                                  abide_report *report);

// Advances in stretches that end at the multiples of `every` steps (0: some tenths of a second) and calls `observe` after
// each, with `user` as its first argument.
//
// Requires:
// As of `abide_simulation_run`; `observe` is null or a function that may be called with `user`, in the calling thread.
abide_status abide_simulation_run_observed(abide_simulation *simulation,
                                           uint64_t steps,
                                           uint64_t every,
                                           abide_observer observe,
                                           void *user,
                                           abide_report *report);

// Advances without a report: the least that a call can cost. `seconds`, where it is not null, gets the seconds that the
// device took.
//
// Requires:
// `simulation` is a handle; `seconds` is null or points to a number.
abide_status abide_simulation_advance(abide_simulation *simulation,
                                      uint64_t steps,
                                      double *seconds);

// Returns the failure in words of the last function that failed in this thread; an empty text where none did. The text
// stays where it is until another function fails in this thread, or the thread ends.
const char *abide_last_error(void);

// Loads a matrix on a device. It is copied. `options` may be null; they are those of `abide solve`: `method`, `preconditioner`,
// `tolerance`, `max-iterations`, `backend` … `abide_system_free` frees it.
//
// Requires:
// `matrix` points to a matrix whose arrays are there; `options` is null or a handle; `system` is the address of a
// pointer.
abide_status abide_system_new(const abide_csr *matrix,
                              const abide_options *options,
                              abide_system **system);

// Solves `A x = b`. `x` has the first guess, and gets the solution; where the status is `ABIDE_NOT_CONVERGED`, the last or the
// best iterate. Both arrays have a value for each row and may have any strides and up to three axes, as a grid has, slowest
// first. `report` may be null.
//
// Requires:
// `system` is a handle; `b` and `x` describe arrays of the host's that nobody else uses; `report` is null or points to a
// report.
abide_status abide_system_solve(abide_system *system,
                                const abide_view *b,
                                const abide_view *x,
                                abide_solve_report *report);

// Copies the residuals of the last solve: that of the first guess, and one for each iteration; at most `room` of them. `count`
// gets how many there are.
//
// Requires:
// `system` is a handle; `residuals` has room for `room` numbers; `count` points to a number.
abide_status abide_system_history(const abide_system *system,
                                  double *residuals,
                                  size_t room,
                                  size_t *count);

// Puts what was chosen for the caller, and why, into a buffer, a line each, as `abide_simulation_text` does.
//
// Requires:
// `system` is a handle; `buffer` has room for `size` bytes, or both are 0; `needed` is null or points to a number.
abide_status abide_system_notes(const abide_system *system,
                                char *buffer,
                                size_t size,
                                size_t *needed);

// Frees a system. A null pointer is ignored. One that is at work is not freed, and `abide_last_error` says so.
//
// Requires:
// `system` is null, or a handle that is not used any more.
void abide_system_free(abide_system *system);

// Returns the number of the interface of this library. It must be the header's `ABIDE_INTERFACE`.
int32_t abide_interface(void);

// Returns the version of this library, as in `0.1.0`.
const char *abide_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ABIDE_H */
