"""Users and what they may do. The default user stays as it is, for who checks the servers is it."""

from .rows import Row


def exact(template, compare=None, **how):
    return Row(template, compare, exact=True, **how)


CHANGING = [
    exact("ACL SETUSER <acl_user> <acl_rules>"),
    exact("ACL SETUSER <acl_user> <acl_rules> <acl_rules>"),
    exact("ACL SETUSER <acl_user> reset on nopass +@all <acl_rules>"),
    exact("ACL SETUSER <acl_user> reset on nopass ~k1 +@all -@dangerous <acl_rules>"),
    exact("ACL DELUSER carla nosuchuser"),
]
ASKING = [
    exact("ACL LIST"),
    exact("ACL USERS"),
    exact("ACL WHOAMI"),
    exact("ACL CAT", "and_more"),
    exact("ACL CAT zebra"),
    exact("ACL GETUSER <acl_user>"),
    exact("ACL GETUSER nosuchuser"),
    exact("ACL DRYRUN <acl_user> <acl_request>"),
    exact("ACL DRYRUN <acl_user> <acl_request>"),
    exact("ACL (LOG|GENPASS) (0|abc) [a]"),
    exact("ACL GENPASS (-1|5000)"),
    exact("ACL LOG -1"),
    exact("ACL CAT (0|1) [a]"),
    exact("ACL (LOAD|SAVE|DRYRUN|GETUSER) [a]"),
]
BEING = [
    # Behind other replies of a pipeline or transaction the reference leaves a wrong password without an answer.
    exact("AUTH <acl_user> one", alone=True, in_multi=False),
    exact("AUTH <acl_user> <acl_password>", alone=True, in_multi=False),
    exact("HELLO (2|3) [AUTH <acl_user> <acl_password>]", "hello", alone=True, in_multi=False),
    exact("RESET", in_multi=False),
]
ACTING = [
    exact("<acl_request>", always=True),
    exact("<acl_request>", always=True),
    exact("EVAL <acl_caller> 0 <acl_request>"),
    # Redis 8.6 counts the words.
    exact("EVAL <acl_checker> 0 <acl_request>", needs="msetex"),
    exact("MULTI"),
    exact("EXEC"),
    exact("EXEC"),
    exact("DISCARD"),
]

ROWS = CHANGING + CHANGING + ASKING + BEING + ACTING + ACTING + ACTING
