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
    """Arguments without their blanks; outputs without how the tool ended, which Codex's older versions told around them."""
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
    # What an agent makes anew each time is no part of a session.
    return [said.rstrip() for said in norm.norm({"api": API, "body": body}) if not said.startswith("ctx(")]


def history(path):
    with open(path) as file:
        return flat({"input" if API == "responses" else "messages": json.load(file)})


# An open call is closed in each agent's own words, Claude Code answers what nobody has answered, Codex fetches no pictures, and Qwen
# Code sends them only to models that it knows to see.
NO_RESULT, CLOSES = "[no result was recorded:", "A: No response requested."
NO_PICTURE, PICTURE = "U: image content omitted because remote image URLs are not supported", "U: input_image"


def in_our_words(sent, expected):
    """What was sent, with our words for all that."""
    told = {said.split(":")[0]: said for said in expected if NO_RESULT in said}
    ours = [told.get(said.split(":")[0], said).replace(NO_PICTURE, PICTURE) for said in sent]
    ours = [re.sub(r"^U: \[image: [^]]*\]$", "U: image_url", said) for said in ours]
    return ours[:-1] if ours[-1:] == [CLOSES] else ours


def asked():
    """The first request that goes on."""
    with open(REQUESTS) as requests:
        for line in requests:
            request = json.loads(line)
            if request.get("api") == API and "GO-ON" in json.dumps(request["body"]):
                return request["body"]
    return None


# What a conversion tells and no model hears of.
UNHEARD = {"environment", "usage", "duration", "todos", "timestamp", "snapshot", "header", "title", "title source", "thinking", "sidechain"}


def losses():
    """What a conversion told that a model hears of."""
    with open(sys.argv[6]) as file:
        rows = json.load(file)["losses"]
    return sorted({f"{row['what']} {row['kind']}" for row in rows if row["what"] not in UNHEARD})


def tell(verdict):
    # Thoughts stay with the model that had them.
    said = [item for item in history(sys.argv[5]) if ".think" not in item] if len(sys.argv) > 5 else None
    written = [item for item in expected if ".think" not in item]
    if said is not None and len(said) != len(written):
        lost = losses()
        verdict = f"{verdict}; told by `convert`: {', '.join(lost)}" if lost else "differs: converting lost something in silence"
    print("" if said is None else len(said), len(expected), len(sent), verdict, sep="\t")


expected = history(HISTORY)
try:
    body = asked()
except FileNotFoundError:
    body = None
sent = [] if body is None else [said for said in flat(body) if "GO-ON" not in said]
if body is None or not expected:
    tell("asked nothing" if expected else "nothing was written")
elif sent == expected:
    tell("the same")
elif in_our_words(sent, expected) == expected:
    tell("the same, some of it in its own words")
else:
    tell("differs")
    sent = in_our_words(sent, expected)
    at = next((at for at, (a, b) in enumerate(zip(sent, expected)) if a != b), min(len(sent), len(expected)))
    told = lambda items: items[at] if at < len(items) else "nothing"
    print(f"item {at + 1}: sent {told(sent)!r}, expected {told(expected)!r}")
