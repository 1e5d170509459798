"use strict";
const root = document.documentElement;
const steps = Array.from(document.querySelectorAll("section.step"));
const controls = document.querySelector(".controls");
const slider = document.querySelector(".controls input");
const shown = document.querySelector(".controls output");
let now = 0;
function show(next) {
  now = Math.min(Math.max(next, 0), steps.length - 1);
  steps.forEach((step, i) => step.classList.toggle("current", i === now));
  const number = steps[now].dataset.step;
  document.querySelectorAll(".map .mark").forEach((mark) => {
    mark.classList.toggle("on", mark.dataset.step === number);
    mark.classList.toggle("later", Number(mark.dataset.step) > Number(number));
  });
  slider.value = String(now + 1);
  shown.textContent = "Step " + number + " of " + steps.length;
}
if (controls && steps.length) {
  root.classList.add("js");
  controls.hidden = false;
  slider.addEventListener("input", () => show(Number(slider.value) - 1));
  document.querySelector(".back").addEventListener("click", () => show(now - 1));
  document.querySelector(".next").addEventListener("click", () => show(now + 1));
  document.querySelector(".all").addEventListener("click", () => root.classList.toggle("all"));
  document.addEventListener("keydown", (event) => {
    if (event.target === slider || event.altKey || event.ctrlKey || event.metaKey) return;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: steps.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(to);
  });
  const asked = steps.findIndex((step) => "#" + step.id === location.hash);
  show(asked < 0 ? 0 : asked);
}
