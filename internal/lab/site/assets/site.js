"use strict";
// The search and the selector of versions. Without this script the pages and the navigation work.
(() => {
  const here = document.body.dataset;

  // words splits a text into the words by which it is found.
  const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];

  // searchFor returns the sections that have a word that begins with each word of the query, the
  // best first: words of a heading count more than words of the text, and whole words more than
  // beginnings.
  function searchFor(query) {
    const wanted = words(query);
    if (!wanted.length || !window.siteIndex) return [];
    const found = [];
    for (const section of window.siteIndex) {
      section.words ||= { h: words(section.h), t: words(section.t), x: words(section.x) };
      let score = 0;
      const all = wanted.every((w) => {
        const points = count(section.words.h, w) * 20 + count(section.words.t, w) * 8 +
          Math.min(count(section.words.x, w), 12);
        score += points;
        return points > 0;
      });
      if (!all) continue;
      const whole = query.trim().toLowerCase();
      if (section.h.toLowerCase() === whole) score += 200;
      if (wanted.length > 1 && section.x.toLowerCase().includes(whole)) score += 30;
      // A short section about a word is better than a long one that names it.
      found.push({ section, score: score / (1 + Math.log10(1 + section.words.x.length / 200)) });
    }
    found.sort((a, b) => b.score - a.score);
    return found.slice(0, 20).map((f) => f.section);
  }

  function count(list, word) {
    let sum = 0;
    for (const w of list) if (w === word) sum += 2; else if (w.startsWith(word)) sum += 1;
    return sum;
  }

  // excerpt returns a part of the text around the first word, with the words marked.
  function excerpt(text, wanted) {
    const low = text.toLowerCase();
    const at = Math.max(0, ...wanted.map((w) => low.indexOf(w)));
    const from = Math.max(0, text.lastIndexOf(" ", Math.max(0, at - 60)) + 1);
    const part = (from ? "… " : "") + text.slice(from, from + 180) + (text.length > from + 180 ? " …" : "");
    const p = document.createElement("p");
    const pattern = new RegExp("(" + wanted.map((w) => w.replace(/[^\p{L}\p{N}_]/gu, "")).join("|") + ")", "giu");
    for (const [i, piece] of part.split(pattern).entries()) {
      p.append(i % 2 ? Object.assign(document.createElement("mark"), { textContent: piece }) : piece);
    }
    return p;
  }

  const box = document.getElementById("search"), query = document.getElementById("query");
  const results = document.getElementById("results");
  box.hidden = false;

  let loading = null;
  // The index is a script, since a page that is a file may not read other files.
  function load() {
    loading ||= new Promise((done) => {
      const script = document.createElement("script");
      script.src = "index.js";
      script.onload = done;
      document.head.append(script);
    });
    return loading;
  }

  async function show() {
    await load();
    const wanted = words(query.value);
    results.replaceChildren(...searchFor(query.value).map((s) => {
      const li = document.createElement("li"), a = document.createElement("a");
      a.href = s.p + "#" + s.a;
      a.textContent = s.h === s.t ? s.t : s.t + ": " + s.h;
      a.addEventListener("click", () => { results.hidden = true; });
      li.append(a, excerpt(s.x, wanted));
      return li;
    }));
    if (!results.children.length && wanted.length) {
      const li = document.createElement("li");
      li.textContent = "nothing is found";
      results.append(li);
    }
    results.hidden = !wanted.length;
  }

  query.addEventListener("focus", load);
  query.addEventListener("input", show);
  document.addEventListener("keydown", (e) => {
    const typing = /^(input|select|textarea)$/i.test(document.activeElement.tagName);
    if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
      e.preventDefault();
      query.focus();
    } else if (e.key === "Escape") {
      results.hidden = true;
    } else if ((e.key === "ArrowDown" || e.key === "ArrowUp") && box.contains(document.activeElement)) {
      const all = [query, ...results.querySelectorAll("a")];
      const next = all[all.indexOf(document.activeElement) + (e.key === "ArrowDown" ? 1 : -1)];
      if (next) { e.preventDefault(); next.focus(); }
    } else if (e.key === "Enter" && document.activeElement === query) {
      results.querySelector("a")?.click();
    }
  });
  document.addEventListener("click", (e) => { if (!box.contains(e.target)) results.hidden = true; });

  const versions = window.siteVersions || [];
  if (versions.length > 1) {
    const label = document.getElementById("versions"), select = label.querySelector("select");
    for (const v of versions) select.append(new Option(v.name, v.name, false, v.name === here.version));
    select.addEventListener("change", () => {
      const to = versions.find((v) => v.name === select.value);
      const page = to.pages.includes(here.file) ? here.file : "index.html";
      location.href = "../" + to.name + "/" + page;
    });
    label.hidden = false;
  }

  if (matchMedia("(max-width: 56rem)").matches) document.querySelector("nav details").open = false;

  window.site = { searchFor: async (text) => { await load(); return searchFor(text); } };
})();
