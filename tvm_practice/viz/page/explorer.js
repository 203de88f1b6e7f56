"use strict";
// Lines count from 1 everywhere, as in the data; 0 is no line.
const schedules = JSON.parse(document.getElementById("data").textContent);
const panes = {};
for (const pane of document.querySelectorAll(".pane")) {
  panes[pane.dataset.pane] = {
    box: pane.querySelector(".lines"), note: pane.querySelector("small"), lines: [], active: 0,
  };
}
const status = document.querySelector(".status");
let schedule, step, kept;

const element = (kind, text) => {
  const made = document.createElement("span");
  made.className = kind;
  made.textContent = text;
  return made;
};

function fill(name, rows) {
  const pane = panes[name];
  pane.active = 0;
  pane.box.replaceChildren();
  pane.lines = rows.map((row, at) => {
    const line = document.createElement("div");
    line.className = `line ${row.kind || ""}`;
    line.id = `${name}-${at + 1}`;
    line.dataset.at = at + 1;
    line.setAttribute("role", "option");
    if (row.origin) {
      line.style.setProperty("--hue", (row.origin * 47) % 360);
      line.style.setProperty("--linked", 1);
    }
    line.append(element("at", at + (name === "step" ? 0 : 1)));
    if (name === "tir") line.append(element("runs", row.runs || ""));
    line.append(element("code", row.text));
    if (row.note) line.append(element("note", row.note));
    pane.box.append(line, ...(row.below || []));
    return line;
  });
}

const lastStep = () => schedule.steps.length - 1;

// What runs how often, and each access below its statement; known of the last TIR alone.
function accesses(line) {
  const rows = (schedule.accesses || {})[line] || [];
  return rows.map((cells, at) => {
    const row = document.createElement("div");
    row.className = `access ${at ? "" : "head"}`;
    row.dataset.of = line;
    row.append(...cells.map((cell) => element("cell", cell)));
    return row;
  });
}

function showStep(chosen) {
  step = chosen;
  const { text, finals, name } = schedule.steps[step];
  const isLast = step === lastStep();
  const withCode = new Set(schedule.llvm.map(([, origin]) => origin));
  fill("tir", text.map((each, at) => ({
    text: each.replace(/^ +/, (blanks) => " ".repeat(blanks.length / 2)),
    kind: /^\s*T\.(reads|writes|func_attr)/.test(each) ? "quiet" : "",
    origin: finals[at].find((line) => withCode.has(line)) || 0,
    runs: isLast ? (schedule.runs || {})[at + 1] : "",
    note: isLast ? (schedule.notes || {})[at + 1] : "",
    below: isLast ? accesses(at + 1) : [],
  })));
  panes.tir.box.toggleAttribute("data-earlier", !isLast || !schedule.runs);
  const reason = schedule.unfollowed ? `accesses not followed: ${schedule.unfollowed}` : "";
  panes.tir.note.textContent = isLast ? reason || "as compiled; beside a line, how often it runs" : `after step ${step}: ${name || "none"}`;
  panes.step.lines.forEach((line, at) => {
    line.classList.toggle("shown", at === step);
    line.setAttribute("aria-selected", String(at === step));
  });
}

function showSchedule(chosen) {
  schedule = schedules[chosen];
  kept = null;
  for (const tab of document.querySelectorAll("[data-schedule]")) {
    const on = Number(tab.dataset.schedule) === chosen;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
  }
  fill("step", schedule.steps.map(({ name }) => ({ text: name || "the function as declared" })));
  fill("llvm", schedule.llvm.map(([text, origin]) => ({ text, origin })));
  const tirOf = (line) => (line ? schedule.llvm[line - 1][1] : 0);
  fill("asm", schedule.asm.map(([text, line]) => ({ text, origin: tirOf(line) })));
  const others = schedule.left_out;
  panes.llvm.note.textContent =
    schedule.uncompiled || (others.length ? `without ${others.join(", ")}` : "");
  panes.llvm.note.title = panes.llvm.note.textContent;
  showStep(lastStep());
  mark(null);
}

