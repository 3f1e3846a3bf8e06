// FILTER expressions on attributes, both from anywhere. Input: the expression's length in a byte,
// the expression, the attributes. A filter gives the same answer twice, and an expression in
// parentheses says what it says without.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "store/vector/attribute_filter.h"
#include "store/vector/json_fields.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using latchkey::store::AttributeFilter;
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string_view expression = input.substr(0, data[0]);
  const std::string_view attributes = input.substr(expression.size());
  const auto require = [](bool holds) {
    if (!holds) std::abort();
  };

  const auto filter = AttributeFilter::parse(expression);
  if (!filter) {
    require(filter.error() <= expression.size());
    return 0;
  }
  const bool matches = filter->matches(attributes);
  require(filter->matches(attributes) == matches);
  // A dot alone is a field only at the very end, and null no word beside a parenthesis.
  if (expression.ends_with('.')) return 0;
  const auto wrapped = AttributeFilter::parse("( " + std::string(expression) + " )");
  require(bool(wrapped));
  require(wrapped->matches(attributes) == matches);
  return 0;
}
