// A digest of a dataset, equal for equal datasets however they were built: the result of DEBUG
// DIGEST, used to compare the datasets of two servers. Computed as the reference does, so that its
// datasets can be compared too.
//
// A value's digest begins at zero and takes in parts in order: d = sha1(d ^ sha1(part)), the parts
// being the type's number and the string. Of a stream these are each
// entry's id ("12.0"), fields and values. A hash joins for each field the digest that takes in the
// field and its value, so that their order does not matter; a deadline, whichever, adds d ^=
// sha1("!!expire!!"), that of a field sha1("!!hexpire!!") to the field's. A key's digest takes in
// the key first. A dataset's takes in the number of each database that is not empty, and joins the
// keys by d ^= sha1(key's digest), so that their order does not matter.
#pragma once

#include <array>
#include <cstdint>

namespace latchkey::store {
class Entry;
}

namespace latchkey::server {

class Server;

using Digest = std::array<uint8_t, 20>;

// Digest of the value alone.
Digest value_digest(const store::Entry& entry);
// Digest of all databases. Linear in the bytes of the dataset.
Digest dataset_digest(Server& server);

}  // namespace latchkey::server
