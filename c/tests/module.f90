! The Fortran module: sections of all ranks, windows, texts, failures, checkpoints, systems and gases. Usage: module FOLDER
module observers
  use, intrinsic :: iso_c_binding
  implicit none
contains
  !> Ends a run after 20 steps, and leaves the step where user points.
  function after_20(user, step, seconds) result(ends) bind(c)
    type(c_ptr), value :: user
    integer(c_int64_t), value :: step
    real(c_double), value :: seconds
    integer(c_int32_t) :: ends
    integer(c_int64_t), pointer :: seen
    call c_f_pointer(user, seen)
    seen = step
    ends = merge(1_c_int32_t, 0_c_int32_t, step >= 20 .and. seconds >= 0)
  end function
end module observers

program module_test
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real32, real64, error_unit
  use abide
  use observers
  implicit none
  integer :: faults = 0
  character(len=256) :: folder

  call get_command_argument(1, folder)
  call holds("version", len(abide_version()) >= 5)
  call sections()
  call failures()
  call resumed()
  call system()
  call gas()
  if (faults > 0) error stop 1

contains

  subroutine holds(what, condition)
    character(len=*), intent(in) :: what
    logical, intent(in) :: condition
    if (condition) return
    write (error_unit, "(2a)") "not so: ", what
    faults = faults + 1
  end subroutine

  subroutine made(simulation, size, more, text)
    type(abide_simulation), intent(inout) :: simulation
    character(len=*), intent(in) :: size, more, text
    type(abide_model) :: model
    type(abide_options) :: options
    call model%named("heat")
    call options%set("backend", "cpu")
    if (size /= "") call options%set("size", size)
    call options%set(more, text)
    call simulation%start(model, options)
    call options%free()
    call model%free()
  end subroutine

  subroutine sections()
    type(abide_simulation) :: heat
    real(real64), target :: q(-2:9, 0:7, 3), line(20)
    real(real32), target :: back(6, 4), box(2, 1)
    real(real64) :: number
    character(len=:), allocatable :: text
    integer :: i, j
    ! 4 rows of 6: the extents of abide are those of j and i.
    call made(heat, "4x6", "dtype", "f64")
    q = -1
    do j = 1, 4
      do i = 1, 6
        q(i, j, 2) = 10*j + i
      end do
    end do
    call heat%bind("u", abide_view_of(q(1:6, 1:4, 2)))
    call heat%pack()
    call heat%read("u", abide_view_of(back))
    call holds("packed", all(back == real(q(1:6, 1:4, 2), real32)))
    ! Backwards along i, every second j.
    call heat%write("u", abide_view_of(back(6:1:-1, :)))
    call heat%unpack("u")
    call holds("backwards", all(q(1:6, 1:4, 2) == back(6:1:-1, :)) .and. count(q == -1) == size(q) - 24)
    call heat%read_window("u", [5, 2], abide_view_of(box))
    call holds("a window", all(box(:, 1) == back(2:1:-1, 2)))
    box = 99
    call heat%write_window("u", [1, 4], abide_view_of(box))
    call heat%unpack()
    call holds("a written window", all(q(1:2, 4, 2) == 99))
    call heat%set_parameter("kappa", 0.0_real64)
    call heat%parameter("kappa", number)
    call heat%run(3)
    call heat%text(ABIDE_TEXT_BACKEND, text)
    call holds("a parameter and a text", number >= 0 .and. number <= 0 .and. text == "cpu")
    call heat%free()
    call holds("a line", view_axes(abide_view_of(line(1:20:3))) == 1)
  end subroutine

  integer function view_axes(view)
    type(abide_view), intent(in) :: view
    view_axes = int(view%axes)
    call holds("strides", view%strides(1) == 3 .and. view%extents(1) == 7)
  end function

  subroutine failures()
    type(abide_model) :: model
    type(abide_simulation) :: none
    character(len=200) :: words
    integer :: stat
    call model%named("heaat", stat, words)
    call holds("an unknown name", stat == ABIDE_USAGE .and. index(words, "heat") > 0)
    call none%run(1, stat=stat, errmsg=words)
    call holds("no simulation", stat == ABIDE_USAGE .and. index(words, "null pointer") > 0)
    call model%free()
  end subroutine

  subroutine resumed()
    type(abide_simulation) :: one, other
    real(real32), target :: a(16, 16), b(16, 16)
    type(abide_report) :: report
    integer(c_int64_t) :: step
    integer(c_int64_t), target :: seen
    call made(one, "16x16", "input", "u=random:5")
    call one%run(10, report)
    call one%checkpoint(trim(folder)//"/fortran.npz")
    call one%advance(5)
    call one%read("u", abide_view_of(a))
    call made(other, "", "resume", trim(folder)//"/fortran.npz")
    call other%step(step)
    call other%advance(5)
    call other%read("u", abide_view_of(b))
    call holds("a checkpoint", step == 10 .and. report%steps == 10 .and. all(abs(a - b) <= 0))
    call one%run_observed(100, 5, after_20, c_loc(seen), report)
    call holds("an observer", seen == 20 .and. report%steps == 5)
    call one%free()
    call other%free()
  end subroutine

  subroutine system()
    type(abide_options) :: options
    type(abide_system) :: a
    type(abide_solve_report) :: report
    integer(c_int32_t) :: offsets(4) = [1, 3, 6, 8], indices(7) = [1, 2, 1, 2, 3, 2, 3]
    real(real64) :: values(7) = [2, -1, -1, 2, -1, -1, 2]
    real(real64), target :: b(3), x(3)
    b = [1, 0, 1]
    x = 0
    call options%set("method", "bicgstab")
    call options%set("backend", "cpu")
    call a%load(offsets, indices, values, options)
    call a%solve(abide_view_of(b), abide_view_of(x), report)
    call holds("a solution", all(abs(x - 1) < 1e-7_real64) .and. report%converged == 1)
    call a%free()
    call options%free()
  end subroutine

  subroutine gas()
    type(abide_options) :: options
    type(abide_gas) :: air
    real(real64), target :: q(4, 4), properties(4, 2)
    call options%set("backend", "cpu")
    call air%of("N2,O2", options)
    q(:, 1) = 300
    q(:, 2) = 1e5_real64
    q(:, 3) = 0.79_real64
    q(:, 4) = 1 - q(:, 3)
    call air%properties("rho,c", abide_view_of(q(:, 1)), abide_view_of(q(:, 2)), abide_view_of(q(:, 3:4)), &
        abide_view_of(properties))
    call holds("air", all(abs(properties(:, 1) - 1.156_real64) < 0.005) .and. all(abs(properties(:, 2) - 347) < 3))
    call air%free()
    call options%free()
  end subroutine
end program module_test
