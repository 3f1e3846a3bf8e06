// A digest of a dataset, equal for equal datasets however they were built: the result of DEBUG
// DIGEST, used to compare the datasets of two servers. Computed as the reference does, so that its
// datasets can be compared too.
//
// A value's digest begins at zero and takes in parts in order, d = sha1(d ^ sha1(part)): the type's
// number, then the string, the elements of a list, or for each entry of a stream its id ("12.0"),
// fields and values. A set joins its members, d ^= sha1(member), so that their order does not
// matter; a hash joins for each field a digest of the field and its value, a sorted set of the
// member and its score. A deadline, whatever its time, joins "!!expire!!", that of a field
// "!!hexpire!!" to the field's digest. A key's digest takes in the key before the value. A
// dataset's takes in the number of each database that is not empty, and joins the digests of its
// keys.
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
