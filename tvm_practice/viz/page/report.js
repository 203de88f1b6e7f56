"use strict";
// Tabs: one schedule, model or tuner at a time.
for (const toggle of document.querySelectorAll(".toggle")) {
  const buttons = [...toggle.querySelectorAll("[data-tab]")];
  const choose = (chosen) => {
    for (const each of buttons) {
      const on = each === chosen;
      each.setAttribute("aria-selected", String(on));
      each.tabIndex = on ? 0 : -1;
      document.getElementById(each.dataset.tab).hidden = !on;
    }
    document.getElementById(chosen.dataset.tab).dispatchEvent(new Event("shown"));
  };
  buttons.forEach((button, at) => {
    button.addEventListener("click", () => choose(button));
    button.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      const next = buttons[(at + move + buttons.length) % buttons.length];
      next.focus();
      choose(next);
    });
  });
}

// A slider with its two arrows; `show` is told of every position.
function stepper(box, show) {
  const slider = box.querySelector("input");
  const go = (to) => {
    slider.value = Math.max(0, Math.min(Number(slider.max), to));
    show(Number(slider.value));
  };
  slider.addEventListener("input", () => show(Number(slider.value)));
  box.querySelector(".before").addEventListener("click", () => go(Number(slider.value) - 1));
  box.querySelector(".after").addEventListener("click", () => go(Number(slider.value) + 1));
  return go;
}

// Steps of a schedule.
for (const tab of document.querySelectorAll(".steps .tab")) {
  const steps = [...tab.querySelectorAll(".step")];
  const output = tab.querySelector("output");
  const show = (at) => {
    steps.forEach((step, index) => { step.hidden = index !== at; });
    output.textContent = `${at} of ${steps.length - 1}: ${steps[at].dataset.primitive}`;
  };
  stepper(tab.querySelector(".stepper"), show);
  show(steps.length - 1);
}

// Touches of memory, one after the other: bright is recent, a dim element was touched before.
for (const tab of document.querySelectorAll(".player")) {
  const { buffers, touches } = JSON.parse(tab.querySelector("script").textContent);
  const output = tab.querySelector("output");
  const play = tab.querySelector(".play");
  const scale = 6;
  const maps = buffers.map((buffer) => {
    const figure = document.createElement("figure");
    const canvas = document.createElement("canvas");
    canvas.width = buffer.columns * scale;
    canvas.height = buffer.rows * scale;
    const caption = document.createElement("figcaption");
    caption.textContent = buffer.name;
    figure.append(caption, canvas);
    tab.querySelector(".maps").append(figure);
    return { canvas, context: canvas.getContext("2d"), columns: buffer.columns };
  });
  const recent = 64;
  const cell = (touch, colour) => {
    const { context, columns } = maps[touch[0]];
    context.fillStyle = colour;
    context.fillRect((touch[1] % columns) * scale, Math.floor(touch[1] / columns) * scale, scale, scale);
  };
  const show = (count) => {
    for (const { canvas, context } of maps) {
      context.fillStyle = "#8a8f9833";
      context.clearRect(0, 0, canvas.width, canvas.height);
      context.fillRect(0, 0, canvas.width, canvas.height);
    }
    for (let at = 0; at < Math.max(0, count - recent); at++) cell(touches[at], "#4d7fa8");
    for (let at = Math.max(0, count - recent); at < count; at++) {
      const age = (count - at) / recent;
      cell(touches[at], `rgb(${255 - 90 * age} ${170 - 40 * age} ${40 + 110 * age})`);
    }
    if (count > 0) {
      const [buffer, element, write] = touches[count - 1];
      const { columns } = maps[buffer];
      output.textContent = `${count} of ${touches.length}: ${write ? "writes" : "reads"} ` +
        `${buffers[buffer].name}[${Math.floor(element / columns)}, ${element % columns}]`;
    } else {
      output.textContent = `0 of ${touches.length}`;
    }
  };
  const go = stepper(tab.querySelector(".stepper"), show);
  const slider = tab.querySelector("input");
  let timer = null;
  const stop = () => { clearInterval(timer); timer = null; play.textContent = "play"; };
  play.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (Number(slider.value) >= touches.length) go(0);
    play.textContent = "pause";
    timer = setInterval(() => {
      go(Number(slider.value) + 16);
      if (Number(slider.value) >= touches.length) stop();
    }, 40);
  });
  tab.addEventListener("shown", () => show(Number(slider.value)));
  go(Math.floor(touches.length / 2));
}
