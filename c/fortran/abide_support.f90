!> What the module abide is made with: descriptions of arrays, texts and failures.
module abide_support
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use abide_binding
  implicit none
  private

  public :: abide_view_of, abide_block_of, abide_view_of_block, low, c_text, fortran_text, finish

  !> Describes an array of one to four axes, or a part of one.
  interface abide_view_of
    procedure :: view_32_1, view_32_2, view_32_3, view_32_4, view_64_1, view_64_2, view_64_3, view_64_4
  end interface

  interface
    pure function c_strlen(text) result(length) bind(c, name="strlen")
      import :: c_ptr, c_size_t
      type(c_ptr), value, intent(in) :: text
      integer(c_size_t) :: length
    end function
  end interface

contains

  ! Arrays.

  function view_32_1(a) result(view)
    real(c_float), target :: a(:)
    type(abide_view) :: view
    if (size(a) > 0) view = described(ABIDE_F32, shape(a), [at(c_loc(a(1))), at(c_loc(a(min(2, size(a)))))])
  end function

  function view_64_1(a) result(view)
    real(c_double), target :: a(:)
    type(abide_view) :: view
    if (size(a) > 0) view = described(ABIDE_F64, shape(a), [at(c_loc(a(1))), at(c_loc(a(min(2, size(a)))))])
  end function

  function view_32_2(a) result(view)
    real(c_float), target :: a(:, :)
    type(abide_view) :: view
    if (size(a) > 0) view = described(ABIDE_F32, shape(a), [at(c_loc(a(1, 1))), &
        at(c_loc(a(min(2, size(a, 1)), 1))), at(c_loc(a(1, min(2, size(a, 2)))))])
  end function

  function view_64_2(a) result(view)
    real(c_double), target :: a(:, :)
    type(abide_view) :: view
    if (size(a) > 0) view = described(ABIDE_F64, shape(a), [at(c_loc(a(1, 1))), &
        at(c_loc(a(min(2, size(a, 1)), 1))), at(c_loc(a(1, min(2, size(a, 2)))))])
  end function

  function view_32_3(a) result(view)
    real(c_float), target :: a(:, :, :)
    type(abide_view) :: view
    if (size(a) > 0) view = described(ABIDE_F32, shape(a), [at(c_loc(a(1, 1, 1))), &
        at(c_loc(a(min(2, size(a, 1)), 1, 1))), at(c_loc(a(1, min(2, size(a, 2)), 1))), &
        at(c_loc(a(1, 1, min(2, size(a, 3)))))])
  end function

  function view_64_3(a) result(view)
    real(c_double), target :: a(:, :, :)
    type(abide_view) :: view
    if (size(a) > 0) view = described(ABIDE_F64, shape(a), [at(c_loc(a(1, 1, 1))), &
        at(c_loc(a(min(2, size(a, 1)), 1, 1))), at(c_loc(a(1, min(2, size(a, 2)), 1))), &
        at(c_loc(a(1, 1, min(2, size(a, 3)))))])
  end function

  function view_32_4(a) result(view)
    real(c_float), target :: a(:, :, :, :)
    type(abide_view) :: view
    if (size(a) > 0) view = described(ABIDE_F32, shape(a), [at(c_loc(a(1, 1, 1, 1))), &
        at(c_loc(a(min(2, size(a, 1)), 1, 1, 1))), at(c_loc(a(1, min(2, size(a, 2)), 1, 1))), &
        at(c_loc(a(1, 1, min(2, size(a, 3)), 1))), at(c_loc(a(1, 1, 1, min(2, size(a, 4)))))])
  end function

  function view_64_4(a) result(view)
    real(c_double), target :: a(:, :, :, :)
    type(abide_view) :: view
    if (size(a) > 0) view = described(ABIDE_F64, shape(a), [at(c_loc(a(1, 1, 1, 1))), &
        at(c_loc(a(min(2, size(a, 1)), 1, 1, 1))), at(c_loc(a(1, min(2, size(a, 2)), 1, 1))), &
        at(c_loc(a(1, 1, min(2, size(a, 3)), 1))), at(c_loc(a(1, 1, 1, min(2, size(a, 4)))))])
  end function

  !> Describes an array by the addresses of its first value, and of the next along each axis.
  function described(dtype, extents, addresses) result(view)
    integer(c_int32_t), intent(in) :: dtype
    integer, intent(in) :: extents(:)
    integer(c_intptr_t), intent(in) :: addresses(:)
    type(abide_view) :: view
    integer :: axis, axes
    axes = size(extents)
    view%data = transfer(addresses(1), c_null_ptr)
    view%dtype = dtype
    view%axes = int(axes, c_int32_t)
    do axis = 1, axes
      view%extents(axes - axis + 1) = int(extents(axis), c_int64_t)
      view%strides(axes - axis + 1) = (addresses(axis + 1) - addresses(1)) / (4 * dtype)
    end do
  end function

  function at(pointer) result(address)
    type(c_ptr), intent(in) :: pointer
    integer(c_intptr_t) :: address
    address = transfer(pointer, address)
  end function

  !> Describes a block q(1-ng:ni+ng, 1-ng:nj+ng, 1-ng:nk+ng, variables), the array being all of it.
  function abide_block_of(q, fringes) result(block)
    real(c_double), contiguous, target :: q(:, :, :, :)
    integer, intent(in) :: fringes(3)
    type(abide_block) :: block
    block%data = c_loc(q)
    block%variables = int(size(q, 4), c_int64_t)
    block%fringes = int(fringes, c_int64_t)
    block%cells = int([size(q, 1), size(q, 2), size(q, 3)] - 2 * fringes, c_int64_t)
  end function

  !> Describes a variable of a block, counted from 1: its cells, or with_fringes all of it.
  function abide_view_of_block(block, variable, with_fringes, stat, errmsg) result(view)
    type(abide_block), intent(in) :: block
    integer, intent(in) :: variable
    logical, intent(in), optional :: with_fringes
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(abide_view) :: view
    integer(c_int32_t) :: fringes
    fringes = 0
    if (present(with_fringes)) fringes = merge(1_c_int32_t, 0_c_int32_t, with_fringes)
    call finish(c_abide_block_view(block, int(variable - 1, c_int64_t), fringes, view), stat, errmsg)
  end function

  ! Texts and failures.

  !> Indices counted from 1, fastest axis first, as the library counts them.
  pure function low(first) result(own)
    integer, intent(in) :: first(:)
    integer(c_int64_t) :: own(size(first))
    own = int(first(size(first):1:-1) - 1, c_int64_t)
  end function

  pure function c_text(text) result(own)
    character(len=*), intent(in) :: text
    character(kind=c_char, len=:), allocatable :: own
    own = trim(text)//c_null_char
  end function

  function fortran_text(pointer) result(text)
    type(c_ptr), intent(in) :: pointer
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: place, length
    length = int(c_strlen(pointer))
    call c_f_pointer(pointer, letters, [length])
    allocate (character(len=length) :: text)
    do place = 1, length
      text(place:place) = letters(place)
    end do
  end function

  !> Hands a status and its words to the caller; stops where the caller takes no status.
  subroutine finish(status, stat, errmsg)
    integer(c_int32_t), intent(in) :: status
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (present(stat)) stat = int(status)
    if (status == ABIDE_OK) return
    if (present(errmsg)) errmsg = fortran_text(c_abide_last_error())
    if (.not. present(stat)) then
      write (error_unit, "(a)") "abide: "//fortran_text(c_abide_last_error())
      error stop 1
    end if
  end subroutine
end module abide_support
