# Heat by Julia's ccall: the library is found by its name, or by the path in ABIDE_C.
#
#     julia heat.jl

const lib = get(ENV, "ABIDE_C", "libabide_c")

struct View
    data::Ptr{Cvoid}
    dtype::Int32
    memory::Int32
    device::Int32
    axes::Int32
    extents::NTuple{4,Int64}
    strides::NTuple{4,Int64}
end

# Julia's arrays lie first axis fastest, as Fortran's; Abide lists axes slowest first.
function View(a::StridedArray{Float64})
    pad(all, with) = ntuple(n -> n <= ndims(a) ? Int64(all[ndims(a)-n+1]) : Int64(with), 4)
    View(pointer(a), 2, 0, 0, ndims(a), pad(size(a), 1), pad(strides(a), 0))
end

check(status) = status == 0 || error(unsafe_string(ccall((:abide_last_error, lib), Cstring, ())))

options, model, plate = Ref(C_NULL), Ref(C_NULL), Ref(C_NULL)
check(ccall((:abide_model_named, lib), Int32, (Cstring, Ptr{Ptr{Cvoid}}), "heat", model))
check(ccall((:abide_options_new, lib), Int32, (Ptr{Ptr{Cvoid}},), options))
for (name, value) in ("size" => "128x96", "dtype" => "f64", "backend" => "cpu")
    check(ccall((:abide_options_set, lib), Int32, (Ptr{Cvoid}, Cstring, Cstring), options[], name, value))
end
check(ccall((:abide_simulation_new, lib), Int32,
    (Ptr{Cvoid}, Ptr{Cvoid}, Ptr{Cvoid}, Csize_t, Ptr{Ptr{Cvoid}}), model[], options[], C_NULL, 0, plate))

u = zeros(96, 128)
u[48, 64] = 1
GC.@preserve u begin
    view = Ref(View(u))
    check(ccall((:abide_simulation_write, lib), Int32, (Ptr{Cvoid}, Cstring, Ptr{View}), plate[], "u", view))
    check(ccall((:abide_simulation_run, lib), Int32, (Ptr{Cvoid}, UInt64, Ptr{Cvoid}), plate[], 100, C_NULL))
    check(ccall((:abide_simulation_read, lib), Int32, (Ptr{Cvoid}, Cstring, Ptr{View}), plate[], "u", view))
end
println("u is ", sum(u), " in all, ", maximum(u), " at most")
ccall((:abide_simulation_free, lib), Cvoid, (Ptr{Cvoid},), plate[])
ccall((:abide_options_free, lib), Cvoid, (Ptr{Cvoid},), options[])
ccall((:abide_model_free, lib), Cvoid, (Ptr{Cvoid},), model[])