// By pane, the lines that are made from a line (hit) and those inside or around it (near).
function linked(pane, at) {
  const hit = { step: new Set(), tir: new Set(), llvm: new Set(), asm: new Set() };
  const near = { step: new Set(), tir: new Set(), llvm: new Set(), asm: new Set() };
  const { makers, finals } = schedule.steps[step];
  const last = schedule.steps[lastStep()];
  const code = new Set(), inside = new Set();
  const down = (line) => {
    schedule.own[line - 1].forEach((each) => code.add(each));
    schedule.inside[line - 1].forEach((each) => inside.add(each));
  };
  const up = (line, marks) => {
    finals.forEach((became, index) => { if (became.includes(line)) marks.tir.add(index + 1); });
    last.makers[line - 1].forEach((maker) => marks.step.add(maker + 1));
  };
  if (pane === "step") {
    hit.step.add(at);
    makers.forEach((each, index) => { if (each.includes(at - 1)) hit.tir.add(index + 1); });
    last.makers.forEach((each, index) => { if (each.includes(at - 1)) down(index + 1); });
  } else if (pane === "tir") {
    hit.tir.add(at);
    makers[at - 1].forEach((maker) => hit.step.add(maker + 1));
    finals[at - 1].forEach(down);
  } else {
    const line = pane === "asm" ? schedule.asm[at - 1][1] : at;
    const origin = line ? schedule.llvm[line - 1][1] : 0;
    hit[pane].add(at);
    if (line) {
      hit.llvm.add(line);
      schedule.asm.forEach(([, from], index) => { if (from === line) hit.asm.add(index + 1); });
    }
    if (origin) {
      up(origin, hit);
      schedule.around[origin - 1].forEach((each) => {
        if (schedule.own[each - 1].length) up(each, near);
      });
    }
    return { hit, near };
  }
  schedule.llvm.forEach(([, origin], index) => {
    if (code.has(origin)) hit.llvm.add(index + 1);
    else if (inside.has(origin)) near.llvm.add(index + 1);
  });
  schedule.asm.forEach(([, line], index) => {
    if (hit.llvm.has(line)) hit.asm.add(index + 1);
    else if (near.llvm.has(line)) near.asm.add(index + 1);
  });
  return { hit, near };
}

function mark(from) {
  const { hit, near } = from ? linked(from.pane, from.at) : { hit: {}, near: {} };
  const said = [];
  for (const [name, pane] of Object.entries(panes)) {
    pane.lines.forEach((line, index) => {
      const isHit = Boolean(hit[name] && hit[name].has(index + 1));
      line.classList.toggle("hit", isHit);
      line.classList.toggle("near", !isHit && Boolean(near[name] && near[name].has(index + 1)));
      line.classList.toggle("from", Boolean(from) && from.pane === name && from.at === index + 1);
    });
    if (!from) continue;
    if (name !== from.pane) reveal(pane, hit[name].size ? hit[name] : near[name]);
    said.push(`${{ step: "primitives", tir: "TIR", llvm: "LLVM IR", asm: "assembly" }[name]} ${hit[name].size}`);
  }
  status.textContent = from ? `Marked lines: ${said.join(", ")}.` : "";
}

// Scrolls a pane, never the page, and only if none of the lines is in sight.
function reveal({ box, lines }, marked) {
  const places = [...marked].map((at) => lines[at - 1].offsetTop - box.offsetTop);
  const inSight = (top) => top >= box.scrollTop && top < box.scrollTop + box.clientHeight - 20;
  if (places.length && !places.some(inSight)) {
    box.scrollTop = Math.max(0, Math.min(...places) - box.clientHeight / 3);
  }
}

function keep(pane, at) {
  const again = kept && kept.pane === pane && kept.at === at;
  if (pane === "step") showStep(at - 1);
  kept = again ? null : { pane, at };
  mark(kept);
}

for (const [name, pane] of Object.entries(panes)) {
  const at = (event) => {
    const line = event.target.closest(".line, .access");
    return line ? Number(line.dataset.at || line.dataset.of) : 0;
  };
  pane.box.addEventListener("mouseover", (event) => {
    if (!kept && at(event)) mark({ pane: name, at: at(event) });
  });
  pane.box.addEventListener("mouseleave", () => { if (!kept) mark(null); });
  pane.box.addEventListener("click", (event) => {
    pane.active = at(event) || pane.active;
    if (at(event)) keep(name, at(event));
  });
  pane.box.addEventListener("keydown", (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (event.key === "Enter" && pane.active) keep(name, pane.active);
    if (!move) return;
    event.preventDefault();
    kept = null;
    pane.active = Math.max(1, Math.min(pane.lines.length, pane.active + move));
    pane.box.setAttribute("aria-activedescendant", `${name}-${pane.active}`);
    mark({ pane: name, at: pane.active });
    reveal(pane, [pane.active]);
  });
}
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  kept = null;
  mark(null);
});
const tabs = [...document.querySelectorAll("[data-schedule]")];
tabs.forEach((tab, at) => {
  tab.addEventListener("click", () => showSchedule(at));
  tab.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const next = (at + move + tabs.length) % tabs.length;
    tabs[next].focus();
    showSchedule(next);
  });
});
showSchedule(0);
