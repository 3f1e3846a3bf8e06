"""Scenes of a subscriber that uses redis-py: python3 listener.py PORT SCENE. Prints what was received, as JSON."""

import json
import sys
import threading

import redis

TIMEOUT_S = 20


def channels_and_patterns(client):
    received = []
    with client.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe("news")
        listener.psubscribe("w*")
        while client.pubsub_numpat() == 0:
            pass
        client.publish("news", "rain")
        client.publish("weather", "sun")
        while len(received) < 2:
            message = listener.get_message(timeout=TIMEOUT_S)
            if message is not None:
                received.append((message["type"], message["channel"], message["data"]))
    return received


def thread(client):
    received, arrived = [], threading.Event()

    def handler(message):
        received.append(message["data"])
        arrived.set()

    listener = client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe(news=handler)
    while client.pubsub_numsub("news")[0][1] == 0:
        pass
    listening = listener.run_in_thread(sleep_time=0.01)
    client.publish("news", "rain")
    arrived.wait(TIMEOUT_S)
    listening.stop()
    listening.join(TIMEOUT_S)
    return received


def ping(client):
    with client.pubsub() as listener:
        listener.subscribe("news")
        listener.get_message(timeout=TIMEOUT_S)
        listener.ping("still there")
        reply = listener.get_message(timeout=TIMEOUT_S)
        return [reply["type"], reply["data"]]


SCENES = {"channels_and_patterns": channels_and_patterns, "thread": thread, "ping": ping}

if __name__ == "__main__":
    print(json.dumps(SCENES[sys.argv[2]](redis.Redis(port=int(sys.argv[1]), decode_responses=True))))
