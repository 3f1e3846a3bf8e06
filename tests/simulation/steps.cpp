#include "simulation/steps.h"

#include <cstdio>
#include <utility>

namespace latchkey::simulation {

void Steps::note(std::string line) {
  constexpr uint64_t kPrime = 1099511628211u;
  for (const char byte : line) digest_ = (digest_ ^ static_cast<uint8_t>(byte)) * kPrime;
  line = std::to_string(++count_) + " " + line;
  if (aloud_) std::printf("  %s\n", line.c_str());
  lines_.push_back(std::move(line));
  if (lines_.size() > kKept) lines_.pop_front();
}

std::string Steps::last() const {
  std::string text;
  for (const std::string& line : lines_) text += "  " + line + "\n";
  return text;
}

std::string shown(const std::string& text, size_t most) {
  std::string line;
  for (const char byte : text.substr(0, most)) {
    if (byte == '\r') continue;
    line += byte == '\n' ? ' ' : byte >= ' ' && byte <= '~' ? byte : '.';
  }
  return text.size() > most ? line + "..." : line;
}

}  // namespace latchkey::simulation
