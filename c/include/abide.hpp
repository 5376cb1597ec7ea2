// Abide for C++17: handles that free themselves, and failures as exceptions, over abide.h.

#ifndef ABIDE_HPP
#define ABIDE_HPP

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "abide.h"

namespace abide {

/// A failure, in words, with its status.
class error : public std::runtime_error {
public:
    error(abide_status status, const char *text) : std::runtime_error(text), status_(status) {}
    abide_status status() const { return status_; }

private:
    abide_status status_;
};

/// Throws where a call has failed.
inline void check(abide_status status) {
    if (status != ABIDE_OK)
        throw error(status, abide_last_error());
}

namespace detail {

template <class T, void (*Free)(T *)> struct deleter {
    void operator()(T *handle) const { Free(handle); }
};

template <class T, void (*Free)(T *)> using handle = std::unique_ptr<T, deleter<T, Free>>;

template <class Call> std::string text(Call call) {
    std::size_t needed = 0;
    check(call(nullptr, 0, &needed));
    std::string text(needed + 1, '\0');
    check(call(&text[0], text.size(), &needed));
    text.resize(needed);
    return text;
}

inline abide_view described(void *data, int32_t dtype, const std::vector<int64_t> &extents, const std::vector<int64_t> &strides) {
    if (extents.empty() || extents.size() > ABIDE_AXES || (!strides.empty() && strides.size() != extents.size()))
        throw std::invalid_argument("a view has one to four extents, and as many strides or none");
    abide_view view{};
    view.data = data;
    view.dtype = dtype;
    view.axes = static_cast<int32_t>(extents.size());
    int64_t packed = 1;
    for (std::size_t axis = extents.size(); axis-- > 0; packed *= extents[axis]) {
        view.extents[axis] = extents[axis];
        view.strides[axis] = strides.empty() ? packed : strides[axis];
    }
    return view;
}

} // namespace detail

/// Describes an array of the host's by its extents, slowest axis first, and its strides in values; without strides it has no gaps.
inline abide_view view(double *data, const std::vector<int64_t> &extents, const std::vector<int64_t> &strides = {}) {
    return detail::described(data, ABIDE_F64, extents, strides);
}

inline abide_view view(float *data, const std::vector<int64_t> &extents, const std::vector<int64_t> &strides = {}) {
    return detail::described(data, ABIDE_F32, extents, strides);
}

/// Describes a variable of a block, counted from 0.
inline abide_view view(const abide_block &block, int64_t variable, bool with_fringes = false) {
    abide_view view{};
    check(abide_block_view(&block, variable, with_fringes, &view));
    return view;
}

/// Options in the words of the command.
class options {
public:
    options(std::initializer_list<std::pair<std::string, std::string>> given = {}) {
        abide_options *made = nullptr;
        check(abide_options_new(&made));
        handle_.reset(made);
        for (const auto &[name, value] : given)
            set(name, value);
    }

    options &set(const std::string &name, const std::string &value) {
        check(abide_options_set(handle_.get(), name.c_str(), value.c_str()));
        return *this;
    }

    const abide_options *get() const { return handle_.get(); }

private:
    detail::handle<abide_options, abide_options_free> handle_;
};

/// What a simulation computes.
class model {
public:
    static model named(const std::string &name) {
        return model([&](abide_model **made) { return abide_model_named(name.c_str(), made); });
    }

    static model text(const std::string &text, const std::string &source = "model") {
        return model([&](abide_model **made) { return abide_model_text(text.c_str(), source.c_str(), made); });
    }

    static model file(const std::string &path) {
        return model([&](abide_model **made) { return abide_model_file(path.c_str(), made); });
    }

    const abide_model *get() const { return handle_.get(); }

private:
    template <class Make> explicit model(Make make) {
        abide_model *made = nullptr;
        check(make(&made));
        handle_.reset(made);
    }

    detail::handle<abide_model, abide_model_free> handle_;
};

/// A simulation in progress. get() leads to the functions of abide.h that have no member here.
class simulation {
public:
    simulation(const model &model, const options &options,
               const std::vector<std::pair<std::string, abide_view>> &inputs = {}) {
        std::vector<abide_input> given;
        for (const auto &[field, values] : inputs)
            given.push_back({field.c_str(), values});
        abide_simulation *made = nullptr;
        check(abide_simulation_new(model.get(), options.get(), given.data(), given.size(), &made));
        handle_.reset(made);
    }

    abide_report run(uint64_t steps) {
        abide_report report{};
        check(abide_simulation_run(get(), steps, &report));
        return report;
    }

    void advance(uint64_t steps) { check(abide_simulation_advance(get(), steps, nullptr)); }

    void read(const std::string &field, const abide_view &to) const { check(abide_simulation_read(get(), field.c_str(), &to)); }

    void write(const std::string &field, const abide_view &from) { check(abide_simulation_write(get(), field.c_str(), &from)); }

    void bind(const std::string &field, const abide_view &array) { check(abide_simulation_bind(get(), field.c_str(), &array)); }

    void pack() { check(abide_simulation_pack(get(), nullptr)); }

    void unpack() { check(abide_simulation_unpack(get(), nullptr)); }

    uint64_t step() const {
        uint64_t step = 0;
        check(abide_simulation_step(get(), &step));
        return step;
    }

    double scalar(const std::string &name) const {
        double value = 0;
        check(abide_simulation_scalar(get(), name.c_str(), &value));
        return value;
    }

    void set_parameter(const std::string &name, double value) {
        check(abide_simulation_set_parameter(get(), name.c_str(), value));
    }

    void checkpoint(const std::string &path) { check(abide_simulation_checkpoint(get(), path.c_str())); }

    /// A text about the simulation, as ABIDE_TEXT_PLAN.
    std::string text(int32_t what) const {
        return detail::text([&](char *buffer, std::size_t size, std::size_t *needed) {
            return abide_simulation_text(get(), what, buffer, size, needed);
        });
    }

    abide_simulation *get() const { return handle_.get(); }

private:
    detail::handle<abide_simulation, abide_simulation_free> handle_;
};

/// A matrix on a device, for one right-hand side after the other.
class system {
public:
    system(const abide_csr &matrix, const options &options) {
        abide_system *made = nullptr;
        check(abide_system_new(&matrix, options.get(), &made));
        handle_.reset(made);
    }

    /// Solves from the first guess in x; where the iterations end without a solution, converged is 0 and x has the iterate.
    abide_solve_report solve(const abide_view &b, const abide_view &x) {
        abide_solve_report report{};
        const abide_status status = abide_system_solve(handle_.get(), &b, &x, &report);
        if (status != ABIDE_NOT_CONVERGED)
            check(status);
        return report;
    }

    abide_system *get() const { return handle_.get(); }

private:
    detail::handle<abide_system, abide_system_free> handle_;
};

/// A mixture of species.
class gas {
public:
    gas(const std::string &species, const options &options) {
        abide_gas *made = nullptr;
        check(abide_gas_new(species.c_str(), options.get(), &made));
        handle_.reset(made);
    }

    void properties(const std::string &names, const abide_view &first, const abide_view &second,
                    const abide_view &fractions, const abide_view &values) {
        check(abide_gas_properties(handle_.get(), names.c_str(), &first, &second, &fractions, &values));
    }

    abide_gas *get() const { return handle_.get(); }

private:
    detail::handle<abide_gas, abide_gas_free> handle_;
};

} // namespace abide

#endif
