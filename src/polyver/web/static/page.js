"use strict";

// The server makes every page whole; this asks for it again when something has changed, and puts
// those parts in place that are different. Without it the page works, and is not live.

const shown = document.getElementById("live");
let stream = null;
let asking = null;

function tell(text, isOn) {
  shown.textContent = text;
  shown.classList.toggle("on", isOn);
}

async function refresh() {
  if (asking) asking.abort();
  const mine = (asking = new AbortController());
  try {
    const answer = await fetch(location.href, { signal: mine.signal });
    if (answer.redirected || answer.status === 401) return tell("not signed in", false);
    replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch (error) {
    if (error.name !== "AbortError") tell("not live", false);
  }
}

function replace(fresh) {
  document.title = fresh.title;
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(part.id);
    if (!other || other.innerHTML === plain(part)) continue;
    const open = [...part.querySelectorAll("details[open]")].map((each) => each.id);
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const href = focused && focused.getAttribute("href");
    part.replaceChildren(...[...other.childNodes].map((each) => document.importNode(each, true)));
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (href) [...part.querySelectorAll("a")].find((a) => a.getAttribute("href") === href)?.focus();
  }
}

// What is open was opened here, and is no difference.
function plain(part) {
  const copy = part.cloneNode(true);
  for (const each of copy.querySelectorAll("details[open]")) each.removeAttribute("open");
  return copy.innerHTML;
}

function listen() {
  stream = new EventSource("/events");
  stream.onopen = () => tell("live", true);
  stream.onmessage = refresh;
  stream.onerror = () => tell("not live", false);
}

function rest() {
  stream?.close();
  stream = null;
}

// Browsers open few connections to one host: a page that nobody sees needs none.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) rest();
  else if (!stream) listen();
});
addEventListener("pagehide", rest);
addEventListener("pageshow", (event) => {
  if (event.persisted && !stream) listen();
});

// Ages grow without any event.
setInterval(() => {
  if (!document.hidden && document.querySelector("[data-live] time[title]")) refresh();
}, 60000);

// Searching shows what is found while one writes.
let waiting = 0;
for (const form of document.querySelectorAll("form[role=search]")) {
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const address = new URL(form.action);
      for (const [name, value] of new FormData(form)) {
        if (value) address.searchParams.set(name, value);
      }
      history.replaceState(null, "", address);
      refresh();
    }, 200);
  });
}

document.addEventListener("keydown", (event) => {
  const field = document.querySelector("input[type=search]");
  const isWriting = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
  if (event.key === "/" && field && !isWriting && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    field.focus();
    field.select();
  }
});

listen();
