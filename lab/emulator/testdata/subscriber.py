"""Subscribes to KV events with libzmq, asks for the first ones again, and prints what arrived.

usage: subscriber.py PUB ROUTER TOPIC BATCHES
"""
import json
import sys

import msgspec
import zmq

pub, router, topic, count = sys.argv[1], sys.argv[2], sys.argv[3].encode(), int(sys.argv[4])
context = zmq.Context()
sub = context.socket(zmq.SUB)
sub.setsockopt(zmq.HEARTBEAT_IVL, 50)
sub.setsockopt(zmq.SUBSCRIBE, topic)
sub.setsockopt(zmq.SUBSCRIBE, b"nothing has this topic")
sub.connect(pub)
print("ready", flush=True)

live = []
while len(live) < count:
    if not sub.poll(20000):
        sys.exit("no event within 20 s")
    name, seq, payload = sub.recv_multipart()
    assert name == topic, name
    live.append((int.from_bytes(seq, "big"), msgspec.msgpack.decode(payload)))

replay = context.socket(zmq.DEALER)
replay.connect(router)
replay.send_multipart([b"", (0).to_bytes(8, "big")])
old = []
while True:
    if not replay.poll(20000):
        sys.exit("no end of the replay within 20 s")
    empty, name, seq, payload = replay.recv_multipart()
    assert empty == b"", empty
    if int.from_bytes(seq, "big", signed=True) == -1:
        break
    assert name == topic, name
    old.append((int.from_bytes(seq, "big"), msgspec.msgpack.decode(payload)))

print(json.dumps({"live": live, "old": old}))
