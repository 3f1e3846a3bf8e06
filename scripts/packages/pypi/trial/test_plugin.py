"""The fixtures, one by one; run by pytest with the installed plugin and nothing else set up."""

import pytest
import redis


def connected(url):
    return redis.Redis.from_url(url, decode_responses=True)


def test_redis_url_is_a_space_of_this_test(redis_url, latchkey_space, latchkey_server):
    assert redis_url == latchkey_space.url
    assert latchkey_space.name in redis_url
    with connected(redis_url) as client, connected(latchkey_server.url) as main:
        assert client.set("key", "value")
        assert client.get("key") == "value"
        assert main.get("key") is None
        assert latchkey_space.name in str(main.execute_command("SPACE", "LIST"))


@pytest.mark.parametrize("number", range(3))
def test_a_space_begins_empty(redis_url, number):
    with connected(redis_url) as client:
        assert client.dbsize() == 0
        client.set("left behind", number)


def test_the_clock_moves_for_this_test_alone(redis_url, latchkey_clock, latchkey_server):
    with connected(redis_url) as client, connected(latchkey_server.url) as main:
        client.set("session:1", "anna", ex=1800)
        before = latchkey_clock.freeze()
        assert latchkey_clock.advance("29m") == before + 29 * 60
        assert client.get("session:1") == "anna"
        latchkey_clock.advance(60.5)
        assert client.get("session:1") is None
        assert latchkey_clock.set("2040-01-01T00:00:00Z") == 2208988800
        assert main.time()[0] < 2208988800
        latchkey_clock.resume()
        latchkey_clock.reset()


def test_a_mistake_with_the_clock_is_said(latchkey_clock):
    import latchkey

    with pytest.raises(latchkey.LatchkeyError, match="CLOCK ADVANCE with: ERR Invalid duration"):
        latchkey_clock.advance("soon")


def test_directives_of_pytest_ini_count(redis_url):
    with connected(redis_url) as client:
        assert client.info("server")["redis_version"].startswith("7.0")


def test_a_directive_of_pytest_ini_may_be_repeated(latchkey_server):
    with connected(latchkey_server.url) as client:
        assert client.acl_users() == ["alice", "bob", "default"]


def test_a_password_of_pytest_ini_is_in_the_urls(latchkey_server, redis_url):
    assert ":secret@" in latchkey_server.url
    assert ":secret@" in redis_url
