// The versions the server reports about itself.
#pragma once

namespace latchkey::base {

// The release whose behaviour, replies and file formats are followed.
inline constexpr const char* kReferenceVersion = "8.0.2";

// Latchkey's own release.
inline constexpr const char* kLatchkeyVersion = "0.1.0";

}  // namespace latchkey::base
