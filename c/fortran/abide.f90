! Abide for Fortran 2018: simulations, linear systems and properties of gases.
!
! Every procedure that can fail has the optional arguments stat and errmsg; without stat, a failure stops the program with its
! words. Arrays are described by abide_view_of, whatever their strides, and are not copied: give those that stay bound to a
! field the attribute target. Handles are freed by their procedure free; a copy of a handle is the same handle.

module abide
  use, intrinsic :: iso_c_binding
  use abide_binding
  use abide_support
  implicit none
  private

  public :: abide_model, abide_options, abide_simulation, abide_system, abide_gas
  public :: abide_view, abide_block, abide_report, abide_solve_report, abide_observer
  public :: abide_view_of, abide_block_of, abide_view_of_block, abide_version
  public :: ABIDE_OK, ABIDE_REFUSED, ABIDE_USAGE, ABIDE_NOT_CONVERGED, ABIDE_NOT_FINITE, ABIDE_DEVICE, ABIDE_INTERRUPTED
  public :: ABIDE_BUSY, ABIDE_DEFECT, ABIDE_F32, ABIDE_F64, ABIDE_HOST, ABIDE_CUDA
  public :: ABIDE_VARIABLE_SLOWEST, ABIDE_VARIABLE_FASTEST, ABIDE_ALL_VARIABLES
  public :: ABIDE_TEXT_BACKEND, ABIDE_TEXT_DEVICE, ABIDE_TEXT_PLAN, ABIDE_TEXT_NOTES, ABIDE_TEXT_REPORT

  !> What a simulation computes: a model of the catalogue, or of a text.
  type :: abide_model
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: named => model_named
    procedure :: text => model_text
    procedure :: file => model_file
    procedure :: free => model_free
  end type

  !> Options by name and value, in the words of the command.
  type :: abide_options
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: set => options_set
    procedure :: free => options_free
  end type

  !> A simulation in progress.
  type :: abide_simulation
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: start => simulation_start
    procedure :: run => simulation_run
    procedure :: run_observed => simulation_run_observed
    procedure :: advance => simulation_advance
    procedure :: step => simulation_step
    procedure :: text => simulation_text
    procedure :: parameter => simulation_parameter
    procedure :: set_parameter => simulation_set_parameter
    procedure :: scalar => simulation_scalar
    procedure :: non_finite => simulation_non_finite
    procedure :: read => simulation_read
    procedure :: write => simulation_write
    procedure :: read_window => simulation_read_window
    procedure :: write_window => simulation_write_window
    procedure :: bind => simulation_bind
    procedure :: pack => simulation_pack
    procedure :: unpack => simulation_unpack
    procedure :: checkpoint => simulation_checkpoint
    procedure :: free => simulation_free
  end type

  !> A matrix on a device, for one right-hand side after the other.
  type :: abide_system
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: load => system_load
    procedure :: solve => system_solve
    procedure :: free => system_free
  end type

  !> A mixture of species.
  type :: abide_gas
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: of => gas_of
    procedure :: properties => gas_properties
    procedure :: free => gas_free
  end type

