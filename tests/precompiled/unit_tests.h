// What nearly every unit test includes, as src/precompiled/server_layers.h is for the server.
#include "unit/catch.h"
#include "unit/server_fixture.h"
