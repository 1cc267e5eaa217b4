// Badges, tabs, regions and colours of the pages of `drill read`. No network, works from file://.
"use strict";

// ---- light and dark

const root = document.documentElement;

function storedTheme() {
  try { return localStorage.getItem("drill-theme"); } catch (ignored) { return null; }
}

function isDark() {
  if (root.dataset.theme) return root.dataset.theme === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

if (storedTheme()) root.dataset.theme = storedTheme();
document.getElementById("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("drill-theme", root.dataset.theme); } catch (ignored) { /* private */ }
});

// On a phone the names of the pages stand in one line that scrolls.
const here = document.querySelector("nav [aria-current]");
if (here) here.scrollIntoView({ block: "nearest", inline: "center" });

// ---- tabs

const tabs = [...document.querySelectorAll("[role=tab]")];

function selectTab(tab) {
  for (const one of tabs) {
    const selected = one === tab;
    one.setAttribute("aria-selected", String(selected));
    one.tabIndex = selected ? 0 : -1;
    document.getElementById(one.getAttribute("aria-controls")).hidden = !selected;
  }
}

for (const tab of tabs) {
  tab.addEventListener("click", () => selectTab(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
    selectTab(next);
    next.focus();
    event.preventDefault();
  });
}

// ---- regions: a badge shows the code, the code shows who speaks of it

let cameFrom = null;  // the badge that was followed; Escape leads back

function clearLight() {
  for (const lit of document.querySelectorAll(".lit")) lit.classList.remove("lit");
}

// The paragraphs that cite the region light up; their sections are listed above the code.
function showParagraphs(label) {
  const spoken = document.getElementById("spoken");
  const paragraphs = [...document.querySelectorAll("[data-cites]")].filter(
    (paragraph) => paragraph.dataset.cites.split(" ").includes(label));
  spoken.textContent = label + ": ";
  for (const paragraph of paragraphs) {
    paragraph.classList.add("lit");
    let heading = paragraph;
    while (heading && !/^H[1-6]$/.test(heading.tagName)) heading = heading.previousElementSibling;
    if (!heading) continue;
    const link = document.createElement("a");
    link.href = "#" + heading.id;
    link.textContent = heading.textContent;
    spoken.append(link, " ");
  }
}

function lightRegion(label) {
  clearLight();
  for (const region of document.querySelectorAll(".region")) {
    region.classList.toggle("lit", region.dataset.region === label);
  }
  showParagraphs(label);
}

// In the tab that is open if the region is there and not folded, else in mine, else in the contract.
function showRegion(label) {
  const open = tabs.find((tab) => tab.getAttribute("aria-selected") === "true");
  for (const tab of [open, ...tabs]) {
    const name = tab.id.slice("tab-".length);
    const region = document.getElementById(name + "-" + label);
    const fold = document.getElementById("fold");
    if (!region || (fold.contains(region) && !fold.open)) continue;
    selectTab(tab);
    lightRegion(label);
    region.scrollIntoView({ block: "center" });
    region.focus({ preventScroll: true });
    return;
  }
  lightRegion(label);
  document.getElementById("spoken").append("(the markers are gone from your file; the solution has it)");
}

for (const badge of document.querySelectorAll("a.badge")) {
  badge.addEventListener("click", (event) => {
    if (!badge.getAttribute("href").startsWith("#")) return;  // of another page
    event.preventDefault();
    cameFrom = badge;
    showRegion(badge.dataset.region);
  });
}

for (const region of document.querySelectorAll(".region")) {
  for (const kind of ["mouseenter", "focus"]) {
    region.addEventListener(kind, () => lightRegion(region.dataset.region));
  }
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !cameFrom) return;
  clearLight();
  cameFrom.focus();
  cameFrom.scrollIntoView({ block: "center" });
  cameFrom = null;
});

if (location.hash.startsWith("#region-") && tabs.length > 0) {
  showRegion(location.hash.slice("#region-".length));
}
