"""Function libraries as data, and names of them and of their functions.

A library has one function, for functions have no order. They call commands with strings: the reference fails at FUNCTION FLUSH
behind a call with nil.
"""


def _library(name, function, body, flags=None):
    callback = "function(keys, args) %s end" % body
    if flags is None:
        return "#!lua name=%s\nredis.register_function('%s', %s)" % (name, function, callback)
    return "#!lua name=%s\nredis.register_function{function_name='%s', callback=%s, flags={%s}, description='%s'}" % (
        name, function, callback, ", ".join("'%s'" % flag for flag in flags), name)


LIBRARIES = [
    _library("one", "get", "return redis.call('GET', tostring(keys[1]))", ["no-writes"]),
    _library("one", "get", "return redis.call('GET', tostring(keys[1]))"),
    _library("two", "set", "return redis.call('SET', tostring(keys[1]), tostring(args[1]))"),
    _library("two", "set", "return redis.call('SET', tostring(keys[1]), tostring(args[1]))", ["no-writes", "allow-oom"]),
    _library("two", "get", "return {keys, args}"),
    _library("three", "count", "return redis.pcall('INCR', tostring(keys[1]))", ["allow-stale", "no-cluster", "allow-cross-slot-keys"]),
    _library("THREE", "COUNT", "return 1"),
    _library("four", "fails", "return nosuchglobal"),
    _library("four", "fails", "error({err='MY text'})"),
    _library("four", "fails", "redis.setresp(3) return {double=1.5}"),
    _library("four", "fails", "return cjson.decode(args[1] or '')"),
    _library("bad-name", "get", ""),
    _library("five", "bad name", ""),
    _library("five", "get", "", ["nosuch"]),
    "#!lua name=five\nredis.register_function('get')",
    "#!lua name=five\nredis.call('SET', 'k1', 1)",
    "#!lua name=five\n",
    "#!lua name=five",
    "#!lua name=five name=six\n",
    "#!lua flags=no-writes name=five\n",
    "#!lua\n",
    "#!python name=five\n",
    "return 1",
    "",
]
NAMES = ["one", "two", "three", "THREE", "four", "nosuch"]
PATTERNS = ["*", "t*", "T*", "one", "ONE", "", "[a-o]*"]
FUNCTIONS = ["get", "GET", "set", "count", "fails", "nosuch"]
