// The board editor: clicks change the board, the server draws it and solves it.
import { answerOf } from "./asking.js";

export function startEditor(bring) {
  const box = document.querySelector("[data-editor]");
  if (box) new Editor(box, bring);
}

class Editor {
  constructor(box, bring) {
    Object.assign(this, { box, bring, board: JSON.parse(box.dataset.editor), tool: "hole", turn: 0 });
    this.find = (name) => box.querySelector(name);
    this.find("[data-size]").value = this.board.grid.length;
    this.find("[data-agents]").value = this.board.starts.length;
    this.find("[data-size]").addEventListener("change", (event) => this.resize(Number(event.target.value), this.board.starts.length));
    this.find("[data-agents]").addEventListener("change", (event) => this.resize(this.board.grid.length, Number(event.target.value)));
    this.find("[data-checkpoint]")?.addEventListener("change", () => this.changed());
    this.find(".cells").addEventListener("keydown", (event) => this.move(event));
    this.changed();
  }

  tools() {
    const agents = this.board.starts.map((_, n) => n);
    const all = ["hole", ...agents.flatMap((n) => [`A${n}`, `G${n}`])];
    if (!all.includes(this.tool)) this.tool = "hole";
    this.find(".tools-of-editor").replaceChildren(...all.map((name) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.title = name === "hole" ? "hole or ice" : `${name[0] === "A" ? "start" : "goal"} of agent ${name.slice(1)}`;
      button.setAttribute("role", "radio");
      button.setAttribute("aria-checked", String(name === this.tool));
      button.addEventListener("click", () => { this.tool = name; this.tools(); });
      return button;
    }));
  }

  cells() {
    const n = this.board.grid.length, place = this.find(".cells");
    if (place.childElementCount !== n) {
      place.replaceChildren(...Array.from({ length: n }, (_, row) => {
        const line = document.createElement("div");
        line.setAttribute("role", "row");
        line.append(...Array.from({ length: n }, (_, column) => this.cell(row, column)));
        return line;
      }));
      place.style.gridTemplateColumns = `repeat(${n}, 1fr)`;
      place.style.gridTemplateRows = `repeat(${n}, 1fr)`;
    }
    for (const button of place.querySelectorAll("button")) button.setAttribute("aria-label", this.words(Number(button.dataset.row), Number(button.dataset.column)));
  }

  cell(row, column) {
    const button = document.createElement("button");
    Object.assign(button.dataset, { row, column });
    button.type = "button";
    button.setAttribute("role", "gridcell");
    button.tabIndex = row || column ? -1 : 0;
    button.addEventListener("click", () => this.place(row, column));
    return button;
  }

  words(row, column) {
    const at = (cells) => cells.findIndex(([r, c]) => r === row && c === column);
    const parts = [`row ${row}, column ${column}: ${this.board.grid[row][column] === "H" ? "hole" : "ice"}`];
    if (at(this.board.starts) >= 0) parts.push(`start of agent ${at(this.board.starts)}`);
    if (at(this.board.goals) >= 0) parts.push(`goal of agent ${at(this.board.goals)}`);
    return parts.join(", ");
  }

  place(row, column) {
    const { grid, starts, goals } = this.board;
    const taken = (cells) => cells.findIndex(([r, c]) => r === row && c === column);
    if (this.tool === "hole") {
      if (taken(starts) >= 0 || taken(goals) >= 0) return this.say("An agent starts or ends here; place it elsewhere first.");
      this.put(row, column, grid[row][column] === "H" ? "." : "H");
    } else {
      const cells = this.tool[0] === "A" ? starts : goals, agent = Number(this.tool.slice(1)), other = taken(cells);
      if (other >= 0) cells[other] = cells[agent];
      cells[agent] = [row, column];
      this.put(row, column, ".");
    }
    this.changed();
  }

  put(row, column, letter) {
    const line = this.board.grid[row];
    this.board.grid[row] = line.slice(0, column) + letter + line.slice(column + 1);
  }

  resize(n, agents) {
    if (n * n < 2 * agents) return this.say(`${n}x${n} cells cannot hold ${agents} agents and their goals.`);
    const grid = Array.from({ length: n }, (_, row) => (this.board.grid[row] ?? "").padEnd(n, ".").slice(0, n));
    const free = [];
    for (let row = 0; row < n; row += 1) for (let column = 0; column < n; column += 1) free.push([row, column]);
    const used = new Set();
    const kept = (cell, order) => {
      const inside = cell && cell[0] < n && cell[1] < n && !used.has(String(cell)) ? cell : order.find((one) => !used.has(String(one)));
      used.add(String(inside));
      return inside;
    };
    const starts = Array.from({ length: agents }, (_, agent) => kept(this.board.starts[agent], free));
    const goals = Array.from({ length: agents }, (_, agent) => kept(this.board.goals[agent], [...free].reverse()));
    this.board = { grid, starts, goals };
    for (const [row, column] of [...starts, ...goals]) this.put(row, column, ".");
    this.changed();
  }

  move(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const from = event.target.closest("button");
    if (!step || !from) return;
    event.preventDefault();
    const to = this.find(`.cells button[data-row="${Number(from.dataset.row) + step[0]}"][data-column="${Number(from.dataset.column) + step[1]}"]`);
    if (to) { from.tabIndex = -1; to.tabIndex = 0; to.focus(); }
  }

  say(words) { this.find("[data-problem]").textContent = words; }

  // The picture at once, the answers as they come; of several changes the last one counts.
  async changed() {
    this.say("");
    this.tools();
    this.cells();
    const text = JSON.stringify(this.board), turn = ++this.turn, last = () => turn === this.turn;
    history.replaceState(null, "", `?${new URLSearchParams({ board: text })}`);
    const drawing = document.createElement("div");
    await answerOf(this.box.dataset.draw, { board: text }, drawing, () => {});
    if (!last()) return;
    this.find(".drawing").replaceChildren(...drawing.childNodes);
    await this.answered(this.find("[data-answer]"), this.box.dataset.solve, { board: text }, last);
    const checkpoint = this.find("[data-checkpoint]")?.value;
    if (!checkpoint) this.find("[data-policy]").replaceChildren();
    else if (last()) await this.answered(this.find("[data-policy]"), this.box.dataset.ask, { board: text, checkpoint }, last);
  }

  async answered(place, address, asked, last) {
    place.classList.add("busy");
    place.setAttribute("aria-busy", "true");
    if (!place.childElementCount) place.append(Object.assign(document.createElement("p"), { textContent: "asking …", className: "note" }));
    for (let compiling = true; compiling;) {
      const found = document.createElement("div");
      await answerOf(address, asked, found, () => {});
      if (!last()) return;
      compiling = found.querySelector("[data-compiling]") !== null;
      place.replaceChildren(...found.childNodes);
    }
    place.classList.remove("busy");
    place.removeAttribute("aria-busy");
    this.bring(place);
  }
}
