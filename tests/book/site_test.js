// Looks at every page of the site in a frame: badges, tabs, folds, steppers, links, keyboard,
// contrast in light and dark, width of a phone. book_test writes the page that loads this, with the
// list PAGES; what is found stands in <pre id="result">.
"use strict";

const failures = [];
let checks = 0;

function expect(condition, what) {
  checks += 1;
  if (!condition) failures.push(what);
}

function load(url, width) {
  return new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.width = width;
    frame.height = 900;
    frame.addEventListener("load", () => resolve(frame));
    frame.src = url;
    document.body.append(frame);
  });
}

// ---- contrast, as WCAG has it

function channels(color) {
  const numbers = color.match(/[\d.]+/g).map(Number);
  return { rgb: numbers.slice(0, 3), alpha: numbers.length > 3 ? numbers[3] : 1 };
}

function luminance(rgb) {
  const [r, g, b] = rgb.map((c) => {
    const s = c / 255;
    return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

function backgroundOf(element, view) {
  for (let at = element; at; at = at.parentElement) {
    const { rgb, alpha } = channels(view.getComputedStyle(at).backgroundColor);
    if (alpha === 1) return rgb;
  }
  return [255, 255, 255];
}

function checkContrast(doc, view, page) {
  for (const theme of ["light", "dark"]) {
    doc.documentElement.dataset.theme = theme;
    const seen = new Set();
    for (const element of doc.body.querySelectorAll("*")) {
      if (element.closest("svg") || !element.checkVisibility()) continue;
      const hasText = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
      if (!hasText || element.disabled) continue;
      const ink = channels(view.getComputedStyle(element).color).rgb;
      const paper = backgroundOf(element, view);
      const pair = ink + " on " + paper;
      if (seen.has(pair)) continue;
      seen.add(pair);
      expect(contrast(ink, paper) >= 4.5,
             `${page} ${theme}: contrast of "${element.textContent.slice(0, 20)}" is ${pair}`);
    }
    for (const svg of doc.querySelectorAll("svg.fig")) {
      for (const text of svg.querySelectorAll("text")) {
        const ink = channels(view.getComputedStyle(text).fill).rgb;
        const box = [...svg.querySelectorAll("rect")].find((rect) => rect.parentNode === svg);
        const paper = box ? view.getComputedStyle(box).fill : "rgb(255,255,255)";
        const around = backgroundOf(svg.parentElement, view);
        expect(contrast(ink, around) >= 4.5, `${page} ${theme}: figure text on the page`);
        if (paper.startsWith("rgb")) {
          expect(contrast(ink, channels(paper).rgb) >= 4.5, `${page} ${theme}: figure text in a box`);
        }
        break;
      }
    }
  }
  delete doc.documentElement.dataset.theme;
}

// ---- badges, tabs, regions

function checkTabs(doc, view, page) {
  const tabs = [...doc.querySelectorAll("[role=tab]")];
  expect(tabs.length === 3, `${page}: three tabs`);
  for (const tab of tabs) {
    tab.click();
    const shown = [...doc.querySelectorAll("[role=tabpanel]")].filter((panel) => !panel.hidden);
    expect(shown.length === 1 && shown[0].id === tab.getAttribute("aria-controls"),
           `${page}: tab ${tab.textContent} shows its panel`);
    expect(shown[0].querySelectorAll(".line").length > 20, `${page}: ${tab.textContent} has code`);
  }
  tabs[0].click();
  tabs[0].dispatchEvent(new view.KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  expect(doc.activeElement === tabs[1], `${page}: the right arrow moves to the next tab`);
  tabs[0].click();
  expect(!doc.getElementById("fold").open, `${page}: the solution is folded`);
}

function checkBadges(doc, view, page) {
  const badges = [...doc.querySelectorAll("a.badge")];
  expect(badges.length > 0, `${page}: has badges`);
  for (const badge of badges) {
    const label = badge.dataset.region;
    if (!badge.getAttribute("href").startsWith("#")) continue;  // checked as a link
    for (const fold of [false, true]) {
      doc.getElementById("fold").open = fold;
      doc.getElementById(fold ? "tab-solution" : "tab-mine").click();
      badge.click();
      const lit = [...doc.querySelectorAll(".region.lit")].filter((r) => r.checkVisibility());
      expect(lit.length === 1 && lit[0].dataset.region === label, `${page}: badge ${label} lights up`);
      expect(doc.activeElement === lit[0], `${page}: badge ${label} moves the focus`);
      const box = lit[0] ? lit[0].getBoundingClientRect() : { top: -1, bottom: -1 };
      expect(box.bottom > 0 && box.top < 900, `${page}: badge ${label} scrolls to the region`);
      expect(doc.querySelector("[data-cites].lit"), `${page}: ${label} marks its paragraph`);
      expect(doc.querySelectorAll("#spoken a").length > 0, `${page}: ${label} names its sections`);
      doc.dispatchEvent(new view.KeyboardEvent("keydown", { key: "Escape" }));
      expect(doc.activeElement === badge, `${page}: Escape leads back to badge ${label}`);
    }
  }
  doc.getElementById("fold").open = false;
}

function checkHover(doc, view, page) {
  doc.getElementById("tab-mine").click();
  for (const region of doc.querySelectorAll("#panel-mine .region")) {
    region.dispatchEvent(new view.MouseEvent("mouseenter"));
    const lit = [...doc.querySelectorAll("[data-cites].lit")];
    const label = region.dataset.region;
    expect(lit.length > 0 && lit.every((p) => p.dataset.cites.split(" ").includes(label)),
           `${page}: hovering ${label} lights the paragraphs that speak of it`);
  }
}

function checkVerdict(doc, view, page) {
  const verdict = doc.querySelector("aside .verdict");
  expect(verdict && /^\w+ .*\.\/drill m\d+$/.test(verdict.textContent.trim()),
         `${page}: the last verdict stands above the code`);
  const code = doc.getElementById("code");
  code.scrollTop = 2000;
  expect(!verdict || verdict.getBoundingClientRect().top >= 0, `${page}: the verdict stays in sight`);
  code.scrollTop = 0;
}

function checkSteppers(doc, view, page) {
  for (const figure of doc.querySelectorAll("figure[data-stepper]")) {
    const name = figure.dataset.stepper;
    const sentence = figure.querySelector("[aria-live]");
    const slider = figure.querySelector("input");
    const said = new Set([sentence.textContent]);
    if (slider) {
      for (let value = Number(slider.min); value <= Number(slider.max); ++value) {
        slider.value = value;
        slider.dispatchEvent(new view.Event("input"));
        said.add(sentence.textContent);
      }
      expect(said.size === Number(slider.max), `${page}: ${name} says something for each value`);
      slider.value = 2;
      slider.dispatchEvent(new view.Event("input"));
      expect(sentence.textContent.includes("A 5, W 8"), `${page}: ${name} counts as the note does`);
      continue;
    }
    const [back, next] = figure.querySelectorAll("button");
    expect(back.disabled, `${page}: ${name} starts at the start`);
    for (let step = 0; step < 100 && !next.disabled; ++step) {
      next.click();
      said.add(sentence.textContent);
    }
    const count = Number(sentence.textContent.split("/")[0]);
    expect(next.disabled && said.size === count, `${page}: ${name} goes through ${count} steps`);
    if (name === "barriers") {
      const parities = (who) => [...said].filter((text) => text.includes(who + ":"))
        .map((text) => text.match(/parity (\d)/)[1]).join(" ");
      expect(parities("producer") === "1 1 1 1 0 0 0", `${page}: the producer's parities`);
      expect(parities("consumers") === "0 0 0 0 1 1 1", `${page}: the consumers' parities`);
    }
    if (name === "scan") {
      const cells = [...figure.querySelectorAll("tr:last-child td")].map((cell) => cell.textContent);
      expect(cells.join(" ") === "0 4 7 8 1 2 6 8 3 5", `${page}: ${name} ends with the table`);
    }
    back.click();
    expect(!next.disabled, `${page}: ${name} goes back`);
  }
}

// ---- links

const idsOf = new Map();  // page -> ids

function exists(url) {
  const request = new XMLHttpRequest();
  try {
    request.open("GET", url, false);
    request.send();
    return true;
  } catch (ignored) {
    return false;
  }
}

function checkLinks(doc, page) {
  for (const link of doc.querySelectorAll("a[href]")) {
    const url = new URL(link.href);
    if (url.protocol !== "file:") continue;
    const file = url.href.split("#")[0];
    const anchor = decodeURIComponent(url.hash.slice(1));
    const ids = idsOf.get(file);
    if (!ids) {
      expect(exists(file), `${page}: nothing at ${link.getAttribute("href")}`);
      continue;
    }
    if (!anchor) continue;
    const id = anchor.startsWith("region-") ? "solution-" + anchor.slice(7) : anchor;
    expect(ids.has(id), `${page}: no place ${link.getAttribute("href")}`);
  }
}

async function main() {
  const frames = [];
  for (const page of PAGES) {
    const frame = await load(SITE + page, 1300);
    const ids = [...frame.contentDocument.querySelectorAll("[id]")].map((element) => element.id);
    idsOf.set(new URL(SITE + page).href, new Set(ids));
    expect(new Set(ids).size === ids.length, `${page}: an id stands twice`);
    frames.push([page, frame]);
  }
  for (const [page, frame] of frames) {
    const doc = frame.contentDocument;
    const view = frame.contentWindow;
    frame.contentWindow.focus();
    expect(doc.documentElement.lang === (page.startsWith("zh/") ? "zh" : "en"), `${page}: lang`);
    expect(doc.querySelectorAll("h1").length === 1, `${page}: one h1`);
    for (const image of doc.querySelectorAll("img")) expect(image.alt, `${page}: alt of ${image.src}`);
    for (const svg of doc.querySelectorAll("svg")) {
      expect(svg.getAttribute("aria-label"), `${page}: a figure has a text alternative`);
    }
    checkLinks(doc, page);
    checkSteppers(doc, view, page);
    if (doc.querySelector("aside")) {
      checkTabs(doc, view, page);
      checkBadges(doc, view, page);
      checkHover(doc, view, page);
      checkVerdict(doc, view, page);
    }
    checkContrast(doc, view, page);
    const phone = await load(SITE + page, 390);
    const root = phone.contentDocument.documentElement;
    expect(root.scrollWidth <= 390, `${page}: ${root.scrollWidth} wide on a phone`);
    phone.remove();
  }
  document.getElementById("result").textContent =
    `${failures.length} failures in ${checks} checks of ${PAGES.length} pages\n` + failures.join("\n");
}

main().catch((error) => {
  document.getElementById("result").textContent = "the test itself failed: " + error.stack;
});
