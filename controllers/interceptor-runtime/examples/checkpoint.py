"""Lets the pod of a Job write a checkpoint before it is evicted, as checkpoint.rs does: checkpoint.py NAMESPACE.

It needs Python 3.9 and no packages, and runs in a pod with a ServiceAccount. It watches requests, and serves each turn
in a thread. Times are those of the API server's clock, from the header Date of its answers.
"""

import json
import os
import ssl
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

NAME = "checkpoint.example.com"
REQUESTED, PROGRESS, DONE = (NAME + "/" + what for what in ("requested", "progress", "done"))
ACCOUNT = os.environ.get("SERVICE_ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount")
SERVER = "https://{KUBERNETES_SERVICE_HOST}:{KUBERNETES_SERVICE_PORT}".format(**os.environ)
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"


class Api:
    """The API server, with the rights of the ServiceAccount."""

    def __init__(self, namespace):
        self.requests = f"/apis/coordination.k8s.io/v1alpha1/namespaces/{namespace}/evictionrequests"
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.tls = ssl.create_default_context(cafile=ACCOUNT + "/ca.crt")
        self.skew = timedelta()

    def open(self, path, method="GET", body=None, content_type="application/json", timeout=30):
        # The token is renewed from time to time.
        with open(ACCOUNT + "/token", encoding="ascii") as token:
            headers = {"Authorization": "Bearer " + token.read().strip(), "Content-Type": content_type}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(SERVER + path, data, headers, method=method)
        answer = urllib.request.urlopen(request, timeout=timeout, context=self.tls)
        skew = parsedate_to_datetime(answer.headers["Date"]) - datetime.now(timezone.utc)
        # Date has whole seconds.
        self.skew = skew if abs(skew) > timedelta(seconds=3) else timedelta()
        return answer

    def call(self, *args, **options):
        with self.open(*args, **options) as answer:
            return json.load(answer)

    def now(self):
        return (datetime.now(timezone.utc) + self.skew).replace(microsecond=0)


class Turn(threading.Thread):
    """One turn. Its thread ends when `over` is set."""

    def __init__(self, api, request):
        super().__init__(daemon=True)
        self.api, self.request, self.over = api, request, threading.Event()
        self.path = f"{api.requests}/{request['metadata']['name']}"

    def run(self):
        while not self.over.is_set():
            try:
                # After an error it is unknown whether the last entry was written.
                self.entry = entry_of(self.api.call(self.path))
                return checkpoint(self)
            except Exception as error:
                # The watch sets `over` if the entry was refused because the turn has ended.
                say(f"{self.request['metadata']['name']}: {error}; it is tried again")
                self.over.wait(2)

    def report(self, message, ends=False):
        """Writes the entry if there is something new, or a heartbeat is due."""
        now, change = self.api.now(), {}
        if message != self.entry["message"]:
            change["message"] = message
        if "startTime" not in self.entry:
            change.update(message=message, startTime=text(now), heartbeatTime=text(now))
        else:
            age = now - datetime.fromisoformat(self.entry["heartbeatTime"].replace("Z", "+00:00"))
            if age >= timedelta(seconds=60 if change else 180):
                change["heartbeatTime"] = text(now)
        if ends:
            change["completionTime"] = text(now)
        if change:
            meta = self.request["metadata"]
            # With the UID, no other request of this name is changed.
            patch = {"metadata": {"uid": meta["uid"]}, "status": {"interceptors": [{"name": NAME, **change}]}}
            self.entry = entry_of(self.api.call(self.path + "/status", "PATCH", patch, STRATEGIC))


def checkpoint(turn):
    """The work. It reads the pod before each step, so that it may be begun again."""
    pod = turn.request["spec"]["target"]["pod"]
    path, asked = f"{turn.api.pods}/{pod['name']}", False
    while not turn.over.wait(1 if asked else 0):
        try:
            found = turn.api.call(path)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            found = {"metadata": {}}
        if found["metadata"].get("uid") != pod["uid"]:
            return turn.report("the pod is gone", ends=True)
        if not asked:
            ask = {"metadata": {"uid": pod["uid"], "annotations": {REQUESTED: "true"}}}
            turn.api.call(path, "PATCH", ask, MERGE)
            asked = True
        told = found["metadata"].get("annotations", {})
        turn.report(told.get(PROGRESS, "waiting for the pod to write a checkpoint"))
        if DONE in told:
            return turn.report("checkpoint written", ends=True)


def entry_of(request):
    return next(entry for entry in request["status"]["interceptors"] if entry["name"] == NAME)


def is_ours(request):
    status = request.get("status", {})
    return (
        status.get("activeInterceptors") == [NAME]
        and "deletionTimestamp" not in request["metadata"]
        and "completionTime" not in entry_of(request)
    )


class Interceptor:
    """Knows which turns are open."""

    def __init__(self, api):
        self.api, self.turns = api, {}

    def run(self):
        while True:
            try:
                self.watch()
            except (OSError, ValueError, KeyError) as error:
                say(f"watching: {error}; it goes on")
                time.sleep(1)

    def watch(self):
        """Lists, and watches until the watch ends."""
        listed = self.api.call(self.api.requests)
        for uid in self.turns.keys() - {request["metadata"]["uid"] for request in listed["items"]}:
            self.end(uid)
        for request in listed["items"]:
            self.see(request)
        query = {"watch": 1, "resourceVersion": listed["metadata"]["resourceVersion"], "timeoutSeconds": 300}
        with self.api.open(self.api.requests + "?" + urllib.parse.urlencode(query), timeout=330) as lines:
            for line in lines:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                self.see(event["object"], event["type"] == "DELETED")

    def see(self, request, is_deleted=False):
        uid = request["metadata"]["uid"]
        if is_deleted or not is_ours(request):
            self.end(uid)
        elif uid not in self.turns:
            say(f"{request['metadata']['name']}: it begins")
            self.turns[uid] = Turn(self.api, request)
            self.turns[uid].start()

    def end(self, uid):
        turn = self.turns.pop(uid, None)
        if turn:
            turn.over.set()
            say(f"{turn.request['metadata']['name']}: the turn is over")


def text(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def say(what):
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    Interceptor(Api(sys.argv[1])).run()
