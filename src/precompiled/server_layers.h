// What nearly every file of server/ and of the layers above it includes, compiled once for all of
// them: it is more than half of the time that a file takes otherwise.
//
// The build includes it before each file, which includes what it needs all the same: with
// -Db_pch=false there is none.
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/server.h"
