// Says at once what the mark under the pointer stands for, or the mark nearest to it: marks of a curve are small.
const NEAR = 30; // pixels

export function startTips(root) {
  for (const picture of root.querySelectorAll("figure > svg")) {
    let marks = [];
    // While the pointer is here the browser's own tooltips, which come late, are out of the picture.
    picture.addEventListener("pointerenter", () => {
      marks = [...picture.querySelectorAll("title")].map((title) => ({ title, mark: title.parentNode }));
      marks.forEach(({ title }) => title.remove());
    });
    picture.addEventListener("pointermove", (event) => show(find(marks, event), event));
    picture.addEventListener("pointerleave", () => {
      marks.forEach(({ title, mark }) => mark.append(title));
      show(undefined);
    });
  }
}

function find(marks, event) {
  const under = marks.find(({ mark }) => mark.contains(event.target));
  if (under) return under;
  const measured = marks.filter(({ mark }) => mark.localName !== "rect").map((one) => ({ ...one, far: distance(one.mark, event) }));
  return measured.filter(({ far }) => far < NEAR).sort((one, other) => one.far - other.far)[0];
}

function distance(mark, event) {
  const box = mark.getBoundingClientRect();
  return Math.hypot(box.x + box.width / 2 - event.clientX, box.y + box.height / 2 - event.clientY);
}

function show(found, event) {
  let tip = document.querySelector("body > .tip");
  if (!tip) {
    tip = Object.assign(document.createElement("div"), { className: "tip" });
    tip.setAttribute("aria-hidden", "true");
    document.body.append(tip);
  }
  tip.hidden = !found;
  if (!found) return;
  tip.textContent = found.title.textContent;
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const above = event.clientY - tip.offsetHeight - 12;
  Object.assign(tip.style, { left: `${Math.max(left, 8)}px`, top: `${above > 0 ? above : event.clientY + 18}px` });
}
