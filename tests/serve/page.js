// Runs the script of the page on its standard input with answers, [seconds, reads] or null where the
// server is gone, so many ms apart, and prints what it says after each.
"use strict";
const [script] = require("fs").readFileSync(0, "utf8").match(/(?<=<script>)[^]*(?=<\/script>)/);
const answers = JSON.parse(process.argv[2]);
const texts = {};

function element(id) {
  const found = { value: "read", clientWidth: 500, clientHeight: 200, style: {}, canvas: true };
  return new Proxy(() => 0, {
    get: (_, key) => key in found ? found[key] : key === "tBodies" ? [element(id)] : key === "textContent" ? texts[id] : () => element(id),
    set: (_, key, value) => { if (key === "textContent") texts[id] = value; return true; },
  });
}

function state([seconds, reads]) {
  const operation = (count) => ({ count, latencies: { own_flash: [count, 0] } });
  const late = { p50_ns: 0, p99_ns: 0, p99_9_ns: 0, p99_99_ns: 0, max_ns: 0, count: 0 };
  const operations = { read: operation(reads), write: operation(0), flush: operation(0), discard: operation(0) };
  return { now_ns: seconds * 1e9, clients: 1, bounds_ns: [10000], operations, late, synced: late, device: [] };
}

let look, now_ms = 0;
Object.assign(globalThis, {
  document: { getElementById: element, createElement: element, body: {} },
  window: { devicePixelRatio: 1, addEventListener: () => 0 },
  getComputedStyle: () => ({ color: "" }),
  matchMedia: () => ({ matches: false }),
  setTimeout: (call) => { look = call; },
  fetch: async () => {
    const answer = answers.shift();
    return { ok: answer !== null, status: 503, json: async () => state(answer) };
  },
});
Object.defineProperty(globalThis, "performance", { value: { now: () => now_ms } });

const said = [];
(async () => {
  const count = answers.length;
  eval(script);
  while (said.length < count) {
    for (let turn = 0; turn < 9; turn++) await new Promise(setImmediate);
    said.push([texts.error, texts.rates, texts["owners-words"]]);
    now_ms += Number(process.argv[3]);
    if (said.length < count) look();
  }
  console.log(JSON.stringify(said));
})();
