// The library that scripts know as `redis`.
#pragma once

namespace latchkey::script {

class Engine;
class Interpreter;

// Adds the library to a new world. The engine outlives it.
void add_redis_library(Interpreter& interpreter, Engine& engine);

}  // namespace latchkey::script
