"use strict";
// The pages work without this script: links lead to what it loads. It adds windows of records that load while one
// scrolls, records as they are written, keys, and search as one types. All markup comes from turnlog's own server.

const talk = document.getElementById("talk");
const searchBox = document.querySelector("input[data-hits]");
const root = document.body.dataset.root ?? "";
const MOST_NODES = 2000;
const CLOSE = 240; // pixels: so near to its end a page follows what is written

// -- fetching ---------------------------------------------------------------------------------------

async function get(url, options) {
  const answer = await fetch(url, options);
  if (answer.status === 403) {
    tell("The key to these pages is no longer valid: open the address that turnlog serve prints.");
  }
  if (!answer.ok) {
    throw new Error(`${url}: ${answer.status}`);
  }
  return answer.text();
}

function markup(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html; // a fragment that our own server escaped
  return holder.content;
}

function make(name, attributes, ...inside) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  element.append(...inside);
  return element;
}

const lazy = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) {
      lazy.unobserve(target);
      fill(target);
    }
  }
}, { rootMargin: "200px" });

async function fill(target) {
  target.setAttribute("aria-busy", "true");
  try {
    const content = markup(await get(target.dataset.load));
    lookForLater(content);
    target.replaceChildren(content);
    const current = target.querySelector("[aria-current]");
    if (current) {
      target.scrollTop = current.offsetTop - target.clientHeight / 2;
    }
  } catch {
    target.append(make("p", { class: "small" }, "This could not be loaded."));
  }
  target.removeAttribute("aria-busy");
  target.dataset.loaded = "";
}

function lookForLater(root) {
  for (const each of root.querySelectorAll("[data-load]")) {
    lazy.observe(each);
  }
}

// -- notices: one line at the lower edge, with what to do -------------------------------------------

const notices = make("div", { class: "notices", role: "status" });
document.body.append(notices);

function tell(words, act) {
  const button = make("button", { type: "button" }, words);
  button.addEventListener("click", () => {
    notices.replaceChildren();
    act();
  });
  notices.replaceChildren(act ? button : words);
}

// -- windows of records -----------------------------------------------------------------------------

const earlier = document.querySelector("a.earlier");
const later = document.querySelector("a.later");
let loading = false;

const range = () => ({ first: +talk.dataset.first, last: +talk.dataset.last, end: +talk.dataset.end });

function setRange(first, last, end) {
  Object.assign(talk.dataset, { first, last, end });
  const page = location.pathname;
  earlier.hidden = first <= 1;
  earlier.href = `${page}?at=${Math.max(1, first - 1)}`;
  later.hidden = last >= end;
  later.href = `${page}?at=${Math.min(end, last + 1)}`;
}

const numberOf = (element) => Number(element.id.slice(1));

// What is on the screen stays where it is while `change` adds or removes elements above it.
function inPlace(change) {
  const anchor = [...talk.children].find((each) => each.getBoundingClientRect().bottom > 0);
  const before = anchor ? anchor.getBoundingClientRect().top : 0;
  change();
  if (anchor && anchor.isConnected) {
    scrollBy(0, anchor.getBoundingClientRect().top - before);
  }
}

// Removes records from one end, never what is on the screen, until the document is small enough.
function trim(fromStart) {
  let nodes = document.getElementsByTagName("*").length;
  while (nodes > MOST_NODES && talk.children.length > 1) {
    const far = fromStart ? talk.firstElementChild : talk.lastElementChild;
    const place = far.getBoundingClientRect();
    if (fromStart ? place.bottom > -innerHeight : place.top < 2 * innerHeight) {
      break;
    }
    nodes -= far.getElementsByTagName("*").length + 1;
    far.remove();
  }
}

async function load(back) {
  const { first, last } = range();
  if (loading || (back ? earlier.hidden : later.hidden)) {
    return;
  }
  loading = true;
  try {
    const query = back ? `?before=${first}` : `?from=${last + 1}`;
    const part = markup(await get(talk.dataset.more + query)).firstElementChild;
    const records = [...part.children];
    lookForLater(part);
    inPlace(() => {
      talk[back ? "prepend" : "append"](...records);
      trim(!back);
    });
    const ends = records.length ? [talk.firstElementChild, talk.lastElementChild].map(numberOf) : [first, last];
    setRange(ends[0], ends[1], Math.max(Number(part.dataset.end), range().end));
  } catch {
    tell("The records could not be loaded.", () => load(back));
  }
  loading = false;
  watchEdges();
}

