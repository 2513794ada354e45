"""compare.py HARNESS API REQUESTS.jsonl HISTORY.json [SOURCE.json CONVERTED.json]: what an agent sent to go on, against what `scrollback history` says.

Prints four columns: how many items the source has, where there is one, how many were expected and how many sent, and the verdict.
The first difference is a further line.
"""
import json, re, sys

HARNESS, API, REQUESTS, HISTORY = sys.argv[1:5]
sys.path.insert(0, HARNESS)
import norm


def parsed(text):
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None


def plain(item):
    """Arguments without their blanks; outputs without how the tool ended, which older versions of Codex add."""
    output, arguments = parsed(item.get("output")), parsed(item.get("arguments"))
    if isinstance(output, dict) and "metadata" in output and "output" in output:
        item = {**item, "output": output["output"]}
    return {**item, "arguments": json.dumps(arguments)} if isinstance(arguments, dict) else item


def flat(body):
    if API == "responses":
        body = {**body, "input": [plain(item) for item in body["input"]]}
    if API == "chat":
        for message in body["messages"]:
            for call in message.get("tool_calls") or []:
                call["function"] = plain(call["function"])
    # Context that the agent builds for each request is not part of a session.
    return [item.rstrip() for item in norm.norm({"api": API, "body": body}) if not item.startswith("ctx(")]


def history(path):
    with open(path) as file:
        return flat({"input" if API == "responses" else "messages": json.load(file)})


# An open call is closed in each agent's own words, Claude Code answers what nobody has answered, Codex fetches no pictures, and Qwen
# Code sends them only to models that it knows to see.
NO_RESULT, CLOSES = "[no result was recorded:", "A: No response requested."
NO_PICTURE, PICTURE = "U: image content omitted because remote image URLs are not supported", "U: input_image"


def in_our_words(sent, expected):
    """What was sent, with our words for all that."""
    known = {item.split(":")[0]: item for item in expected if NO_RESULT in item}
    ours = [known.get(item.split(":")[0], item).replace(NO_PICTURE, PICTURE) for item in sent]
    ours = [re.sub(r"^U: \[image: [^]]*\]$", "U: image_url", item) for item in ours]
    return ours[:-1] if ours[-1:] == [CLOSES] else ours


def request_body():
    """The first request with our prompt."""
    with open(REQUESTS) as requests:
        for line in requests:
            request = json.loads(line)
            if request.get("api") == API and "GO-ON" in json.dumps(request["body"]):
                return request["body"]
    return None


# Losses that no model can see.
INVISIBLE = {"environment", "usage", "duration", "todos", "timestamp", "snapshot", "header", "title", "title source", "thinking", "sidechain"}


def losses():
    """The losses that `convert` reported and that a model can see."""
    with open(sys.argv[6]) as file:
        rows = json.load(file)["losses"]
    return sorted({f"{row['what']} {row['kind']}" for row in rows if row["what"] not in INVISIBLE})


def report(verdict):
    # Thinking is only sent back to the model that wrote it.
    source = [item for item in history(sys.argv[5]) if ".think" not in item] if len(sys.argv) > 5 else None
    written = [item for item in expected if ".think" not in item]
    if source is not None and len(source) != len(written):
        lost = losses()
        verdict = f"{verdict}; reported by `convert`: {', '.join(lost)}" if lost else "differs: `convert` lost something without reporting it"
    print("" if source is None else len(source), len(expected), len(sent), verdict, sep="\t")


expected = history(HISTORY)
try:
    body = request_body()
except FileNotFoundError:
    body = None
sent = [] if body is None else [item for item in flat(body) if "GO-ON" not in item]
if body is None or not expected:
    report("no request" if expected else "nothing was written")
elif sent == expected:
    report("the same")
elif in_our_words(sent, expected) == expected:
    report("the same, some of it in its own words")
else:
    report("differs")
    sent = in_our_words(sent, expected)
    at = next((at for at, (a, b) in enumerate(zip(sent, expected)) if a != b), min(len(sent), len(expected)))
    shown = lambda items: items[at] if at < len(items) else "nothing"
    print(f"item {at + 1}: sent {shown(sent)!r}, expected {shown(expected)!r}")
