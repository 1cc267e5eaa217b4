// The figures that move: <figure data-stepper="NAME">. Each is a table, a sentence that a screen
// reader speaks, and controls that a keyboard reaches. All show the tiny example of the notes.
"use strict";

const chinese = document.documentElement.lang === "zh";
const say = (english, translated) => (chinese ? translated : english);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// rows: [label, [{text, style}]]
function tableOf(rows) {
  const table = element("table");
  for (const [label, cells] of rows) {
    const row = element("tr", {}, element("th", { scope: "row" }, label));
    for (const cell of cells) row.append(element("td", { class: cell.style || "" }, cell.text));
    table.append(row);
  }
  return table;
}

// Back and next through states; draw(step) returns {rows, sentence}.
function makeStepper(figure, count, draw) {
  const back = element("button", { type: "button" }, say("back", "上一步"));
  const next = element("button", { type: "button" }, say("next", "下一步"));
  const sentence = element("span", { "aria-live": "polite" });
  const place = element("div");
  let step = 0;
  const show = () => {
    const state = draw(step);
    place.replaceChildren(tableOf(state.rows));
    sentence.textContent = `${step + 1}/${count}  ${state.sentence}`;
    back.disabled = step === 0;
    next.disabled = step === count - 1;
  };
  back.addEventListener("click", () => { step -= 1; show(); });
  next.addEventListener("click", () => { step += 1; show(); });
  figure.append(element("div", { class: "controls" }, back, next, sentence), place);
  show();
}

// ---- m1: histogram, scan, scatter

const topkIds = [0, 1, 1, 2, 0, 2, 1, 0];
const blockM = 2;

function scanStepper(figure) {
  const counts = [0, 1, 2].map((e) => topkIds.filter((id) => id === e).length);
  const padded = counts.map((c) => Math.ceil(c / blockM) * blockM);
  const first = padded.map((_, e) => padded.slice(0, e).reduce((a, b) => a + b, 0));
  const rows = padded.reduce((a, b) => a + b, 0);
  const ids = topkIds.length;
  // Steps: one for each id counted, one for padding, one for the scan, one for each id placed.
  makeStepper(figure, 2 * ids + 2, (step) => {
    const counted = Math.min(step + 1, ids);
    const placed = Math.max(0, step - ids - 1);
    const partial = [0, 1, 2].map(
      (e) => topkIds.slice(0, counted).filter((id) => id === e).length);
    const cursor = [...first];
    const table = new Array(rows).fill(null);
    for (let id = 0; id < placed; ++id) table[cursor[topkIds[id]]++] = id;
    const now = step < ids ? step : placed > 0 ? placed - 1 : -1;
    const sentence =
      step < ids ? say(`count: id ${step} names expert ${topkIds[step]}`,
                       `计数：id ${step} 属于专家 ${topkIds[step]}`)
      : step === ids ? say("pad: every count rounded up to blocks of 2", "补齐：向上取整到每块 2 行")
      : step === ids + 1 ? say("scan: each expert starts at the sum before it",
                               "扫描：每个专家从它之前的和开始")
      : say(`scatter: id ${now} takes row ${table.indexOf(now)}`,
            `scatter：id ${now} 占用第 ${table.indexOf(now)} 行`);
    const expertCells = (values) => values.map((v, e) => ({ text: String(v), style: "e" + e }));
    return {
      sentence,
      rows: [
        ["flat_id", topkIds.map((e, id) => ({ text: String(id), style: `e${e}${id === now ? " now" : ""}` }))],
        ["count", expertCells(partial)],
        ["padded", expertCells(step >= ids ? padded : ["", "", ""])],
        ["cursor", expertCells(step > ids ? cursor : ["", "", ""])],
        ["table", table.map((id) => ({
          text: id === null ? "8" : String(id), style: id === null ? "" : "e" + topkIds[id] }))],
      ],
    };
  });
}

// ---- m2: three buffers, two loads under way

function ringStepper(figure) {
  const tiles = 6;
  const stages = 3;
  makeStepper(figure, tiles, (turn) => {
    const cells = [];
    for (let buffer = 0; buffer < stages; ++buffer) {
      let cell = { text: say("free", "空"), style: "" };
      for (let tile = turn; tile < Math.min(turn + stages, tiles); ++tile) {
        if (tile % stages !== buffer) continue;
        const text = tile === turn ? say("multiply ", "相乘 ") : say("loading ", "装入 ");
        cell = { text: text + tile, style: tile === turn ? "mark" : "e0" };
      }
      cells.push(cell);
    }
    const loaded = turn + stages - 1;
    return {
      rows: [[say("buffer", "缓冲区"), [0, 1, 2].map((b) => ({ text: String(b) }))],
             [say("holds", "内容"), cells]],
      sentence: loaded < tiles
        ? say(`turn ${turn}: wait for tile ${turn}, barrier, start tile ${loaded}, multiply`,
              `第 ${turn} 轮：等 tile ${turn}，屏障，启动 tile ${loaded}，相乘`)
        : say(`turn ${turn}: nothing left to load; an empty group is committed`,
              `第 ${turn} 轮：没有要装入的了，提交一个空组`),
    };
  });
}

// ---- m4: GROUP_M and what a cache of four panels loads

