"""Draws one call and all that it caused on every node as an SVG: the README's picture, from the demo's trace.json.

    draw_call.py build/demo/trace.json 'rpc_sync#nested_sync(worker0 -> worker1)' tools/demo.svg
"""
import html
import json
import sys

kWidth, kLeft, kRow, kTop = 960, 92, 22, 34
kColours = {"client": "#7aa6da", "server": "#8fbf7f", "operator": "#e0b050"}


def spans_of(events, name):
    """The halves of the named call and of the calls beneath it, and the operators that ran in those that were served."""
    calls = [e for e in events if e.get("cat") == "rpc" and e["ph"] == "X"]
    root = next(e for e in calls if e["name"] == name and e["args"]["Side"] == "client")
    ours = [e for e in calls if e["args"]["Trace id"] == root["args"]["Trace id"]]
    operators = [e for e in events if e.get("cat") == "cpu_op" and e["ph"] == "X" and e["args"].get("Trace id") == root["args"]["Trace id"]]
    return root, ours, operators


def rows_of(root, calls, operators):
    """One list of (slice, kind) a line, with the line's label: each process's halves, a line each, then its operators."""
    rows = []
    for process in sorted({e["pid"] for e in calls}):
        for call in sorted((e for e in calls if e["pid"] == process), key=lambda e: e["ts"]):
            rows.append((process, [(call, call["args"]["Side"])]))
        inside = [(e, "operator") for e in operators if e["pid"] == process]
        if inside:
            rows.append((process, inside))
    return rows


def draw(root, rows, names):
    def x(us):
        return kLeft + (us - root["ts"]) / root["dur"] * (kWidth - kLeft - 12)

    height = kTop + kRow * len(rows) + 14 * len({process for process, _ in rows}) + 24
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">' % (kWidth, height),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="8" y="18" font-size="13">%s: %.2f ms, on three nodes</text>' % (html.escape(root["name"]), root["dur"] / 1000)]
    y, last, ends = kTop, None, {}
    for process, slices in rows:
        if process != last:
            y += 14 if last is not None else 0
            out.append('<text x="8" y="%d" font-weight="bold">%s</text>' % (y + 14, html.escape(names[process])))
            last = process
        for event, kind in slices:
            left, width = x(event["ts"]), max(x(event["ts"] + event["dur"]) - x(event["ts"]), 1.2)
            label = event["name"] + (" served" if kind == "server" else "")
            out.append('<g><title>%s %.1f us</title><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" stroke="#555" stroke-width="0.4"/>' % (
                html.escape(label), event["dur"], left, y, width, kRow - 5, kColours[kind]))
            if width > 6.2 * len(label):
                out.append('<text x="%.1f" y="%d">%s</text>' % (left + 4, y + 12, html.escape(label)))
            elif kind == "server":
                out.append('<text x="%.1f" y="%d" text-anchor="end">%s</text>' % (left - 6, y + 12, html.escape(label)))
            out.append("</g>")
            if kind != "operator":
                ends.setdefault(event["args"]["Span id"], {})[kind] = (left, left + width, y + 8)
        y += kRow
    for halves in ends.values():
        if len(halves) == 2:
            (c0, c1, cy), (s0, s1, sy) = halves["client"], halves["server"]
            for a, b in (((c0, cy), (s0, sy)), ((s1, sy), (c1, cy))):
                out.append('<path d="M%.1f %d L%.1f %d" stroke="#c04040" stroke-width="1" fill="none" marker-end="url(#a)"/>' % (*a, *b))
    out.append('<defs><marker id="a" markerWidth="7" markerHeight="6" refX="6" refY="3" orient="auto"><path d="M0 0 L7 3 L0 6z" fill="#c04040"/></marker></defs>')
    out.append('<text x="8" y="%d" fill="#555">blue: the caller waits; green: the callee serves; yellow: operators that ran for the call; arrows: request and reply, joined by id</text></svg>' % (height - 8))
    return "\n".join(out) + "\n"


def main():
    path, name, target = sys.argv[1:]
    with open(path) as text:
        events = json.load(text)["traceEvents"]
    root, calls, operators = spans_of(events, name)
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    with open(target, "w") as out:
        out.write(draw(root, rows_of(root, calls, operators), names))


if __name__ == "__main__":
    main()
