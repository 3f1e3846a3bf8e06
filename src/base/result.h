// What a function that can fail returns: a value, or the error that kept it from making one.
//
//     Result<Config> read_config(const std::string& path) {
//       Result<std::string> text = read_file(path);
//       if (!text) return text.failure();                    // passes the error on
//       if (text->empty()) return fail("The file is empty");  // makes one
//       return parse(*text);
//     }
//
// A function without a value returns Result<>, and `{}` where it succeeded. The error is a
// sentence unless the type says otherwise. The compiler warns of a result that is not used.
// The names follow std::expected (C++23), which the compilers that this is built with do not have;
// its class is not [[nodiscard]].
//
// Cost: that of std::variant. Not for what happens for each request: an error that is a reply goes
// to the ReplyBuilder.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/assert.h"

namespace latchkey::base {

// An error on its way into a Result of any value type.
template <typename E = std::string>
struct Failure {
  E error;
};

inline Failure<> fail(std::string error) {
  return {std::move(error)};
}

template <typename E>
Failure<E> fail_with(E error) {
  return {std::move(error)};
}

template <typename U, typename T>
concept BecomesA = std::is_convertible_v<U, T> && !std::is_same_v<std::remove_cvref_t<U>, T>;

template <typename T = void, typename E = std::string>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Failure<E> failure) : state_(std::in_place_index<1>, std::move(failure)) {}
  // From what a T is made of, such as a pointer to a derived class.
  template <BecomesA<T> U>
  Result(U&& value) : Result(T(std::forward<U>(value))) {}

  explicit operator bool() const { return state_.index() == 0; }

  // REQUIRES: it succeeded.
  T& operator*() & { return value(); }
  const T& operator*() const& { return const_cast<Result*>(this)->value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &**this; }

  // REQUIRES: it failed.
  const E& error() const& { return const_cast<Result*>(this)->failed().error; }
  E&& error() && { return std::move(failed().error); }
  // The error, moved, for a caller that fails for the same reason.
  Failure<E> failure() { return std::move(failed()); }

 private:
  T& value() {
    LK_ASSERT(state_.index() == 0);
    return *std::get_if<0>(&state_);
  }
  Failure<E>& failed() {
    LK_ASSERT(state_.index() == 1);
    return *std::get_if<1>(&state_);
  }

  std::variant<T, Failure<E>> state_;
};

template <typename E>
class [[nodiscard]] Result<void, E> {
 public:
  Result() = default;
  Result(Failure<E> failure) : failure_(std::move(failure)) {}

  explicit operator bool() const { return !failure_; }

  // REQUIRES: it failed.
  const E& error() const& {
    LK_ASSERT(failure_);
    return failure_->error;
  }
  E&& error() && {
    LK_ASSERT(failure_);
    return std::move(failure_->error);
  }
  // The error, moved, for a caller that fails for the same reason.
  Failure<E> failure() {
    LK_ASSERT(failure_);
    return std::move(*failure_);
  }

 private:
  std::optional<Failure<E>> failure_;
};

}  // namespace latchkey::base