function orderOf(rows, columns, group) {
  const order = [];
  for (let pid = 0; pid < rows * columns; ++pid) {
    const g = Math.floor(pid / (group * columns));
    const height = Math.min(rows - g * group, group);
    const inside = pid % (group * columns);
    order.push({ m: g * group + (inside % height), n: Math.floor(inside / height), g });
  }
  return order;
}

function loadsOf(order, panels) {
  const cache = [];
  const loads = { A: 0, W: 0 };
  const use = (kind, number) => {
    const key = kind + number;
    const at = cache.indexOf(key);
    if (at >= 0) cache.splice(at, 1); else loads[kind] += 1;
    cache.unshift(key);
    cache.length = Math.min(cache.length, panels);
  };
  for (const tile of order) { use("A", tile.m); use("W", tile.n); }
  return loads;
}

const panelBytes = 128 * 2048 * 2;  // of GEMM1 on the main shape

function orderSlider(figure) {
  const [rows, columns, panels] = [5, 3, 4];
  const slider = element("input",
    { type: "range", min: "1", max: String(rows), value: "2", "aria-label": "GROUP_M" });
  const sentence = element("span", { "aria-live": "polite" });
  const place = element("div");
  const show = () => {
    const order = orderOf(rows, columns, Number(slider.value));
    const loads = loadsOf(order, panels);
    const lines = [];
    for (let m = 0; m < rows; ++m) {
      const cells = [];
      for (let n = 0; n < columns; ++n) {
        const pid = order.findIndex((tile) => tile.m === m && tile.n === n);
        cells.push({ text: String(pid), style: "e" + (order[pid].g % 3) });
      }
      lines.push(["m=" + m, cells]);
    }
    place.replaceChildren(tableOf(lines));
    const again = loads.A + loads.W - rows - columns;
    const megabytes = (again * panelBytes / 1e6).toFixed(1);
    sentence.textContent =
      `GROUP_M ${slider.value}: A ${loads.A}, W ${loads.W}, ` +
      say(`together ${loads.A + loads.W} panels loaded, ${again} of them again: ${megabytes} MB in GEMM1`,
          `共载入 ${loads.A + loads.W} 个 panel，其中重复 ${again} 个：GEMM1 里 ${megabytes} MB`);
  };
  slider.addEventListener("input", show);
  figure.append(element("div", { class: "controls" }, slider, sentence), place);
  show();
}

// ---- m7: a producer and its consumers walk round a ring of mbarriers

// "P" fills the next place of the ring, "C" empties the next one; the last place says the end.
const barrierWalk = "PPPPCCPCPCPCCC";
const ringStages = 4;
const ringTurns = 3;
const ringPlaces = 7;

function barrierStepper(figure) {
  const nameOf = (place) => place === ringPlaces - 1 ? say("the end", "结束")
    : say(`tile ${Math.floor(place / ringTurns)}, turn ${place % ringTurns}`,
          `tile ${Math.floor(place / ringTurns)} 第 ${place % ringTurns} 轮`);
  makeStepper(figure, barrierWalk.length, (step) => {
    const done = barrierWalk.slice(0, step + 1);
    const filled = [...done].filter((who) => who === "P").length;
    const emptied = done.length - filled;
    const produces = barrierWalk[step] === "P";
    const place = (produces ? filled : emptied) - 1;
    const stage = place % ringStages;
    const round = Math.floor(place / ringStages);
    const column = (s) => ({ text: String(s), style: s === stage ? "now" : "" });
    const phases = (count, s) => Math.floor((count - s + ringStages - 1) / ringStages);
    const holds = (s) => {
      for (let p = emptied; p < filled; ++p) {
        if (p % ringStages === s) return { text: nameOf(p), style: "e0" };
      }
      return produces || s !== stage ? { text: say("free", "空"), style: "" }
                                     : { text: say("handed back", "已归还"), style: "mark" };
    };
    const all = [0, 1, 2, 3];
    const parity = produces ? 1 - round % 2 : round % 2;
    return {
      rows: [[say("stage", "缓冲区"), all.map(column)],
             [say("holds", "内容"), all.map(holds)],
             [say("phases of full[]", "full[] 的相位"), all.map((s) => ({ text: String(phases(filled, s)) }))],
             [say("phases of empty[]", "empty[] 的相位"), all.map((s) => ({ text: String(phases(emptied, s)) }))]],
      sentence: produces
        ? say(`producer: waits for parity ${parity} of empty[${stage}]` +
              (round === 0 ? ", which passes on a fresh barrier" : ", handed back before") +
              `; fetches ${nameOf(place)}`,
              `生产者：等 empty[${stage}] 的奇偶 ${parity}；取 ${nameOf(place)}`)
        : say(`consumers: wait for parity ${parity} of full[${stage}]; take ${nameOf(place)}, hand it back`,
              `消费者：等 full[${stage}] 的奇偶 ${parity}；用 ${nameOf(place)}，归还`),
    };
  });
}

const steppers = { scan: scanStepper, ring: ringStepper, order: orderSlider, barriers: barrierStepper };
for (const figure of document.querySelectorAll("figure[data-stepper]")) {
  steppers[figure.dataset.stepper](figure);
}
