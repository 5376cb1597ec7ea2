! A flow code's structure: blocks q(i, j, k, variable) with fringes of 3, which the code itself exchanges. Abide advances the
! blocks by three steps between two exchanges, because a step reads one cell to each side.
!
! What Abide adds to the code are the lines that name it. Usage: blocks MODEL.toml RESULT

module blocks
  use, intrinsic :: iso_fortran_env, only: real64
  use abide
  implicit none

  integer, parameter :: ni = 24, nj = 20, nk = 16, nv = 2, ng = 3, nblocks = 2

  !> A block of the domain, which is cut along k.
  type :: block
    real(real64) :: q(1 - ng:ni + ng, 1 - ng:nj + ng, 1 - ng:nk + ng, nv)
    type(abide_simulation) :: abide
  end type

  type(block), target :: b(nblocks)

contains

  !> The start, exact in any arithmetic.
  subroutine fill()
    integer :: n, i, j, k
    do n = 1, nblocks
      b(n)%q = 0
      do k = 1, nk
        do j = 1, nj
          do i = 1, ni
            b(n)%q(i, j, k, 2) = real(mod(7*i + 5*j + 3*(k + (n - 1)*nk), 11), real64) / 32
            b(n)%q(i, j, k, 1) = 1 - b(n)%q(i, j, k, 2) / 2
          end do
        end do
      end do
    end do
  end subroutine

  !> Fills the fringes: along k from the neighbours, along j and i from the other side of the block.
  subroutine exchange()
    integer :: n, before, behind
    do n = 1, nblocks
      before = 1 + modulo(n - 2, nblocks)
      behind = 1 + modulo(n, nblocks)
      b(n)%q(:, :, 1 - ng:0, :) = b(before)%q(:, :, nk - ng + 1:nk, :)
      b(n)%q(:, :, nk + 1:nk + ng, :) = b(behind)%q(:, :, 1:ng, :)
    end do
    do n = 1, nblocks
      b(n)%q(:, 1 - ng:0, :, :) = b(n)%q(:, nj - ng + 1:nj, :, :)
      b(n)%q(:, nj + 1:nj + ng, :, :) = b(n)%q(:, 1:ng, :, :)
      b(n)%q(1 - ng:0, :, :, :) = b(n)%q(ni - ng + 1:ni, :, :, :)
      b(n)%q(ni + 1:ni + ng, :, :, :) = b(n)%q(1:ng, :, :, :)
    end do
  end subroutine

  !> Hands the blocks to Abide, fringes included: they are the outermost cells, which a step keeps.
  subroutine start(path)
    character(len=*), intent(in) :: path
    type(abide_model) :: model
    type(abide_options) :: options
    type(abide_view) :: values(nv)
    integer :: n
    call model%file(path)
    call options%set("dtype", "f64")
    call options%set("boundary", "fixed")
    call options%set("backend", "cpu")
    do n = 1, nblocks
      values = [abide_view_of(b(n)%q(:, :, :, 1)), abide_view_of(b(n)%q(:, :, :, 2))]
      call b(n)%abide%start(model, options, ["u", "v"], values)
      call b(n)%abide%bind("u", values(1))
      call b(n)%abide%bind("v", values(2))
    end do
    call options%free()
    call model%free()
  end subroutine

  !> Three steps of all blocks.
  subroutine advance()
    integer :: n
    do n = 1, nblocks
      call b(n)%abide%pack()
      call b(n)%abide%advance(ng)
      call b(n)%abide%unpack()
    end do
  end subroutine
end module blocks

program main
  use blocks
  implicit none
  character(len=256) :: model, result
  integer :: turn, n, variable, unit

  call get_command_argument(1, model)
  call get_command_argument(2, result)
  call fill()
  call start(model)
  do turn = 1, 20
    call exchange()
    call advance()
  end do

  open (newunit=unit, file=result, access="stream", form="unformatted", status="replace")
  do variable = 1, nv
    do n = 1, nblocks
      write (unit) b(n)%q(1:ni, 1:nj, 1:nk, variable)
    end do
  end do
  close (unit)
  do n = 1, nblocks
    call b(n)%abide%free()
  end do
  print "(a, i0, a, i0, a)", "60 steps of ", nblocks, " blocks by Abide ", ni*nj*nk, " cells each"
end program main
