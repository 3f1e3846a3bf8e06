// Version 2 of Catch2 compiles its implementation where this is defined; version 3 is a library.
#define CATCH_CONFIG_RUNNER
#include "unit/catch.h"

int main(int argc, char** argv) {
  return Catch::Session().run(argc, argv);
}
