"""compare.py HARNESS REQUESTS.jsonl HISTORY.json API: what an agent sent to go on, against what `scrollback history` says.

Prints three columns: how many items were sent, how many were expected, and the verdict. The first difference is a further line.
"""
import json, sys

HARNESS, REQUESTS, HISTORY, API = sys.argv[1:5]
sys.path.insert(0, HARNESS)
import norm


def plain(item):
    """Codex's older versions told how a tool ended around what it gave: the history has it without that."""
    try:
        inner = json.loads(item["output"])
        return {**item, "output": inner["output"]} if "metadata" in inner else item
    except (KeyError, TypeError, ValueError):
        return item


def flat(body):
    if API == "responses":
        body = {**body, "input": [plain(item) for item in body["input"]]}
    # What an agent makes anew each time is no part of a session.
    return [said.rstrip() for said in norm.norm({"api": API, "body": body}) if not said.startswith("ctx(")]


# An open call is closed in each agent's own words, and Claude Code answers what nobody has answered.
NO_RESULT, CLOSES = "[no result was recorded:", "A: No response requested."


def in_own_words(sent, expected):
    """What was sent, with our words for a call that was left open."""
    told = {said.split(":")[0]: said for said in expected if NO_RESULT in said}
    own = [told.get(said.split(":")[0], said) for said in sent]
    return own[:-1] if own[-1:] == [CLOSES] else own


def asked():
    """The first request that goes on."""
    with open(REQUESTS) as requests:
        for line in requests:
            request = json.loads(line)
            if request.get("api") == API and "GO-ON" in json.dumps(request["body"]):
                return request["body"]
    return None


with open(HISTORY) as history:
    expected = flat({"input" if API == "responses" else "messages": json.load(history)})
try:
    body = asked()
except FileNotFoundError:
    body = None
sent = [] if body is None else [said for said in flat(body) if "GO-ON" not in said]
if body is None:
    print(0, len(expected), "asked nothing", sep="\t")
elif sent == expected:
    print(len(sent), len(expected), "the same", sep="\t")
elif in_own_words(sent, expected) == expected:
    print(len(sent), len(expected), "the same, the open end closed in its own words", sep="\t")
else:
    sent = in_own_words(sent, expected)
    at = next((at for at, (a, b) in enumerate(zip(sent, expected)) if a != b), min(len(sent), len(expected)))
    told = lambda items: items[at] if at < len(items) else "nothing"
    print(len(sent), len(expected), "differs", sep="\t")
    print(f"item {at + 1}: sent {told(sent)!r}, expected {told(expected)!r}")
