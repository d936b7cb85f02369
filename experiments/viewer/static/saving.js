// Any picture as an SVG file, any table as CSV.
export function startSaving(root) {
  for (const figure of root.querySelectorAll("[data-picture]:not(:has(.save))")) {
    const button = saveButton("SVG", `Save ${figure.dataset.picture} as SVG`, "save");
    button.addEventListener("click", () => save(svgOf(figure.querySelector("svg")), `${figure.dataset.picture}.svg`, "image/svg+xml"));
    figure.append(button);
  }
  for (const scroll of root.querySelectorAll("[data-table]")) {
    const button = saveButton("CSV", `Save ${scroll.dataset.table} as CSV`, "save-table");
    button.addEventListener("click", () => save(csvOf(scroll.querySelector("table")), `${scroll.dataset.table}.csv`, "text/csv"));
    scroll.after(button);
  }
}

function saveButton(words, label, kind) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: words, className: kind });
  button.setAttribute("aria-label", label);
  return button;
}

// On its own an SVG has no page whose ink and paper it could take.
function svgOf(svg) {
  const copy = svg.cloneNode(true);
  copy.setAttribute("color", "#16222d");
  const [x, y, width, height] = svg.getAttribute("viewBox").split(" ");
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ x, y, width, height, fill: "#fff" })) paper.setAttribute(name, value);
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}

// What a spreadsheet takes for a formula is text, by an apostrophe; numbers with a sign are none.
const FORMULA = /^\s*[=@+\-\t\r\uFF1D\uFF20\uFF0B\uFF0D]/;
const NUMBER = /^[+-]?(\d[\d.,]*|\.\d+)([eE][+-]?\d+)? ?%?$/;
const GROUPED = /^\d{1,3}(\s\d{3})+$/; // as shown, with a space at the thousands
const QUOTED = /[",;\t\r\n]/;

function csvOf(table) {
  const plain = (text) => (GROUPED.test(text) ? text.replaceAll(/\s/g, "") : text);
  const safe = (text) => (FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text);
  const quoted = (text) => (QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return [...table.rows].map((row) => [...row.cells].map((cell) => quoted(safe(plain(cell.innerText.trim())))).join(",")).join("\n") + "\n";
}

function save(text, name, type) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob([text], { type })), download: name.replaceAll(/[^\w.-]+/g, "_") });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
