"use strict";
// Fetches this page every two seconds and applies the differences, node by node. So the focus, the selection and what is being typed (a value, not an attribute) stay.
(() => {
  const pulse = document.getElementById("pulse"), search = document.getElementById("search");
  let running = null, again = 0, told = document.getElementById("findings").dataset.state;

  const keyOf = n => n.nodeType === 1 ? n.getAttribute("data-k") || n.id : "";

  // morph makes a equal to b, and consumes b.
  const morph = (a, b) => {
    if (a.nodeType !== b.nodeType || a.nodeName !== b.nodeName || keyOf(a) !== keyOf(b)) return a.replaceWith(b);
    if (a.nodeType !== 1) { if (a.data !== b.data) a.data = b.data; return; }
    for (const {name, value} of b.attributes) if (a.getAttribute(name) !== value) a.setAttribute(name, value);
    for (const {name} of [...a.attributes]) if (!b.hasAttribute(name)) a.removeAttribute(name);
    children(a, b);
  };

  const children = (a, b) => {
    const wanted = new Set([...b.childNodes].map(keyOf).filter(k => k));
    for (const n of [...a.childNodes]) if (keyOf(n) && !wanted.has(keyOf(n))) n.remove();
    let at = a.firstChild;
    for (const n of [...b.childNodes]) {
      const k = keyOf(n);
      const same = k ? [...a.childNodes].find(o => keyOf(o) === k) : at;
      if (!same || !k && keyOf(same)) { a.insertBefore(n, at); continue; }
      if (same !== at) { a.insertBefore(same, at); at = same; }
      at = at.nextSibling;
      morph(same, n);
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next; }
  };

  // announce reads the findings to a screen reader when they have changed, but not when only a time in them has.
  const announce = () => {
    const found = document.getElementById("findings");
    if (found.dataset.state === told) return;
    told = found.dataset.state;
    document.getElementById("announce").textContent = [...found.querySelectorAll(".what")].map(p => p.textContent).join(" ");
  };

  const refresh = async () => {
    clearTimeout(again);
    if (running) running.abort();
    const mine = running = new AbortController();
    const limit = setTimeout(() => mine.abort(), 8000);
    try {
      const answer = await fetch(location.href, {signal: mine.signal, cache: "no-store", credentials: "same-origin"});
      if (!answer.ok) throw new Error(answer.status);
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (running !== mine) return;
      for (const id of ["content", "at"]) morph(document.getElementById(id), next.getElementById(id));
      morph(document.querySelector(".about"), next.querySelector(".about"));
      document.title = next.title;
      announce();
      pulse.textContent = "live"; pulse.className = "";
    } catch (e) {
      if (running !== mine) return;
      pulse.textContent = "no answer; this is as of"; pulse.className = "lost";
    } finally {
      clearTimeout(limit);
      if (running === mine) { running = null; if (!document.hidden) again = setTimeout(refresh, 2000); }
    }
  };

  search.addEventListener("input", () => {
    const asked = [...new FormData(search)].filter(([, value]) => value);
    history.replaceState(null, "", asked.length ? "?" + new URLSearchParams(asked) : location.pathname);
    clearTimeout(again);
    again = setTimeout(refresh, 250);
  });
  // Copying needs a permission that a page without TLS does not have. Then the command stays selected.
  const copy = async (button) => {
    const code = button.parentElement.querySelector("code");
    let copied = false;
    try {
      await navigator.clipboard.writeText(code.textContent);
      copied = true;
    } catch {
      getSelection().selectAllChildren(code);
      copied = document.execCommand("copy");
    }
    button.textContent = copied ? "Copied" : "Selected";
    document.getElementById("announce").textContent = copied ? "Copied." : "The command is selected. Copy it with the keyboard.";
  };
  document.addEventListener("click", e => { const button = e.target.closest(".command button"); if (button) copy(button); });
  document.documentElement.classList.add("scripted");

  document.addEventListener("visibilitychange", () => document.hidden ? clearTimeout(again) : refresh());
  pulse.textContent = "live";
  again = setTimeout(refresh, 2000);
})();
