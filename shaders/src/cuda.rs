//! CUDA C++ kernels.
