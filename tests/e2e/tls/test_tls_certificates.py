"""Certificates as operators meet them: replaced while a server runs, told by INFO, and naming users by their URIs."""

import os
import shutil
import subprocess
import unittest

import harness
import test_tls
from test_tls import Certificates, SecureServer, context, options


def tearDownModule():
    Certificates.forget()


def facts(client):
    """INFO's section about certificates."""
    return dict(line.split(":", 1) for line in client.call("INFO", "tls").splitlines() if ":" in line)


def serial(name):
    """In hexadecimal digits, as openssl tells it."""
    told = subprocess.run(["openssl", "x509", "-in", Certificates.path(name + ".crt"), "-noout", "-serial"], capture_output=True,
                          text=True, check=True).stdout
    return told.strip().partition("=")[2]


class Reloads(test_tls.InstalledTestCase):
    more = {"tls_auto_reload_interval": "1", "loglevel": "debug"}

    def setUp(self):
        super().setUp()
        self.addCleanup(self.plain.call, "CONFIG", "SET", "tls-auto-reload-interval", "1")
        self.set_files()

    def test_files_that_change_are_read_again(self):
        before = self.secure()
        self.assertEqual(self.server_name(), "Generic-cert")
        self.install("server")
        self.eventually(lambda: self.server_name() == "Server-only")
        self.logs("* TLS materials changed, reloading in background\n")
        self.logs("* TLS materials reloaded successfully\n")
        self.assertEqual(facts(self.plain)["tls_server_cert_serial"], serial("server"))
        self.assertEqual(before.call("PING"), "PONG")
        self.install("redis")
        self.eventually(lambda: self.server_name() == "Generic-cert")

    def test_what_cannot_be_used_is_tried_again(self):
        with open(self.files["crt"], "w") as file:
            file.write("half a certificate\n")
        self.logs("# Failed to load certificate: %s: error:" % self.files["crt"])
        self.logs("# Background TLS reload failed\n")
        self.assertEqual(self.server_name(), "Generic-cert")
        os.remove(self.files["key"])
        self.install("server")
        self.eventually(lambda: self.server_name() == "Server-only")

    def test_what_does_not_change_is_not_read(self):
        server = SecureServer(**options(**self.more))
        self.addCleanup(server.stop)
        self.eventually(lambda: server.log().count(". TLS reload skipped: materials unchanged\n") > 1)
        self.assertNotIn("TLS materials changed", server.log())

    def test_what_changed_without_an_interval_is_read_with_the_next(self):
        self.plain.call("CONFIG", "SET", "tls-auto-reload-interval", "0")
        self.install("server")
        self.assertEqual(self.server_name(), "Generic-cert")
        self.plain.call("CONFIG", "SET", "tls-auto-reload-interval", "1")
        self.eventually(lambda: self.server_name() == "Server-only")

    def test_an_authority_is_withdrawn(self):
        authority = os.path.join(self.directory, "ca.crt")
        shutil.copy(Certificates.path("ca.crt"), authority)
        self.addCleanup(self.plain.call, "CONFIG", "SET", "tls-ca-cert-file", Certificates.path("ca.crt"))
        self.plain.call("CONFIG", "SET", "tls-ca-cert-file", authority)
        self.assert_serves()
        shutil.copy(Certificates.path("other-ca.crt"), authority)
        self.eventually(lambda: facts(self.plain)["tls_ca_cert_serial"] == serial("other-ca"))
        self.assert_refused(context())

    def test_a_port_that_goes_ends_it(self):
        self.addCleanup(self.plain.call, "CONFIG", "SET", "tls-port", self.server.tls_port)
        self.plain.call("CONFIG", "SET", "tls-port", "0")
        self.install("server")
        self.assertEqual(facts(self.plain)["tls_server_cert_serial"], "none")
        self.plain.call("CONFIG", "SET", "tls-port", self.server.tls_port)
        self.assertEqual(self.server_name(), "Server-only")

    def test_it_is_a_number_of_seconds(self):
        self.assertIn("argument must be between 0 and 2147483647 inclusive",
                      self.plain.error_of("CONFIG", "SET", "tls-auto-reload-interval", "-1"))


class Told(harness.ServerTestCase):
    def test_without_tls_there_are_none(self):
        self.assertEqual(facts(self.connect()), {
            "tls_%s_cert_%s" % (whose, what): value for whose in ("server", "client", "ca")
            for what, value in (("serial", "none"), ("expires_in_seconds", "0"))})

    def test_all_that_are_in_use_are_told(self):
        server = SecureServer(**options(tls_client_cert_file=Certificates.path("expired.crt"),
                                        tls_client_key_file=Certificates.path("expired.key")))
        self.addCleanup(server.stop)
        with server.connect() as client:
            told = facts(client)
            for whose, name in (("server", "redis"), ("client", "expired"), ("ca", "ca")):
                self.assertEqual(told["tls_%s_cert_serial" % whose], serial(name))
            self.assertGreater(int(told["tls_server_cert_expires_in_seconds"]), 365 * 86400)
            self.assertEqual(told["tls_client_cert_expires_in_seconds"], "0")
            # Of several authorities the one that expires first.
            client.call("CONFIG", "SET", "tls-ca-cert-dir", Certificates.path("ca-dir"))
            self.assertEqual(facts(client)["tls_ca_cert_serial"], serial("ca"))
            self.assertIn("# TLS\r\n", client.call("INFO", "everything"))
            self.assertNotIn("# TLS\r\n", client.call("INFO"))


class Uris(test_tls.TlsTestCase):
    more = {"tls_auth_clients_user": "URI"}
    first, second = "urn:valkey:user:first", "urn:valkey:user:second"

    def setUp(self):
        self.plain = self.connect()
        self.plain.call("ACL", "LOG", "RESET")
        self.addCleanup(self.plain.call, "ACL", "DELUSER", self.first, self.second, "Client-only")

    def who(self, name="client"):
        return self.secure(context(name)).call("ACL", "WHOAMI")

    def test_the_first_enabled_user_is_meant(self):
        for name in (self.first, self.second):
            self.plain.call("ACL", "SETUSER", name, "on", "+acl|whoami")
        self.assertEqual(self.who(), self.first)
        self.plain.call("ACL", "SETUSER", self.first, "off")
        self.assertEqual(self.who(), self.second)
        self.assertEqual(self.plain.call("ACL", "LOG"), [])

    def test_a_certificate_that_names_nobody_is_told(self):
        self.plain.call("ACL", "SETUSER", self.first, "off", "+@all")
        self.assertEqual(self.who(), "default")
        entry = self.plain.call("ACL", "LOG")[0]
        entry = dict(zip(entry[::2], entry[1::2]))
        self.assertEqual((entry["reason"], entry["username"]), ("tls-cert", self.second))

    def test_a_certificate_without_any_is_not(self):
        self.assertEqual(self.who("redis"), "default")
        self.assertEqual(self.plain.call("ACL", "LOG"), [])

    def test_the_common_name_is_another_setting(self):
        self.plain.call("ACL", "SETUSER", "Client-only", "on", "+acl|whoami")
        self.assertEqual(self.who(), "default")
        self.addCleanup(self.plain.call, "CONFIG", "SET", "tls-auth-clients-user", "URI")
        self.plain.call("CONFIG", "SET", "tls-auth-clients-user", "CN")
        self.assertEqual(self.who(), "Client-only")


if __name__ == "__main__":
    unittest.main()
