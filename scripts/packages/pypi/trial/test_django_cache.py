"""Django's cache in a space of each test, as the package's README has it. Debian 12's Django is older than its own Redis backend, so the
cache is django-redis."""

import pytest
from django.core.cache import cache


@pytest.fixture(autouse=True)
def own_cache(settings, redis_url):
    settings.CACHES = {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": redis_url}}


@pytest.mark.parametrize("number", range(3))
def test_the_cache_begins_empty(number, latchkey_clock):
    assert cache.get("greeting") is None
    cache.set("greeting", number, timeout=60)
    assert cache.get("greeting") == number
    latchkey_clock.advance("61s")
    assert cache.get("greeting") is None
    cache.set("greeting", number)
