// Comfort for readers: keys, copying, and what follows the position. Every page works without it.
"use strict";
document.documentElement.classList.add("js");

document.addEventListener("DOMContentLoaded", () => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const messages = () => all("#messages > .msg[id]");
  const rail = document.getElementById("rail-todos");
  let current = null;

  // The outline and the task list show where the reader is.
  function moved(message) {
    if (!message || message === current) return;
    current = message;
    const list = messages();
    const here = list.slice(0, list.indexOf(message) + 1);
    const prompt = here.filter((one) => one.classList.contains("msg-user")).pop();
    for (const link of all(".outline a")) {
      const is = prompt && link.hash === "#" + prompt.id;
      if (is) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    for (const tick of all(".trace-map a")) {
      const target = document.getElementById(tick.getAttribute("href").slice(1));
      tick.classList.toggle("here", target?.closest("#messages > .msg") === message);
    }
    if (!rail) return;
    const todo = here.flatMap((one) => all(".todo", one)).pop();
    if (!todo) return;
    rail.hidden = false;
    rail.querySelector(".num").textContent = `${todo.dataset.done} of ${todo.dataset.all}`;
    rail.querySelector(".todos").replaceWith(todo.querySelector(".todos").cloneNode(true));
  }

  function go(message, block = "start") {
    if (!message) return;
    message.focus({ preventScroll: true });
    message.scrollIntoView({ block });
    moved(message);
  }

  function place() {
    const list = messages();
    if (list.includes(document.activeElement?.closest?.(".msg"))) return list.indexOf(document.activeElement.closest(".msg"));
    const at = list.findIndex((one) => one.getBoundingClientRect().bottom > 80);
    return at < 0 ? list.length - 1 : at;
  }

  function step(by, wanted = () => true) {
    const list = messages();
    let at = place();
    // The first step goes to what is on the screen.
    if (!list.includes(document.activeElement) && by > 0) at -= 1;
    for (at += by; at >= 0 && at < list.length; at += by) {
      if (wanted(list[at])) return go(list[at]);
    }
  }

  const toggle = (folds) => {
    const open = !folds.every((fold) => fold.open);
    folds.forEach((fold) => { fold.open = open; });
  };
  const tab = (name) => all(".tabs a").find((link) => link.dataset.key === name)?.click();
  const turn = (rel) => document.querySelector(`a[rel="${rel}"]`)?.click();
  const isPrompt = (one) => one.classList.contains("msg-user");
  const isFailure = (one) => one.querySelector(".tool-err, .tool-denied, .notice") !== null;

  async function copy(text, button) {
    try {
      await navigator.clipboard.writeText(text);
      button?.setAttribute("aria-label", "Copied");
      button?.classList.add("copied");
    } catch { /* the browser does not allow it here */ }
  }

  const keys = {
    j: () => step(1), k: () => step(-1),
    J: () => step(1, isPrompt), K: () => step(-1, isPrompt),
    e: () => step(1, isFailure), E: () => step(-1, isFailure),
    g: () => go(messages()[0]), G: () => go(messages().pop(), "end"),
    o: () => toggle(all("details", messages()[place()])),
    O: () => toggle(all("#messages .tool")),
    y: () => { const one = messages()[place()]; if (one) copy(location.href.split("#")[0] + "#" + one.id); },
    t: () => tab("tree"), f: () => tab("files"), r: () => tab("replay"), c: () => tab("conversation"),
    ArrowLeft: () => turn("prev"), ArrowRight: () => turn("next"), p: () => document.querySelector("[data-play]")?.click(),
    "/": () => { const field = document.querySelector("input[type=search]"); field?.focus(); field?.select(); },
    "?": () => { const help = document.getElementById("help"); if (help.open) help.close(); else help.showModal(); },
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    const isArrow = event.key.startsWith("Arrow");
    if (isArrow && (event.target.closest("pre, .scroll-x") || !document.querySelector("a[rel=prev], a[rel=next]"))) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  document.addEventListener("click", (event) => {
    const anchor = event.target.closest(".msg-head > a.anchor");
    if (anchor) copy(anchor.href, anchor);
    const button = event.target.closest("[data-copy]");
    if (button) copy(button.closest("figure, .copy").querySelector("code").textContent, button);
  });

  // Earlier messages come into the same page; the view stays where it is.
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("[data-earlier] > a");
    const box = document.getElementById("messages");
    if (!link || !box || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const answer = await fetch(link.href);
    if (!answer.ok) { location.href = link.href; return; }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const height = document.documentElement.scrollHeight;
    box.prepend(...page.getElementById("messages").childNodes);
    const pager = page.querySelector("[data-earlier]");
    document.querySelector("[data-earlier]").replaceWith(...(pager ? [pager] : []));
    document.querySelector(".outline")?.prepend(...all(".outline > li", page));
    for (const symbol of all("svg[hidden] > symbol", page)) {
      if (!document.getElementById(symbol.id)) document.querySelector("svg[hidden]").append(symbol);
    }
    scrollBy({ top: document.documentElement.scrollHeight - height, behavior: "instant" });
  });

  // A replay goes on by itself: ten times as fast as it was, but so that it can be read.
  if (document.querySelector("[data-play=on]")) {
    const next = document.querySelector("a[rel=next]");
    const took = Number(document.querySelector("[data-took]")?.dataset.took ?? 0);
    if (next) setTimeout(() => location.replace(next.href + "&play=1"), Math.min(Math.max(took / 10, 2000), 10000));
  }

  let waiting = false;
  addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; moved(messages().find((one) => one.getBoundingClientRect().bottom > 120)); });
  }, { passive: true });
  if (location.hash) go(document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest(".msg"));
  else moved(messages().find((one) => one.getBoundingClientRect().bottom > 120));
});