const edges = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) {
      load(target === earlier);
    }
  }
}, { rootMargin: "800px" });

// An observer speaks only of changes: what is still in view after loading is asked again.
function watchEdges() {
  for (const edge of [earlier, later]) {
    edges.unobserve(edge);
    edges.observe(edge);
  }
}

// -- live -------------------------------------------------------------------------------------------

let source = null;
let unseen = 0;

function connect(url, events) {
  const open = () => {
    source = new EventSource(url());
    for (const [name, take] of Object.entries(events)) {
      source.addEventListener(name, (event) => take(JSON.parse(event.data)));
    }
  };
  // A browser has six connections to a server: a page that nobody sees gives its one back.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source.close();
    } else if (source.readyState === EventSource.CLOSED) {
      open();
    }
  });
  addEventListener("pagehide", () => source.close());
  open();
}

function replaced(old, fresh) {
  const folds = [...old.querySelectorAll("details")];
  for (const [index, each] of [...fresh.querySelectorAll("details")].entries()) {
    each.open = each.open || Boolean(folds[index]?.open);
  }
  old.replaceWith(fresh);
}

function take({ last: newest, html, more }) {
  const { first, last, end } = range();
  if (newest < end) {
    tell("This session was written anew.", () => location.reload());
    return;
  }
  const isWhole = last >= end && !more;
  const wasAtEnd = innerHeight + scrollY > document.documentElement.scrollHeight - CLOSE;
  const fresh = html.map((each) => markup(each).firstElementChild);
  inPlace(() => {
    for (const each of fresh) {
      lookForLater(each);
      const old = document.getElementById(each.id);
      if (old) {
        replaced(old, each);
      } else if (isWhole) {
        talk.append(each);
      }
    }
  });
  setRange(first, isWhole ? newest : last, newest);
  if (isWhole && wasAtEnd) {
    scrollTo(0, document.documentElement.scrollHeight);
    inPlace(() => trim(true));
    setRange(numberOf(talk.firstElementChild), newest, newest);
  } else if (newest > end) {
    unseen += newest - end;
    tell(`${unseen} new ${unseen === 1 ? "record" : "records"}`, () => go(newest));
  }
  refreshSides(more || fresh.some((each) => each.querySelector("article.user")));
}

let refreshing = 0;

function refreshSides(hasPrompt) {
  const [rail, aside] = [document.querySelector(".rail[data-load]"), document.querySelector("aside[data-load]")];
  if (hasPrompt && rail) {
    fill(rail);
  }
  if (!refreshing && aside) {
    refreshing = setTimeout(() => {
      refreshing = 0;
      lazy.observe(aside);
    }, 5000);
  }
}

// -- going to a record ------------------------------------------------------------------------------

function go(n) {
  const element = document.getElementById(`r${n}`);
  if (!element) {
    location.assign(`${location.pathname}?at=${n}#r${n}`);
    return;
  }
  history.replaceState(null, "", `${location.pathname}?at=${n}#r${n}`);
  element.scrollIntoView();
  element.tabIndex = -1;
  element.focus({ preventScroll: true });
  document.querySelector(".rail [aria-current]")?.removeAttribute("aria-current");
  document.querySelector(`.rail a[data-n="${n}"]`)?.setAttribute("aria-current", "true");
}

function step(forward) {
  const shown = [...talk.children].find((each) => each.getBoundingClientRect().bottom > 40);
  const here = shown ? numberOf(shown) : 0;
  const prompts = [...document.querySelectorAll(".rail a[data-n]")].map((each) => Number(each.dataset.n));
  const next = forward ? prompts.find((n) => n > here) : prompts.filter((n) => n < here).pop();
  if (next) {
    go(next);
  }
}

// -- search -----------------------------------------------------------------------------------------

