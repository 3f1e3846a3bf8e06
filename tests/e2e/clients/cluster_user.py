"""Scenes of a program that uses redis-py's cluster client: python3 cluster_user.py PORT. Prints what it read, as JSON."""

import json
import sys

import redis


def main():
    cluster = redis.RedisCluster(host="127.0.0.1", port=int(sys.argv[1]), decode_responses=True)
    cluster.set("name", "anna")
    cluster.mset_nonatomic({"a": "1", "b": "2", "c": "3"})
    with cluster.pipeline() as pipeline:
        for key in ("a", "b", "c"):
            pipeline.incr(key)
        counted = pipeline.execute()
    print(json.dumps({"name": cluster.get("name"), "counted": counted, "keys": sorted(cluster.keys()), "slot": cluster.keyslot("name")}))


if __name__ == "__main__":
    main()
