// Plays a plan: the picture comes from the server, this moves its agents.
const CELL = 40, ASIDE = 20;

export function startPlayers(root) {
  for (const box of root.querySelectorAll(".player:not([data-ready])")) new Player(box);
}

class Player {
  constructor(box) {
    const { cells, waits } = JSON.parse(box.dataset.player);
    Object.assign(this, { box, cells, waits, last: waits.length - 1, time: 0, timer: 0 });
    this.agents = [...box.querySelectorAll(".agent")];
    this.range = box.querySelector("[data-do=time]");
    this.button = box.querySelector("[data-do=play]");
    this.speed = box.querySelector("[data-do=speed]");
    box.querySelector(".controls").hidden = false;
    box.addEventListener("click", (event) => this.act(event.target.closest("button")?.dataset.do));
    this.range.addEventListener("input", () => { this.pause(); this.show(Number(this.range.value)); });
    this.speed.addEventListener("change", () => { if (this.timer) { this.pause(); this.play(); } });
    box.addEventListener("keydown", (event) => this.key(event));
    box.dataset.ready = "yes";
    this.show(0);
  }

  key(event) {
    if (event.target.matches("select, input") || event.ctrlKey || event.metaKey || event.altKey) return;
    const onButton = event.target.matches("button");
    const act = { " ": onButton ? "" : "play", ArrowRight: "forward", ArrowLeft: "back", Home: "first", End: "last" }[event.key];
    if (act) { event.preventDefault(); this.act(act); }
  }

  act(what) {
    if (what === "play") return this.timer ? this.pause() : this.play();
    const to = { first: 0, back: this.time - 1, forward: this.time + 1, last: this.last }[what];
    if (to !== undefined) { this.pause(); this.show(to); }
  }

  play() {
    if (this.time >= this.last) this.show(0);
    this.timer = setInterval(() => { this.show(this.time + 1); if (this.time >= this.last) this.pause(); }, Number(this.speed.value));
    this.named("❚❚ Pause", "Pause");
  }

  pause() {
    clearInterval(this.timer);
    this.timer = 0;
    this.named("▶ Play", "Play");
  }

  named(words, label) {
    this.button.textContent = words;
    this.button.setAttribute("aria-label", label);
  }

  // Agents that meet in a cell stand side by side.
  aside(agent) {
    const here = String(this.cells[agent][this.time]);
    const met = this.cells.map((path, n) => [String(path[this.time]), n]).filter(([cell]) => cell === here).map(([, n]) => n);
    return (met.indexOf(agent) - (met.length - 1) / 2) * ASIDE;
  }

  show(time) {
    this.time = Math.min(Math.max(time, 0), this.last);
    this.agents.forEach((agent, n) => {
      const [row, column] = this.cells[n][this.time];
      agent.style.transform = `translate(${CELL * column + CELL / 2 + this.aside(n)}px, ${CELL * row + CELL / 2}px)`;
      agent.querySelector(".waits").setAttribute("visibility", this.waits[this.time].includes(n) ? "visible" : "hidden");
    });
    this.range.value = this.time;
    this.box.querySelector("[data-time]").textContent = `t = ${this.time} of ${this.last}`;
    this.box.querySelector("[data-ending]").hidden = this.time !== this.last;
    this.box.querySelector("[data-coming]").hidden = this.time === this.last;
    this.box.querySelector(".stage-of-player").classList.toggle("at-end", this.time === this.last);
  }
}
