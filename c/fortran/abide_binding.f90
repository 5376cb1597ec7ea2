!> The C interface of Abide, name by name. Programs use the module abide, which is built on it.
module abide_binding
  use, intrinsic :: iso_c_binding
  implicit none
  public

  integer(c_int32_t), parameter :: ABIDE_INTERFACE = 0

  integer(c_int32_t), parameter :: ABIDE_OK = 0
  integer(c_int32_t), parameter :: ABIDE_REFUSED = 1
  integer(c_int32_t), parameter :: ABIDE_USAGE = 2
  integer(c_int32_t), parameter :: ABIDE_NOT_CONVERGED = 3
  integer(c_int32_t), parameter :: ABIDE_NOT_FINITE = 4
  integer(c_int32_t), parameter :: ABIDE_DEVICE = 5
  integer(c_int32_t), parameter :: ABIDE_INTERRUPTED = 6
  integer(c_int32_t), parameter :: ABIDE_BUSY = 7
  integer(c_int32_t), parameter :: ABIDE_DEFECT = 8

  integer(c_int32_t), parameter :: ABIDE_F32 = 1
  integer(c_int32_t), parameter :: ABIDE_F64 = 2
  integer(c_int32_t), parameter :: ABIDE_HOST = 0
  integer(c_int32_t), parameter :: ABIDE_CUDA = 1
  integer, parameter :: ABIDE_AXES = 4

  integer(c_int32_t), parameter :: ABIDE_VARIABLE_SLOWEST = 0
  integer(c_int32_t), parameter :: ABIDE_VARIABLE_FASTEST = 1
  integer(c_int64_t), parameter :: ABIDE_ALL_VARIABLES = -1

  integer(c_int32_t), parameter :: ABIDE_TEXT_BACKEND = 0
  integer(c_int32_t), parameter :: ABIDE_TEXT_DEVICE = 1
  integer(c_int32_t), parameter :: ABIDE_TEXT_PLAN = 2
  integer(c_int32_t), parameter :: ABIDE_TEXT_NOTES = 3
  integer(c_int32_t), parameter :: ABIDE_TEXT_REPORT = 4

  !> An array; axes are listed slowest first, the other way round than Fortran's.
  type, bind(c) :: abide_view
    type(c_ptr) :: data = c_null_ptr
    integer(c_int32_t) :: dtype = 0, memory = ABIDE_HOST, device = 0, axes = 0
    integer(c_int64_t) :: extents(ABIDE_AXES) = 1, strides(ABIDE_AXES) = 0
  end type

  !> Variables on a block of cells with fringes. Cells and fringes are those along i, j, k.
  type, bind(c) :: abide_block
    type(c_ptr) :: data = c_null_ptr
    integer(c_int32_t) :: dtype = ABIDE_F64, memory = ABIDE_HOST, device = 0, order = ABIDE_VARIABLE_SLOWEST, axes = 3
    integer(c_int64_t) :: variables = 1, cells(3) = 1, fringes(3) = 0
  end type

  !> The initial values of a field.
  type, bind(c) :: abide_input
    type(c_ptr) :: field = c_null_ptr
    type(abide_view) :: values
  end type

  !> The report on a run.
  type, bind(c) :: abide_report
    integer(c_int64_t) :: steps = 0, steps_asked = 0, cells = 0
    real(c_double) :: seconds = 0, gcells_per_s = 0, bytes_moved = 0, bytes_least = 0, share_of_projected_peak = 0
    real(c_double) :: reserved(8) = 0
  end type

  !> A matrix in compressed rows.
  type, bind(c) :: abide_csr
    integer(c_int64_t) :: rows = 0, columns = 0
    type(c_ptr) :: offsets = c_null_ptr, indices = c_null_ptr
    integer(c_int32_t) :: index_bytes = 4, base = 1
    type(c_ptr) :: values = c_null_ptr
    integer(c_int32_t) :: dtype = ABIDE_F64
  end type

  !> The report on a solve.
  type, bind(c) :: abide_solve_report
    integer(c_int64_t) :: iterations = 0
    integer(c_int32_t) :: converged = 0, restarts = 0
    real(c_double) :: residual = 0, true_residual = 0, norm = 0, threshold = 0, seconds = 0
    real(c_double) :: reserved(8) = 0
  end type

  abstract interface
    !> Sees the steps done since the start and the seconds so far, and ends the run by any other value than 0.
    function abide_observer(user, step, seconds) result(ends) bind(c)
      import :: c_ptr, c_int64_t, c_double, c_int32_t
      type(c_ptr), value :: user
      integer(c_int64_t), value :: step
      real(c_double), value :: seconds
      integer(c_int32_t) :: ends
    end function
  end interface

  interface
    function c_abide_interface() result(number) bind(c, name="abide_interface")
      import :: c_int32_t
      integer(c_int32_t) :: number
    end function
    function c_abide_version() result(text) bind(c, name="abide_version")
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function c_abide_last_error() result(text) bind(c, name="abide_last_error")
      import :: c_ptr
      type(c_ptr) :: text
    end function

    function c_abide_block_view(block, variable, fringes, view) result(status) bind(c, name="abide_block_view")
      import
      type(abide_block), intent(in) :: block
      integer(c_int64_t), value :: variable
      integer(c_int32_t), value :: fringes
      type(abide_view), intent(out) :: view
      integer(c_int32_t) :: status
    end function

    function c_abide_model_named(name, model) result(status) bind(c, name="abide_model_named")
      import
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), intent(inout) :: model
      integer(c_int32_t) :: status
    end function
    function c_abide_model_text(text, source, model) result(status) bind(c, name="abide_model_text")
      import
      character(kind=c_char), intent(in) :: text(*), source(*)
      type(c_ptr), intent(inout) :: model
      integer(c_int32_t) :: status
    end function
    function c_abide_model_file(path, model) result(status) bind(c, name="abide_model_file")
      import
      character(kind=c_char), intent(in) :: path(*)
      type(c_ptr), intent(inout) :: model
      integer(c_int32_t) :: status
    end function
    subroutine c_abide_model_free(model) bind(c, name="abide_model_free")
      import
      type(c_ptr), value :: model
    end subroutine

    function c_abide_options_new(options) result(status) bind(c, name="abide_options_new")
      import
      type(c_ptr), intent(inout) :: options
      integer(c_int32_t) :: status
    end function
    function c_abide_options_set(options, name, text) result(status) bind(c, name="abide_options_set")
      import
      type(c_ptr), value :: options
      character(kind=c_char), intent(in) :: name(*), text(*)
      integer(c_int32_t) :: status
    end function
    subroutine c_abide_options_free(options) bind(c, name="abide_options_free")
      import
      type(c_ptr), value :: options
    end subroutine

    function c_abide_simulation_new(model, options, inputs, count, simulation) result(status) &
        bind(c, name="abide_simulation_new")
      import
      type(c_ptr), value :: model, options
      type(abide_input), intent(in) :: inputs(*)
      integer(c_size_t), value :: count
      type(c_ptr), intent(inout) :: simulation
      integer(c_int32_t) :: status
    end function
    subroutine c_abide_simulation_free(simulation) bind(c, name="abide_simulation_free")
      import
      type(c_ptr), value :: simulation
    end subroutine
    function c_abide_simulation_run(simulation, steps, report) result(status) bind(c, name="abide_simulation_run")
      import
      type(c_ptr), value :: simulation
      integer(c_int64_t), value :: steps
      type(abide_report), intent(inout), optional :: report
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_run_observed(simulation, steps, every, observe, user, report) result(status) &
        bind(c, name="abide_simulation_run_observed")
      import
      type(c_ptr), value :: simulation, user
      integer(c_int64_t), value :: steps, every
      type(c_funptr), value :: observe
      type(abide_report), intent(inout), optional :: report
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_advance(simulation, steps, seconds) result(status) &
        bind(c, name="abide_simulation_advance")
      import
      type(c_ptr), value :: simulation
      integer(c_int64_t), value :: steps
      real(c_double), intent(out), optional :: seconds
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_step(simulation, step) result(status) bind(c, name="abide_simulation_step")
      import
      type(c_ptr), value :: simulation
      integer(c_int64_t), intent(out) :: step
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_fields(simulation, count) result(status) bind(c, name="abide_simulation_fields")
      import
      type(c_ptr), value :: simulation
      integer(c_size_t), intent(out) :: count
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_field_name(simulation, number, buffer, size, needed) result(status) &
        bind(c, name="abide_simulation_field_name")
      import
      type(c_ptr), value :: simulation
      integer(c_size_t), value :: number, size
      character(kind=c_char), intent(inout) :: buffer(*)
      integer(c_size_t), intent(inout) :: needed
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_field_extents(simulation, field, axes, extents) result(status) &
        bind(c, name="abide_simulation_field_extents")
      import
      type(c_ptr), value :: simulation
      character(kind=c_char), intent(in) :: field(*)
      integer(c_int32_t), intent(out) :: axes
      integer(c_int64_t), intent(out) :: extents(ABIDE_AXES)
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_text(simulation, what, buffer, size, needed) result(status) &
        bind(c, name="abide_simulation_text")
      import
      type(c_ptr), value :: simulation
      integer(c_int32_t), value :: what
      character(kind=c_char), intent(inout) :: buffer(*)
      integer(c_size_t), value :: size
      integer(c_size_t), intent(inout) :: needed
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_set_parameter(simulation, name, number) result(status) &
        bind(c, name="abide_simulation_set_parameter")
      import
      type(c_ptr), value :: simulation
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), value :: number
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_parameter(simulation, name, number) result(status) &
        bind(c, name="abide_simulation_parameter")
      import
      type(c_ptr), value :: simulation
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), intent(out) :: number
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_scalar(simulation, name, number) result(status) bind(c, name="abide_simulation_scalar")
      import
      type(c_ptr), value :: simulation
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), intent(out) :: number
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_non_finite(simulation, count) result(status) bind(c, name="abide_simulation_non_finite")
      import
      type(c_ptr), value :: simulation
      integer(c_int64_t), intent(out) :: count
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_checkpoint(simulation, path) result(status) bind(c, name="abide_simulation_checkpoint")
      import
      type(c_ptr), value :: simulation
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_read(simulation, field, to) result(status) bind(c, name="abide_simulation_read")
      import
      type(c_ptr), value :: simulation
      character(kind=c_char), intent(in) :: field(*)
      type(abide_view), intent(in) :: to
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_write(simulation, field, from) result(status) bind(c, name="abide_simulation_write")
      import
      type(c_ptr), value :: simulation
      character(kind=c_char), intent(in) :: field(*)
      type(abide_view), intent(in) :: from
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_read_window(simulation, field, low, to) result(status) &
        bind(c, name="abide_simulation_read_window")
      import
      type(c_ptr), value :: simulation
      character(kind=c_char), intent(in) :: field(*)
      integer(c_int64_t), intent(in) :: low(*)
      type(abide_view), intent(in) :: to
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_write_window(simulation, field, low, from) result(status) &
        bind(c, name="abide_simulation_write_window")
      import
      type(c_ptr), value :: simulation
      character(kind=c_char), intent(in) :: field(*)
      integer(c_int64_t), intent(in) :: low(*)
      type(abide_view), intent(in) :: from
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_map(simulation, field, view) result(status) bind(c, name="abide_simulation_map")
      import
      type(c_ptr), value :: simulation
      character(kind=c_char), intent(in) :: field(*)
      type(abide_view), intent(out) :: view
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_bind(simulation, field, array) result(status) bind(c, name="abide_simulation_bind")
      import
      type(c_ptr), value :: simulation
      character(kind=c_char), intent(in) :: field(*)
      type(abide_view), intent(in), optional :: array
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_pack(simulation, field) result(status) bind(c, name="abide_simulation_pack")
      import
      type(c_ptr), value :: simulation
      character(kind=c_char), intent(in), optional :: field(*)
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_unpack(simulation, field) result(status) bind(c, name="abide_simulation_unpack")
      import
      type(c_ptr), value :: simulation
      character(kind=c_char), intent(in), optional :: field(*)
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_columns(simulation, buffer, size, needed) result(status) &
        bind(c, name="abide_simulation_columns")
      import
      type(c_ptr), value :: simulation
      character(kind=c_char), intent(inout) :: buffer(*)
      integer(c_size_t), value :: size
      integer(c_size_t), intent(inout) :: needed
      integer(c_int32_t) :: status
    end function
    function c_abide_simulation_records(simulation, room, steps, values, rows) result(status) &
        bind(c, name="abide_simulation_records")
      import
      type(c_ptr), value :: simulation
      integer(c_size_t), value :: room
      integer(c_int64_t), intent(inout) :: steps(*)
      real(c_double), intent(inout) :: values(*)
      integer(c_size_t), intent(out) :: rows
      integer(c_int32_t) :: status
    end function

    function c_abide_system_new(matrix, options, system) result(status) bind(c, name="abide_system_new")
      import
      type(abide_csr), intent(in) :: matrix
      type(c_ptr), value :: options
      type(c_ptr), intent(inout) :: system
      integer(c_int32_t) :: status
    end function
    function c_abide_system_solve(system, b, x, report) result(status) bind(c, name="abide_system_solve")
      import
      type(c_ptr), value :: system
      type(abide_view), intent(in) :: b, x
      type(abide_solve_report), intent(inout), optional :: report
      integer(c_int32_t) :: status
    end function
    function c_abide_system_history(system, residuals, room, count) result(status) bind(c, name="abide_system_history")
      import
      type(c_ptr), value :: system
      real(c_double), intent(inout) :: residuals(*)
      integer(c_size_t), value :: room
      integer(c_size_t), intent(out) :: count
      integer(c_int32_t) :: status
    end function
    function c_abide_system_notes(system, buffer, size, needed) result(status) bind(c, name="abide_system_notes")
      import
      type(c_ptr), value :: system
      character(kind=c_char), intent(inout) :: buffer(*)
      integer(c_size_t), value :: size
      integer(c_size_t), intent(inout) :: needed
      integer(c_int32_t) :: status
    end function
    subroutine c_abide_system_free(system) bind(c, name="abide_system_free")
      import
      type(c_ptr), value :: system
    end subroutine

    function c_abide_gas_new(species, options, gas) result(status) bind(c, name="abide_gas_new")
      import
      character(kind=c_char), intent(in) :: species(*)
      type(c_ptr), value :: options
      type(c_ptr), intent(inout) :: gas
      integer(c_int32_t) :: status
    end function
    function c_abide_gas_species(gas, count) result(status) bind(c, name="abide_gas_species")
      import
      type(c_ptr), value :: gas
      integer(c_size_t), intent(out) :: count
      integer(c_int32_t) :: status
    end function
    function c_abide_gas_properties(gas, properties, temperature, pressure, fractions, values) result(status) &
        bind(c, name="abide_gas_properties")
      import
      type(c_ptr), value :: gas
      character(kind=c_char), intent(in) :: properties(*)
      type(abide_view), intent(in) :: temperature, pressure, values
      type(abide_view), intent(in), optional :: fractions
      integer(c_int32_t) :: status
    end function
    subroutine c_abide_gas_free(gas) bind(c, name="abide_gas_free")
      import
      type(c_ptr), value :: gas
    end subroutine
  end interface
end module abide_binding
