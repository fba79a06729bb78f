"use strict";
(() => {
  const group = document.getElementById("series");
  if (!group) return;
  const data = JSON.parse(document.getElementById("series-data").textContent);
  const when = document.getElementById("when");
  const cursors = group.querySelectorAll(".cursor");
  const outputs = group.querySelectorAll("output");
  const digits = (value) => Number(value.toPrecision(3)).toString();
  const scaled = (value, units) => {
    const [scale, unit] = units.find(([least]) => Math.abs(value) >= least) ?? units.at(-1);
    return `${digits(value / (scale || 1))} ${unit}`.trim();
  };
  const write = {
    duration: (ns) => scaled(ns, [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]),
    count: (value) => scaled(value, [[1e6, "M"], [1e3, "k"], [0, ""]]),
    share: (value) => `${digits(value * 100)} %`,
  };
  const [scale, unit] = data.clock;
  // Three digits of the step: of a late time they would not tell its ends apart.
  const decimals = Math.min(Math.max(2 - Math.floor(Math.log10(data.step_s / scale)), 0), 9);
  const time = (value) => `${Number((value / scale).toFixed(decimals))} ${unit}`;
  let column = 0;
  function show(wanted) {
    column = Math.min(Math.max(wanted, 0), data.columns - 1);
    const x = data.left + ((column + 0.5) / data.columns) * (data.right - data.left);
    for (const cursor of cursors) { cursor.setAttribute("x1", x); cursor.setAttribute("x2", x); }
    const from = data.start_s + column * data.step_s;
    when.textContent = `${time(from)} to ${time(from + data.step_s)}`;
    for (const output of outputs) {
      const row = data.rows[output.dataset.row];
      const told = (value, peak) => value === null ? "–"
        : write[row.unit](value) + (peak == null ? "" : ` (at most ${write[row.unit](peak)})`);
      output.textContent = data.runs
        .map((run, index) => `${run} ${told(row.values[index][column], row.peaks[index]?.[column])}`)
        .join(", ");
    }
  }
  group.addEventListener("pointermove", (event) => {
    const svg = event.target.closest("svg");
    if (!svg) return;
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    show(Math.floor(((x - data.left) / (data.right - data.left)) * data.columns));
  });
  group.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -1e9, End: 1e9 };
    if (!(event.key in steps) || event.target !== group) return;
    event.preventDefault();
    show(column + steps[event.key]);
  });
})();