contains

  !> The version of the library.
  function abide_version() result(version)
    character(len=:), allocatable :: version
    version = fortran_text(c_abide_version())
  end function

  ! Models.

  !> Finds a model of the catalogue.
  subroutine model_named(self, name, stat, errmsg)
    class(abide_model), intent(inout) :: self
    character(len=*), intent(in) :: name
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call self%free()
    call finish(c_abide_model_named(c_text(name), self%handle), stat, errmsg)
  end subroutine

  !> Reads the text of a model; source names it in errors.
  subroutine model_text(self, text, source, stat, errmsg)
    class(abide_model), intent(inout) :: self
    character(len=*), intent(in) :: text, source
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call self%free()
    call finish(c_abide_model_text(c_text(text), c_text(source), self%handle), stat, errmsg)
  end subroutine

  !> Reads a model file.
  subroutine model_file(self, path, stat, errmsg)
    class(abide_model), intent(inout) :: self
    character(len=*), intent(in) :: path
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call self%free()
    call finish(c_abide_model_file(c_text(path), self%handle), stat, errmsg)
  end subroutine

  subroutine model_free(self)
    class(abide_model), intent(inout) :: self
    call c_abide_model_free(self%handle)
    self%handle = c_null_ptr
  end subroutine

  ! Options.

  !> Sets an option, as in call options%set("backend", "cpu").
  subroutine options_set(self, name, text, stat, errmsg)
    class(abide_options), intent(inout) :: self
    character(len=*), intent(in) :: name, text
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int32_t) :: status
    status = ABIDE_OK
    if (.not. c_associated(self%handle)) status = c_abide_options_new(self%handle)
    if (status == ABIDE_OK) status = c_abide_options_set(self%handle, c_text(name), c_text(text))
    call finish(status, stat, errmsg)
  end subroutine

  subroutine options_free(self)
    class(abide_options), intent(inout) :: self
    call c_abide_options_free(self%handle)
    self%handle = c_null_ptr
  end subroutine

  ! Simulations.

  !> Makes the simulation ready. fields and values have the initial values of fields that take none from the model.
  subroutine simulation_start(self, model, options, fields, values, stat, errmsg)
    class(abide_simulation), intent(inout) :: self
    type(abide_model), intent(in) :: model
    type(abide_options), intent(in), optional :: options
    character(len=*), intent(in), optional :: fields(:)
    type(abide_view), intent(in), optional :: values(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(abide_input), allocatable :: inputs(:)
    character(kind=c_char), allocatable, target :: names(:, :)
    type(c_ptr) :: given
    integer :: field, letter, count
    count = 0
    if (present(fields) .and. present(values)) count = min(size(fields), size(values))
    allocate (inputs(count))
    if (count > 0) then
      allocate (names(len(fields) + 1, count), source=c_null_char)
      do field = 1, count
        do letter = 1, len_trim(fields(field))
          names(letter, field) = fields(field)(letter:letter)
        end do
        inputs(field)%field = c_loc(names(1, field))
        inputs(field)%values = values(field)
      end do
    end if
    given = c_null_ptr
    if (present(options)) given = options%handle
    call self%free()
    call finish(c_abide_simulation_new(model%handle, given, inputs, int(count, c_size_t), self%handle), stat, errmsg)
  end subroutine

  !> Advances, and reports.
  subroutine simulation_run(self, steps, report, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    integer, intent(in) :: steps
    type(abide_report), intent(inout), optional :: report
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_simulation_run(self%handle, int(steps, c_int64_t), report), stat, errmsg)
  end subroutine

  !> Advances in stretches that end at the multiples of every steps, and calls observe after each.
  subroutine simulation_run_observed(self, steps, every, observe, user, report, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    integer, intent(in) :: steps, every
    procedure(abide_observer) :: observe
    type(c_ptr), intent(in) :: user
    type(abide_report), intent(inout), optional :: report
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_simulation_run_observed(self%handle, int(steps, c_int64_t), int(every, c_int64_t), &
        c_funloc(observe), user, report), stat, errmsg)
  end subroutine

  !> Advances without a report.
  subroutine simulation_advance(self, steps, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    integer, intent(in) :: steps
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_simulation_advance(self%handle, int(steps, c_int64_t)), stat, errmsg)
  end subroutine

  !> The steps done since the start.
  subroutine simulation_step(self, step, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    integer(c_int64_t), intent(out) :: step
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_simulation_step(self%handle, step), stat, errmsg)
  end subroutine

  !> A text about the simulation, as ABIDE_TEXT_PLAN.
  subroutine simulation_text(self, what, text, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    integer(c_int32_t), intent(in) :: what
    character(len=:), allocatable, intent(out) :: text
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable :: buffer(:)
    integer(c_size_t) :: needed, place
    integer(c_int32_t) :: status
    needed = 0
    allocate (buffer(1))
    status = c_abide_simulation_text(self%handle, what, buffer, 1_c_size_t, needed)
    if (status == ABIDE_OK) then
      deallocate (buffer)
      allocate (buffer(needed + 1))
      status = c_abide_simulation_text(self%handle, what, buffer, size(buffer, kind=c_size_t), needed)
      allocate (character(len=needed) :: text)
      do place = 1, needed
        text(place:place) = buffer(place)
      end do
    end if
    call finish(status, stat, errmsg)
  end subroutine

  subroutine simulation_parameter(self, name, number, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    character(len=*), intent(in) :: name
    real(c_double), intent(out) :: number
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_simulation_parameter(self%handle, c_text(name), number), stat, errmsg)
  end subroutine

  !> Sets a parameter for the steps that follow.
  subroutine simulation_set_parameter(self, name, number, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    character(len=*), intent(in) :: name
    real(c_double), intent(in) :: number
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_simulation_set_parameter(self%handle, c_text(name), number), stat, errmsg)
  end subroutine

  !> The value of a computed scalar, such as time.
  subroutine simulation_scalar(self, name, number, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    character(len=*), intent(in) :: name
    real(c_double), intent(out) :: number
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_simulation_scalar(self%handle, c_text(name), number), stat, errmsg)
  end subroutine

  !> The number of values that are NaN or infinite.
  subroutine simulation_non_finite(self, count, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    integer(c_int64_t), intent(out) :: count
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_simulation_non_finite(self%handle, count), stat, errmsg)
  end subroutine

  !> Copies a field to an array.
  subroutine simulation_read(self, field, array, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    character(len=*), intent(in) :: field
    type(abide_view), intent(in) :: array
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_simulation_read(self%handle, c_text(field), array), stat, errmsg)
  end subroutine

  !> Copies an array to a field.
  subroutine simulation_write(self, field, array, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    character(len=*), intent(in) :: field
    type(abide_view), intent(in) :: array
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_simulation_write(self%handle, c_text(field), array), stat, errmsg)
  end subroutine

  !> Copies a box of a field to an array of the box's extents. first has the box's first index along each axis of the
  !> array, counted from 1.
  subroutine simulation_read_window(self, field, first, array, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    character(len=*), intent(in) :: field
    integer, intent(in) :: first(:)
    type(abide_view), intent(in) :: array
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_simulation_read_window(self%handle, c_text(field), low(first), array), stat, errmsg)
  end subroutine

  !> Copies an array to a box of a field.
  subroutine simulation_write_window(self, field, first, array, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    character(len=*), intent(in) :: field
    integer, intent(in) :: first(:)
    type(abide_view), intent(in) :: array
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_simulation_write_window(self%handle, c_text(field), low(first), array), stat, errmsg)
  end subroutine

  !> Binds a field to an array, for pack and unpack.
  subroutine simulation_bind(self, field, array, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    character(len=*), intent(in) :: field
    type(abide_view), intent(in) :: array
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_simulation_bind(self%handle, c_text(field), array), stat, errmsg)
  end subroutine

  !> Copies bound arrays to their fields: one field's, or all.
  subroutine simulation_pack(self, field, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    character(len=*), intent(in), optional :: field
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (present(field)) then
      call finish(c_abide_simulation_pack(self%handle, c_text(field)), stat, errmsg)
    else
      call finish(c_abide_simulation_pack(self%handle), stat, errmsg)
    end if
  end subroutine

  !> Copies fields to their bound arrays: one field, or all that are bound.
  subroutine simulation_unpack(self, field, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    character(len=*), intent(in), optional :: field
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (present(field)) then
      call finish(c_abide_simulation_unpack(self%handle, c_text(field)), stat, errmsg)
    else
      call finish(c_abide_simulation_unpack(self%handle), stat, errmsg)
    end if
  end subroutine

  !> Writes a checkpoint, from which a simulation with the option resume goes on.
  subroutine simulation_checkpoint(self, path, stat, errmsg)
    class(abide_simulation), intent(in) :: self
    character(len=*), intent(in) :: path
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_simulation_checkpoint(self%handle, c_text(path)), stat, errmsg)
  end subroutine

  subroutine simulation_free(self)
    class(abide_simulation), intent(inout) :: self
    call c_abide_simulation_free(self%handle)
    self%handle = c_null_ptr
  end subroutine

  ! Linear systems.

  !> Loads a matrix of compressed rows, counted from 1.
  subroutine system_load(self, offsets, indices, values, options, columns, stat, errmsg)
    class(abide_system), intent(inout) :: self
    integer(c_int32_t), intent(in), contiguous, target :: offsets(:), indices(:)
    real(c_double), intent(in), contiguous, target :: values(:)
    type(abide_options), intent(in), optional :: options
    integer, intent(in), optional :: columns
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(abide_csr) :: matrix
    type(c_ptr) :: given
    matrix%rows = size(offsets) - 1
    matrix%columns = matrix%rows
    if (present(columns)) matrix%columns = columns
    matrix%offsets = c_loc(offsets)
    matrix%indices = c_loc(indices)
    matrix%values = c_loc(values)
    given = c_null_ptr
    if (present(options)) given = options%handle
    call self%free()
    call finish(c_abide_system_new(matrix, given, self%handle), stat, errmsg)
  end subroutine

  !> Solves A x = b from the first guess in x.
  subroutine system_solve(self, b, x, report, stat, errmsg)
    class(abide_system), intent(in) :: self
    type(abide_view), intent(in) :: b, x
    type(abide_solve_report), intent(inout), optional :: report
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_system_solve(self%handle, b, x, report), stat, errmsg)
  end subroutine

  subroutine system_free(self)
    class(abide_system), intent(inout) :: self
    call c_abide_system_free(self%handle)
    self%handle = c_null_ptr
  end subroutine

  ! Gases.

  !> Makes a mixture of species, as in "CH4,O2".
  subroutine gas_of(self, species, options, stat, errmsg)
    class(abide_gas), intent(inout) :: self
    character(len=*), intent(in) :: species
    type(abide_options), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: given
    given = c_null_ptr
    if (present(options)) given = options%handle
    call self%free()
    call finish(c_abide_gas_new(c_text(species), given, self%handle), stat, errmsg)
  end subroutine

  !> Computes properties, as in "rho,h,cp", from temperature and pressure, or from the two quantities that the option "given"
  !> of the gas names. fractions and values have one axis more than those, the last.
  subroutine gas_properties(self, properties, first, second, fractions, values, stat, errmsg)
    class(abide_gas), intent(in) :: self
    character(len=*), intent(in) :: properties
    type(abide_view), intent(in) :: first, second, fractions, values
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call finish(c_abide_gas_properties(self%handle, c_text(properties), first, second, fractions, values), &
        stat, errmsg)
  end subroutine

  subroutine gas_free(self)
    class(abide_gas), intent(inout) :: self
    call c_abide_gas_free(self%handle)
    self%handle = c_null_ptr
  end subroutine
end module abide
