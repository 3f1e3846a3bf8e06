// The replication section of INFO.
#pragma once

namespace latchkey::server {
class InfoText;
}

namespace latchkey::replication {

class Replication;

void describe(const Replication& replication, server::InfoText& text);

}  // namespace latchkey::replication
