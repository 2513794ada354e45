// Comfort for readers: keys, copying, and what follows the position. Every page works without it.
"use strict";
const root = document.documentElement;
root.classList.add("js");

document.addEventListener("DOMContentLoaded", () => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const first = selector => document.querySelector(selector);
  const byId = id => document.getElementById(id);
  const messages = () => all("#messages > .msg[id]");
  const rail = byId("rail-todos");
  let current = null;

  // The outline and the task list show where the reader is.
  function moved(message) {
    if (!message || message === current) return;
    current = message;
    const list = messages();
    const here = list.slice(0, list.indexOf(message) + 1);
    const prompt = here.filter(one => one.classList.contains("msg-user")).pop();
    for (const link of all(".outline a")) {
      link.ariaCurrent = prompt && link.hash === "#" + prompt.id ? "true" : null;
    }
    for (const tick of all(".trace-map a")) {
      const target = byId(tick.getAttribute("href").slice(1));
      tick.classList.toggle("here", target?.closest("#messages > .msg") === message);
    }
    if (!rail) return;
    const todo = here.flatMap(one => all(".todo", one)).pop();
    rail.hidden = !todo;
    if (!todo) return;
    rail.querySelector(".num").textContent = `${todo.dataset.done} of ${todo.dataset.all}`;
    rail.querySelector(".todos").replaceWith(todo.querySelector(".todos").cloneNode(true));
  }

  function inView() {
    const isEnd = scrollY > 0 && scrollY + innerHeight > root.scrollHeight - 8;
    return isEnd ? messages().pop() : messages().find(one => one.getBoundingClientRect().bottom > 120);
  }

  // An address that somebody typed may be none of ours.
  function named(id) {
    try {
      return byId(decodeURIComponent(id));
    } catch {
      return null;
    }
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
    const at = list.findIndex(one => one.getBoundingClientRect().bottom > 80);
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

  const toggle = folds => {
    const open = !folds.every(fold => fold.open);
    folds.forEach(fold => { fold.open = open; });
  };
  const tab = name => all(".tabs a").find(link => link.dataset.key === name)?.click();
  const turn = rel => first(`a[rel="${rel}"]`)?.click();
  const isPrompt = one => one.classList.contains("msg-user");
  const isFailure = one => one.querySelector(".tool-err, .tool-denied, .notice") !== null;

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
    y: () => { const one = messages()[place()]; if (one) copy(one.querySelector(".anchor")?.href ?? location.href.split("#")[0] + "#" + one.id); },
    t: () => tab("tree"), f: () => tab("files"), r: () => tab("replay"), c: () => tab("conversation"),
    ArrowLeft: () => turn("prev"), ArrowRight: () => turn("next"), p: () => first("[data-play]")?.click(),
    "/": () => { const field = first("input[type=search]"); field?.focus(); field?.select(); },
    "?": () => { const help = byId("help"); if (help.open) help.close(); else help.showModal(); },
  };

  document.addEventListener("keydown", event => {
    const field = event.target.closest("input, select, textarea");
    if (field && event.key === "Escape") field.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || field) return;
    const isArrow = event.key.startsWith("Arrow");
    if (isArrow && (event.target.closest("pre, .scroll-x") || !first("a[rel=prev], a[rel=next]"))) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  document.addEventListener("click", event => {
    const anchor = event.target.closest(".msg-head > a.anchor");
    if (anchor) {
      copy(anchor.href, anchor);
      // The message is on this page: its link need not load it again.
      if (!event.ctrlKey && !event.metaKey && named(anchor.hash.slice(1))) {
        event.preventDefault();
        location.hash = anchor.hash;
      }
    }
    const button = event.target.closest("[data-copy]");
    if (button) copy(button.closest("figure, .copy").querySelector("code").textContent, button);
  });

  // Earlier messages come into the same page; the view stays where it is.
  document.addEventListener("click", async event => {
    const link = event.target.closest("[data-earlier] > a");
    const box = byId("messages");
    if (!link || !box || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const answer = await fetch(link.href);
    if (!answer.ok) { location.href = link.href; return; }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const height = root.scrollHeight;
    box.prepend(...page.getElementById("messages").childNodes);
    const pager = page.querySelector("[data-earlier]");
    first("[data-earlier]").replaceWith(...(pager ? [pager] : []));
    first(".outline")?.prepend(...all(".outline > li", page));
    for (const symbol of all("svg[hidden] > symbol", page)) {
      if (!byId(symbol.id)) first("svg[hidden]").append(symbol);
    }
    scrollBy({ top: root.scrollHeight - height, behavior: "instant" });
  });

  // A replay goes on by itself: ten times as fast as it was, but so that it can be read.
  if (first("[data-play=on]")) {
    const next = first("a[rel=next]");
    const took = Number(first("[data-took]")?.dataset.took ?? 0);
    if (next) setTimeout(() => location.replace(next.href + "&play=1"), Math.min(Math.max(took / 10, 2000), 10000));
  }

  // A session while it is written: whole messages come by their ids, as the page has them.
  const box = first("#messages[data-live]");
  const bar = first(".live");
  if (box && bar) {
    const button = name => bar.querySelector(`[data-live-key=${name}]`);
    const isEnd = () => scrollY + innerHeight > root.scrollHeight - 120;
    const isOwn = one => one.id.startsWith("m-");
    let stream, last, timer, paused = false, notes = false, gone = false, missed = 0, turn = Promise.resolve();

    function say() {
      bar.hidden = false;
      bar.querySelector("b").textContent = gone ? "Deleted" : "Live";
      bar.querySelector(".live-dot").hidden = gone;
      bar.querySelector(".live-news").textContent = gone ? "" : paused ? ": paused" : missed ? `: ${missed} new` : "";
      button("newest").hidden = !missed;
    }
    function newest() {
      missed = 0;
      scrollTo({ top: root.scrollHeight, behavior: "instant" });
      say();
    }
    // What stands between two messages belongs to the second.
    function clear(one, side) {
      while (one[side] && !isOwn(one[side])) one[side].remove();
    }
    function put({ html, end, behind, outline = "", ticks = "" }) {
      const shelf = document.createElement("template");
      shelf.innerHTML = html;
      const parts = [...shelf.content.children];
      const article = parts.find(isOwn);
      const old = byId(article.id);
      const place = old ?? byId(behind);
      // It stands before what the page shows.
      if (!place && box.firstElementChild) return;
      if (place) clear(place, "nextElementSibling");
      if (old) {
        clear(old, "previousElementSibling");
        const folds = all("details", article);
        all("details", old).forEach((fold, at) => { if (folds[at]) folds[at].open = fold.open; });
        const has = old.contains(document.activeElement);
        old.replaceWith(...parts);
        if (has) article.focus({ preventScroll: true });
      } else {
        if (place) place.after(...parts);
        else box.append(...parts);
        missed += 1;
      }
      if (end) article.insertAdjacentHTML("afterend", end);
      mapped(article.id, ticks);
      outlined(outline);
    }
    const of = (selector, id) => all(selector).filter(one => one.dataset.m === id);
    // The turn of a message in the outline: what is there already is replaced.
    function outlined(html) {
      const list = first(".outline");
      const shelf = document.createElement("template");
      shelf.innerHTML = html;
      for (const item of [...shelf.content.children]) {
        const old = of(".outline > li", item.dataset.m).find(one => one.className === item.className);
        if (old) old.replaceWith(item);
        // A prompt that stands before what the page shows is not in its outline.
        else if (byId(item.dataset.m)) list.append(item);
      }
      counted();
    }
    function counted() {
      const count = all(".outline > li > a").length;
      first(".rail h2 .num").textContent = count;
      first(".rail .count").textContent = count === 1 ? "1 prompt" : `${count} prompts`;
    }
    // The ticks of a message, in the place of those that it had; the oldest go when there are too many.
    function mapped(id, html) {
      const map = first(".trace-map");
      const old = of(".trace-map > a", id);
      const next = old.at(-1)?.nextSibling;
      old.forEach(one => one.remove());
      if (next) next.insertAdjacentHTML("beforebegin", html);
      else map.insertAdjacentHTML("beforeend", html);
      const links = [...map.children];
      links.splice(0, links.length - 120).forEach(one => one.remove());
      links.forEach((one, at) => one.setAttribute("transform", `translate(${at * 7})`));
      map.setAttribute("width", links.length * 7);
      map.setAttribute("viewBox", `0 0 ${links.length * 7} 24`);
    }
    async function take(kind, data) {
      const follows = isEnd();
      if (kind === "message") put(data);
      else if (kind === "removed") {
        for (const id of data.anchors) {
          const one = byId(id);
          if (one) { clear(one, "previousElementSibling"); one.remove(); }
          of(".outline > li", id).forEach(item => item.remove());
          mapped(id, "");
        }
        counted();
      } else {
        const answer = await fetch(location.pathname + location.search);
        if (!answer.ok) return;
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const part of ["#messages", ".outline", ".trace-map"]) first(part).replaceChildren(...page.querySelector(part).childNodes);
        mapped("", "");
        counted();
      }
      if (follows) newest();
      else say();
      if (notes) tell(data.ended);
    }
    // Says that the agent waits or is done, to somebody who looks elsewhere.
    function tell(ended) {
      const show = text => { if (document.hidden) new Notification(document.title, { body: text, tag: location.pathname }); };
      clearTimeout(timer);
      if (box.lastElementChild?.querySelector(".tool-wait")) show("waits for you");
      else timer = setTimeout(show, ended ? 0 : 60000, "has finished");
    }
    function connect() {
      stream?.close();
      stream = null;
      if (paused || (document.hidden && !notes)) return;
      stream = new EventSource(last ? box.dataset.live.replace(/after=.*/, "after=" + last) : box.dataset.live);
      for (const kind of ["message", "removed", "reset"]) {
        stream.addEventListener(kind, event => {
          last = event.lastEventId || last;
          const data = JSON.parse(event.data);
          turn = turn.then(() => take(kind, data)).catch(() => location.reload());
        });
      }
      // The browser comes back by itself, unless the server has refused it.
      stream.onerror = async ({ target }) => {
        if (target.readyState !== EventSource.CLOSED || target !== stream) return;
        const answer = await fetch(location.pathname, { method: "HEAD" }).catch(() => null);
        gone = answer?.status === 410 || answer?.status === 404;
        if (gone) say();
        else setTimeout(connect, 5000);
      };
    }
    bar.addEventListener("click", async event => {
      const key = event.target.dataset.liveKey;
      if (key === "newest") newest();
      if (key === "pause") { paused = !paused; connect(); say(); }
      if (key === "notify") { notes = !notes && await Notification.requestPermission() === "granted"; }
      event.target.setAttribute("aria-pressed", key === "pause" ? paused : notes);
    });
    document.addEventListener("visibilitychange", connect);
    connect();
  }

  // The list of sessions while it changes.
  const running = first(".running[data-live]");
  if (running) {
    const rows = id => all("[data-session]").filter(one => one.dataset.session === id);
    const count = () => {
      const runs = all(".run", running).length;
      running.hidden = !runs;
      running.querySelector(".meta").textContent = runs;
    };
    const stream = new EventSource(running.dataset.live);
    stream.addEventListener("message", event => {
      const { id, html, run } = JSON.parse(event.data);
      rows(id).filter(one => one.closest(".run")).forEach(one => one.remove());
      if (run) running.insertAdjacentHTML("beforeend", run);
      const row = rows(id).find(one => one.closest(".row"));
      if (row) row.outerHTML = html;
      else if (!location.search) first(".day > ol")?.insertAdjacentHTML("afterbegin", html);
      count();
    });
    stream.addEventListener("removed", event => { JSON.parse(event.data).ids.flatMap(rows).forEach(one => one.remove()); count(); });
    stream.addEventListener("reset", () => location.reload());
  }

  let waiting = false;
  addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; moved(inView()); });
  }, { passive: true });
  const target = named(location.hash.slice(1))?.closest(".msg");
  // A message of another page: its anchor is its record with another sign for the encoded characters.
  if (!target && location.hash.startsWith("#m-") && !/[?&]at=/.test(location.search) && byId("messages")) {
    const there = location.pathname + "?at=" + location.hash.slice(3).replaceAll(":", "%");
    fetch(there).then(answer => { if (answer.ok) location.replace(there + location.hash); });
  }
  if (location.hash) go(target);
  else moved(inView());
});
