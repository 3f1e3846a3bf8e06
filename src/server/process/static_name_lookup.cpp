// Keeps a static program from loading the machine's libraries when it looks up a name: host names
// come from /etc/hosts and DNS, groups from /etc/group, whatever else /etc/nsswitch.conf lists. A
// library of another glibc than the program was linked with must not be loaded into it. Linked into
// the static program only; nothing calls it.
#include <nss.h>

namespace {

__attribute__((constructor)) void use_built_in_lookups() {
  __nss_configure_lookup("hosts", "files dns");
  __nss_configure_lookup("group", "files");
  __nss_configure_lookup("passwd", "files");
}

}  // namespace