function searching(input, results, address) {
  let [asked, waiting, opens] = [null, 0, false]; // opens: Enter came before the answer
  const open = () => results.querySelector("li a")?.click(); // a hit, not the heading above it
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    asked?.abort();
    opens = false;
    results.setAttribute("aria-busy", "true");
    waiting = setTimeout(async () => {
      asked = new AbortController();
      const [words, signal] = [encodeURIComponent(input.value.trim()), asked.signal];
      const found = words ? await get(`${address}?q=${words}`, { signal }).catch(() => "The search failed.") : "";
      if (!signal.aborted) {
        results.replaceChildren(markup(found));
        results.removeAttribute("aria-busy");
        opens && open();
      }
    }, 140);
  });
  for (const part of [input, results]) {
    part.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target === input && !input.form) {
        (opens = results.hasAttribute("aria-busy")) || open();
      }
      const links = [...results.querySelectorAll("a")];
      const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!down || !links.length) {
        return;
      }
      event.preventDefault();
      const next = links.indexOf(document.activeElement) + down;
      (next < 0 ? input : links[Math.min(next, links.length - 1)]).focus();
    });
  }
}

let palette = null;

function openPalette() {
  if (!palette) {
    const input = make("input", { "aria-label": "Search all sessions", autocomplete: "off" });
    const results = make("div", { class: "hits", "aria-live": "polite" });
    const hint = make("p", { class: "small" }, "↑ ↓ choose, Enter opens, Esc closes. On a session: j k next and " +
      "previous prompt, g G first and last record.");
    palette = make("dialog", { class: "palette", "aria-label": "Search" }, input, results, hint);
    searching(input, results, `${root}/hits`);
    palette.addEventListener("click", (event) => event.target === palette && palette.close());
    document.body.append(palette);
  }
  if (!palette.open) {
    palette.showModal();
    palette.querySelector("input").select();
  }
}

// -- keys and clicks --------------------------------------------------------------------------------

const KEYS = {
  j: () => talk && step(true),
  k: () => talk && step(false),
  g: () => talk && go(1),
  G: () => talk && go(range().end),
  "/": () => (searchBox ? searchBox.focus() : openPalette()),
};

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
  } else if (!event.ctrlKey && !event.metaKey && !event.altKey && !palette?.open && Object.hasOwn(KEYS, event.key)) {
    if (!event.target.closest("input, textarea, select, [contenteditable]")) {
      event.preventDefault();
      KEYS[event.key]();
    }
  }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-from]");
  const prompt = event.target.closest(".rail a[data-n]");
  if (button) {
    const words = button.textContent;
    let said = "Copied";
    try {
      const from = button.dataset.copyFrom;
      await navigator.clipboard.writeText(from ? await get(from) : button.dataset.copy);
    } catch {
      said = "Could not be copied";
    }
    button.textContent = said;
    setTimeout(() => (button.textContent = words), 1500);
  } else if (prompt && !event.ctrlKey && !event.metaKey && document.getElementById(`r${prompt.dataset.n}`)) {
    event.preventDefault();
    go(Number(prompt.dataset.n));
  }
});

// -- this page --------------------------------------------------------------------------------------

lookForLater(document);
if (talk?.dataset.live) {
  document.documentElement.style.overflowAnchor = "none"; // `inPlace` does it, in every browser alike
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
  watchEdges();
  connect(() => `${talk.dataset.live}?after=${talk.dataset.end}`, {
    records: take,
    gone: () => [source.close(), tell("This session was deleted.")],
    failed: ({ message }) => [source.close(), tell(message)],
  });
  addEventListener("scroll", () => {
    if (unseen && !later.getClientRects().length && talk.getBoundingClientRect().bottom < innerHeight + CLOSE) {
      unseen = 0;
      notices.replaceChildren();
    }
  }, { passive: true });
}
if (searchBox) {
  const results = document.getElementById(searchBox.getAttribute("aria-controls") ?? "hits");
  if (results) {
    searching(searchBox, results, searchBox.dataset.hits);
  }
  connect(() => `${root}/live`, {
    sessions: ({ count }) => tell(`${count} session${count === 1 ? "" : "s"} changed: show`, () => location.reload()),
  });
}
setTimeout(() => document.querySelector("body:focus-within, body:not(:has([data-again]))") || location.reload(), 1500);
